"""The report on a cross-validation: the scores over its folds, and the predictions for all molecules."""

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.predict.training_rows import decimals_of
from graphormer_sepnorm.report.charts import Points, on_axis, parity_chart
from graphormer_sepnorm.report.glossary import glossary, metric_words
from graphormer_sepnorm.report.headline import coverage_card
from graphormer_sepnorm.report.molecules import WORST
from graphormer_sepnorm.report.page import Card, Chart, Grid, Molecule, ReportPage, Section, render
from graphormer_sepnorm.report.predictions import MOST_POINTS, structures
from graphormer_sepnorm.report.reported import constant_words, plain_picture
from graphormer_sepnorm.report.scores import scores_grid, shown_metrics
from graphormer_sepnorm.report.verdict import verdict_of
from graphormer_sepnorm.report.words import line, words
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.numbers import decimals_for, shown, shown_interval, shown_together
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.table_model.reliability import low_coverage, molecule_errors, usual_confidence
from graphormer_sepnorm.table_model.scores import MEAN, STACK, Predicted, columns_of, scores_of_target, top_words
from graphormer_sepnorm.tables.label_text import bounds_of
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import NAME
from graphormer_sepnorm.tables.structures import known_words
from graphormer_sepnorm.tasks import METRICS, TASKS, make_task
from graphormer_sepnorm.version import __version__

MEAN_WORDS = "mean of all labels"


def report_folds(
    whole: RunFolder,
    task: TaskConfig,
    options: TableOptions,
    results: list[dict],
    lines: list[list[str]],
    repeats: Mapping[str, float] | None = None,
) -> None:
    """Writes the report on a cross-validation; ``repeats`` as ``repeatability``."""
    together = predicted_together(task, lines)
    task = make_task(task).fitted(together.y)
    together = replace(together, task=task)
    titles = {name: options.targets[0] if TASKS[task.kind].adds_up else name for name in results[0]["targets"]}
    shown_targets = list(titles.items())[:MAX_PANELS]
    summary = line(
        "scores.final_summary" if options.final else "scores.folds_summary",
        kind=task.kind,
        titles=titles.values(),
        molecules=len(lines) - 1,
        folds=len(results),
        split=options.split,
        seed=options.seed,
    )
    of_all = pooled(results, together)
    remarks = [*filter(None, [known_words(of_all)]), *low_coverage(of_all)]
    notes = (
        *(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in remarks),
        *words("scores.final_note" if options.final else "scores.folds_final"),
    )
    grids: list[Grid] = []
    cards: list[Card] = []
    verdicts: list[str] = []
    for name, title in shown_targets:
        folds = [result["targets"][name] for result in results]
        facts = scores_of_target(together, columns_of(task)[name])
        grids += [
            folds_grid(task, title, folds),
            scores_grid(f"{title}, all folds together", facts, task.metric, shown_metrics(task), MEAN_WORDS),
        ]
        cards += score_cards(task, title, folds, facts)
        named, median = title if len(titles) > 1 else None, float(np.nanmedian(together.y[:, columns_of(task)[name]]))
        verdicts.append(verdict_of(task, name, facts, of_all.get("trust", {}), named, repeats, median).sentence)
    for level, shares in of_all.get("trust", {}).get("coverage", {}).items():
        cards.append(coverage_card(level, shares, {}))
    said = words("scores.folds", metric=METRICS[task.metric].title, is_final=options.final)
    sections = [Section("Scores", said, tuple(grids))]
    charts, drawn = tuple(parity_charts(together, lines)), {}
    if charts:
        errors = molecule_errors(task, together.y, together.by_name[STACK])
        drawn = structures([row[1] for row in lines[1:]], errors)
        sections.append(worst_section(together, lines))
    sections.append(glossary(cards, sections))
    title = options.title or f"{whole.path.name}: {', '.join(titles.values())}"
    first = title, summary, tuple(cards), notes, tuple(sections), __version__
    write_atomically(whole.report, render(ReportPage(*first, tuple(verdicts), charts, drawn)))


def predicted_together(task: TaskConfig, lines: list[list[str]]) -> Predicted:
    """The labels and their bounds in the lines of ``predictions.csv``, the predictions, and the means of the labels."""
    targets = len(task.targets)
    labels, predicted = ([row[start : start + targets] for row in lines[1:]] for start in (3, 3 + targets))
    known = [["" if text[:1] in ("<", ">") else text for text in row] for row in labels]
    y, values = (np.array([[text or "nan" for text in row] for row in each], float) for each in (known, predicted))
    ends = [[bounds_of(text if text[:1] in ("<", ">") else "") for text in row] for row in labels]
    bounds = np.array(ends) if known != labels else None
    return Predicted(task, y, {STACK: values}, np.nanmean(y, axis=0), bounds)


def folds_grid(task: TaskConfig, title: str, folds: list[dict]) -> Grid:
    """The scores of a target, a row per fold; ``folds`` as ``scores_by_target``."""
    titles = {STACK: "prediction", "forest": "forest", MEAN: constant_words(task)}
    known = [name for name in titles if all(name in fold["scores"] for fold in folds)]
    columns = [[fold["scores"][name][task.metric] for fold in folds] for name in known]
    texts = [shown_together(column, columns[0][0]) for column in columns]
    labels = [f"{fold['n']:,}" for fold in folds]
    rows = zip((f"fold-{number}" for number in range(len(folds))), labels, *texts, strict=True)
    return Grid(("fold", "test labels", *(titles[name] for name in known)), tuple(rows), title)


def score_cards(task: TaskConfig, title: str, folds: list[dict], facts: dict) -> Iterator[Card]:
    """A card with the mean score of a target over the folds, if all folds have one, and that of all labels together."""
    scores = [fold["scores"][STACK][task.metric] for fold in folds]
    if None not in scores:
        whole, ends = facts["scores"][STACK][task.metric], facts.get("interval", {}).get(STACK)
        numbers = statistics.fmean(scores), statistics.stdev(scores), min(scores), max(scores), whole, *(ends or ())
        mean, deviation, lowest, highest, together, *_ = shown_together(numbers, numbers[0])
        texts = words(
            "scores.folds_card",
            folds=len(scores),
            lowest=lowest,
            highest=highest,
            deviation=deviation,
            labels=facts["n"],
            together=together,
            interval=shown_interval(ends, decimals_for(numbers, numbers[0])) if ends else None,
            bounds=facts.get("bounds", {}).get(STACK),
            top=top_words(facts.get("top", {})),
        )
        yield Card(title, mean, metric_words(task.metric), texts)


def pooled(results: list[dict], together: Predicted) -> dict:
    """The numbers of all folds together that sentences on a result read, those that every fold has.

    ``targets`` has the ``bounds`` and ``top`` of ``together``, as ``scores_by_target``; ``censored`` their number.
    """
    found: dict = {
        name: sum(result[name] for result in results)
        for name in ("n", "training_molecules", "training_families")
        if all(name in result for result in results)
    }
    if censored := sum((Counter(result.get("censored", {})) for result in results), Counter()):
        found["censored"] = dict(censored)
    counts = {name: [result["targets"][name]["n"] for result in results] for name in results[0]["targets"]}
    found["targets"] = {name: {"n": sum(numbers)} for name, numbers in counts.items()}
    for name, columns in columns_of(together.task).items():
        parts = {"bounds": together.with_bounds(columns), "top": together.tops(columns)}
        found["targets"][name] |= {part: scores for part, scores in parts.items() if scores}
    levels = {usual_confidence(result["trust"]) for result in results}
    level = levels.pop()
    if levels or level is None:
        return found
    inside = {
        name: [(result["trust"]["coverage"][level][name] or 0) * n for result, n in zip(results, numbers, strict=True)]
        for name, numbers in counts.items()
    }
    shares = {name: sum(inside[name]) / sum(numbers) for name, numbers in counts.items() if sum(numbers)}
    return found | {"trust": {"coverage": {level: shares}}}


def parity_charts(together: Predicted, lines: list[list[str]]) -> Iterator[Chart]:
    """Predicted against measured values of each target of a regression."""
    task = together.task
    for place, target in enumerate(task.targets[:MAX_PANELS] if not TASKS[task.kind].predicts_probabilities else ()):
        bounds = None if together.bounds is None else together.bounds[:, place]
        (y, arrows), predicted = on_axis(together.y[:, place], bounds), together.by_name[STACK][:, place]
        known = np.flatnonzero(~np.isnan(y))
        if len(known):
            drawn, decimals = known[evenly(len(known), MOST_POINTS)], decimals_of(y[known])
            signs = ["<" if each < 0 else ">" if each > 0 else "" for each in arrows.tolist()]
            texts = [
                f"{title_of(lines, row)}\n{lines[row + 1][1]}\nmeasured {signs[row]}{shown(y[row], decimals)}\n"
                f"predicted {shown(predicted[row], decimals)}"
                for row in drawn.tolist()
            ]
            points = Points(y[drawn], predicted[drawn], None, None, texts, arrows[drawn])
            said = line("predictions.parity", confidence=None, has_bounds=bool(arrows.any()))
            yield parity_chart(f"{target}: predicted against measured", points, said)


def title_of(lines: list[list[str]], place: int) -> str:
    """The name of a molecule, or its row, and the fold in which it was tested."""
    row, _, fold, *_ = line = lines[place + 1]
    name = line[-1] if lines[0][-1] == NAME else ""
    return f"{name or f'row {row}'}, {fold}"


def worst_section(together: Predicted, lines: list[list[str]]) -> Section:
    """The molecules of a regression with the largest errors."""
    task, y, predicted = together.task, together.y, together.by_name[STACK]
    order = np.argsort(-np.nan_to_num(molecule_errors(task, y, predicted), nan=-1.0), kind="stable")[:WORST]
    molecules = tuple(worst_molecule(together, lines, row) for row in order.tolist() if not np.isnan(y[row]).all())
    return Section("Worst predictions", words("scores.folds_worst"), molecules=molecules)


def worst_molecule(together: Predicted, lines: list[list[str]], row: int) -> Molecule:
    task, y, predicted = together.task, together.y[row], together.by_name[STACK][row]
    decimals = [decimals_of(labels[~np.isnan(labels)]) for labels in together.y.T]
    facts: list[tuple[str, str]] = []
    for place in np.flatnonzero(~np.isnan(y))[:MAX_PANELS].tolist():
        of = f" {task.targets[place]}" if len(y) > 1 else ""
        known, found = round(float(y[place]), decimals[place]), round(float(predicted[place]), decimals[place])
        texts = [shown(number, decimals[place]) for number in (known, found, abs(found - known))]
        facts += zip((f"measured{of}", f"predicted{of}", f"error{of}"), texts, strict=True)
    smiles = lines[row + 1][1]
    return Molecule(title_of(lines, row), smiles, plain_picture(smiles), tuple(facts))
