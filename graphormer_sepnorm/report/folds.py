"""The report on a cross-validation, or on a model of all rows: the scores over its folds, and all predictions.

``lines`` are those of ``predictions.csv``: a header, and for each molecule row, SMILES, fold, labels and predictions.
"""

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.predict.training_rows import decimals_of
from graphormer_sepnorm.report.headline import as_sentences, coverage_card, verdict_of
from graphormer_sepnorm.report.molecules import WORST
from graphormer_sepnorm.report.page import (
    Card,
    Chart,
    Grid,
    Molecule,
    ReportPage,
    Section,
    glossary,
    line,
    metric_words,
    render,
    words,
)
from graphormer_sepnorm.report.predictions import dots_of, parity_chart, structures
from graphormer_sepnorm.report.reported import constant_words, plain_picture, worst_first
from graphormer_sepnorm.report.scores import scores_grid
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.numbers import decimals_for, shown, shown_interval, shown_together
from graphormer_sepnorm.runs.plots import MAX_PANELS, at_bounds
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.table_model.compare import labels_of
from graphormer_sepnorm.table_model.reliability import low_coverage, molecule_errors, usual_confidence
from graphormer_sepnorm.table_model.scores import MEAN, STACK, Predicted, columns_of, scores_of_target, top_words
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import NAME
from graphormer_sepnorm.tables.splits import known_words
from graphormer_sepnorm.tasks import METRICS, TASKS, make_task


def report_folds(
    whole: RunFolder,
    task: TaskConfig,
    options: TableOptions,
    results: Sequence[dict],
    lines: Sequence[list[str]],
    repeats: Mapping[str, float] | None = None,
    last: Sequence[Section] = (),
) -> None:
    """Writes the report on the results of the folds, with further sections; ``repeats`` as ``repeatability``."""
    together = predicted_together(task, lines)
    together = replace(together, task=make_task(task).fitted(together.y))
    task, of_all, y = together.task, pooled(results, together), together.y
    titles = {name: options.targets[0] if TASKS[task.kind].adds_up else name for name in results[0]["targets"]}
    trust, grids, cards, verdicts = of_all.get("trust", {}), [], [], []
    for name, title in list(titles.items())[:MAX_PANELS]:
        folds, columns = [result["targets"][name] for result in results], columns_of(task)[name]
        facts, named = scores_of_target(together, columns), title if len(titles) > 1 else None
        grids.append(folds_grid(task, title, folds))
        grids.append(scores_grid(f"{title}, all folds together", facts, task, "mean of all labels"))
        cards += score_cards(task, title, folds, facts)
        verdict = verdict_of(task, name, facts, trust, named, repeats, y[:, columns])
        verdicts.append(line("headline.verdict", verdict=verdict))
    cards += [coverage_card(level, shares) for level, shares in trust.get("coverage", {}).items()]
    parity = (parity_of(together, lines, place) for place in range(min(len(task.targets), MAX_PANELS)))
    metric, charts, drawn = METRICS[task.metric].title, tuple(filter(None, parity)), {}
    sections = [Section("Scores", words("scores.folds", metric=metric, is_final=options.final), tuple(grids))]
    if charts:
        errors = molecule_errors(task, y, together.by_name[STACK])
        drawn = structures([row[1] for row in lines[1:]], errors)
        worst = [row for row in worst_first(errors)[:WORST].tolist() if not np.isnan(errors[row])]
        molecules = tuple(worst_molecule(together, lines, row) for row in worst)
        sections.append(Section("Worst predictions", ("The molecules with the largest errors.",), molecules=molecules))
    kind, named = "final" if options.final else "folds", titles.values()
    facts = {"molecules": len(lines) - 1, "folds": len(results), "options": options}
    summary = line(f"scores.{kind}_summary", kind=task.kind, titles=named, **facts)
    notes = *as_sentences(known_words(of_all), *low_coverage(of_all)), *words(f"scores.{kind}_note")
    parts = tuple(cards), notes, (*sections, *last, glossary(cards, sections)), tuple(verdicts), charts, drawn
    title = options.title or f"{whole.path.name}: {', '.join(named)}"
    write_atomically(whole.report, render(ReportPage(title, summary, *parts)))


def predicted_together(task: TaskConfig, lines: Sequence[list[str]]) -> Predicted:
    """The labels and their bounds, the predictions, and the means of the labels."""
    targets = len(task.targets)
    y, bounds = labels_of([row[3 : 3 + targets] for row in lines[1:]], targets)
    values = np.array([row[3 + targets : 3 + 2 * targets] for row in lines[1:]], float)
    return Predicted(task, y, {STACK: values}, np.nanmean(y, axis=0), bounds if np.isfinite(bounds).any() else None)


def folds_grid(task: TaskConfig, title: str, folds: Sequence[dict]) -> Grid:
    """The scores of a target, a row per fold; ``folds`` as ``scores_by_target``."""
    columns = {
        "fold": [f"fold-{number}" for number in range(len(folds))],
        "labels": [f"{fold['n']:,}" for fold in folds],
    }
    lead = folds[0]["scores"][STACK][task.metric]
    for name, title_of_name in {STACK: "prediction", "forest": "forest", MEAN: constant_words(task)}.items():
        if all(name in fold["scores"] for fold in folds):
            columns[title_of_name] = shown_together((fold["scores"][name][task.metric] for fold in folds), lead)
    return Grid.of(columns, title)


def score_cards(task: TaskConfig, title: str, folds: Sequence[dict], facts: dict) -> Iterator[Card]:
    """A card with the mean score of a target over the folds, if all folds have one, and that of all labels together."""
    scores = [fold["scores"][STACK][task.metric] for fold in folds]
    if None in scores:
        return
    whole, ends = facts["scores"][STACK][task.metric], facts.get("interval", {}).get(STACK)
    numbers = statistics.fmean(scores), statistics.stdev(scores), min(scores), max(scores), whole, *(ends or ())
    texts = words(
        "scores.folds_card",
        folds=len(scores),
        labels=facts["n"],
        numbers=shown_together(numbers, numbers[0]),
        interval=shown_interval(ends, decimals_for(numbers, numbers[0])) if ends else None,
        bounds=facts.get("bounds", {}).get(STACK),
        top=top_words(facts.get("top", {})),
    )
    yield Card(title, shown_together(numbers, numbers[0])[0], metric_words(task.metric), texts)


def pooled(results: Sequence[dict], together: Predicted) -> dict:
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
    covered = [result["trust"]["coverage"][level] for result in results]
    shares = {
        name: sum((shares[name] or 0) * n for shares, n in zip(covered, numbers, strict=True)) / sum(numbers)
        for name, numbers in counts.items()
        if sum(numbers)
    }
    return found | {"trust": {"coverage": {level: shares}}}


def parity_of(together: Predicted, lines: Sequence[list[str]], place: int) -> Chart | None:
    """Predicted against measured values of a target of a regression; None without labels."""
    y, predicted = together.y[:, place], together.by_name[STACK][:, place]
    bounds = None if together.bounds is None else together.bounds[:, place]
    measured, arrows = at_bounds(y, bounds)
    if together.task.kind != "regression" or np.isnan(measured).all():
        return None
    decimals = decimals_of(measured[~np.isnan(measured)])

    def text_of(row: int) -> str:
        sign = {1: ">", -1: "<"}.get(int(arrows[row]), "")
        facts = f"measured {sign}{shown(measured[row], decimals)}", f"predicted {shown(predicted[row], decimals)}"
        return "\n".join((title_of(lines, row), lines[row + 1][1], *facts))

    return parity_chart(together.task.targets[place], dots_of(y, bounds, predicted, text_of))


def title_of(lines: Sequence[list[str]], place: int) -> str:
    """The name of a molecule, or its row, and the fold in which it was tested."""
    row, _, fold, *_ = line = lines[place + 1]
    name = line[-1] if lines[0][-1] == NAME else ""
    return f"{name or f'row {row}'}, {fold}"


def worst_molecule(together: Predicted, lines: Sequence[list[str]], row: int) -> Molecule:
    targets = together.task.targets
    facts: list[tuple[str, str]] = []
    for place in np.flatnonzero(~np.isnan(together.y[row]))[:MAX_PANELS].tolist():
        labels, of = together.y[:, place], f" {targets[place]}" if len(targets) > 1 else ""
        decimals = decimals_of(labels[~np.isnan(labels)])
        known, found = (round(float(each[row, place]), decimals) for each in (together.y, together.by_name[STACK]))
        texts = [shown(number, decimals) for number in (known, found, abs(found - known))]
        facts += zip((f"measured{of}", f"predicted{of}", f"error{of}"), texts, strict=True)
    smiles = lines[row + 1][1]
    return Molecule(title_of(lines, row), smiles, plain_picture(smiles), tuple(facts))
