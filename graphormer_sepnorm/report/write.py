"""The end of training on a table: scores, predictions, pictures and the report, also of folds and of all rows.

``lines`` are those of ``predictions.csv``: a header, and for each molecule row, SMILES, fold, labels and predictions.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.predict.training_rows import decimals_of
from graphormer_sepnorm.report.headline import as_sentences, cards, coverage_card, notes, summary, verdict_of, verdicts
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
from graphormer_sepnorm.report.predictions import dots_of, hero, parity_chart, structures
from graphormer_sepnorm.report.reported import Reported, Trained, constant_words, plain_picture, worst_first
from graphormer_sepnorm.report.scores import learning_curve, scores_grid
from graphormer_sepnorm.report.sections import LATE, SECTIONS, use_section
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.numbers import decimals_for, shown, shown_interval, shown_together
from graphormer_sepnorm.runs.plots import MAX_PANELS, at_bounds, plot_predictions
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.table_model import evaluate, reliability
from graphormer_sepnorm.table_model.compare import labels_of_texts
from graphormer_sepnorm.table_model.fit import LEAST_SHARE
from graphormer_sepnorm.table_model.model import Stacked
from graphormer_sepnorm.table_model.scores import (
    MEAN,
    STACK,
    Predicted,
    columns_of,
    scores_of,
    scores_of_target,
    top_words,
)
from graphormer_sepnorm.table_model.stacking import each_by_itself
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import NAME, TABLE, label_texts
from graphormer_sepnorm.tables.remarks import repeatability
from graphormer_sepnorm.tables.splits import known_words
from graphormer_sepnorm.tables.writers.base import DIGITS
from graphormer_sepnorm.tasks import METRICS, TASKS, make_task


def report(trained: Trained) -> dict:
    """Scores a model on its test rows, or without such out of fold; writes all files of the run with its predictions.

    The result is that of ``evaluate_table``, with ``facts_out_of_fold`` and perhaps a ``learning_curve``.
    """
    if trained.options.final:
        return report_final(trained)
    run, fitted, labels, folds = trained.run, trained.fitted, trained.labels, trained.folds
    model, rows = fitted.model, evaluate.rows_for_test(run, fitted.model)
    assert model.trust is not None
    scored = evaluate.score_rows(model, rows, evaluate.means_of(run, model))
    looked = reliability.compare_rows(model, rows.smiles, scored, [sample.conditions for sample in rows.samples])
    trust = {
        "calibrated_on": int((~np.isnan(labels.y) | labels.bounded)[folds.predicted].any(axis=1).sum()),
        "calibrated_by": "molecules with out-of-fold predictions" if folds.predict_all else "validation molecules",
        **reliability.measure_trust(model.trust, scored, scored.plain),
        **looked.by_similarity(),
    }
    result = scored.result | trained.labelled.known | facts_out_of_fold(trained, trust)
    if curve := learning_curve(trained):
        result["learning_curve"] = curve
    final = replace(scored, result=result)
    final.write(run)
    for page in pages_of(Reported(**vars(trained), test=final, plain=scored.plain, looked=looked)):
        write_atomically(run.report, render(page))
    return result


def facts_out_of_fold(trained: Trained, trust: dict) -> dict:
    """The parts of a result that do not come from test rows: scores of the members and the whole, and the trust."""
    labels, rows, out_of_fold = trained.labels, trained.folds.predicted, trained.fitted.out_of_fold
    names = [*trained.fitted.model.members, STACK]
    values = [*each_by_itself(labels.task, out_of_fold.by_member), out_of_fold.values]
    by_name = {name: each[rows] for name, each in zip(names, values, strict=True)}
    part = labels.take(rows)
    scores: dict[str, dict] = {name: scores_of(labels.task, part.y, each) for name, each in by_name.items()}
    predicted = Predicted(labels.task, part.y, by_name, np.nanmean(labels.y, axis=0), part.bounds)
    for target, columns in columns_of(labels.task).items():
        for name, bounds in predicted.with_bounds(columns).items():
            if name in scores:
                scores[name].setdefault("bounds", {})[target] = bounds
    facts = {"seed": trained.options.seed, "folds": len(trained.folds), "out_of_fold": scores, "trust": trust}
    return facts | trained.fitted.notes


def pages_of(page: Reported) -> Iterator[ReportPage]:
    """The page that describes a run: first without the sections that take long, then whole."""
    title = f"{page.run.path.name}: {', '.join(map(page.title_of, page.result['targets']))}"
    top, drawn = cards(page), structures(page.looked.smiles, page.looked.errors)
    first, last = (page.options.title or title, summary(page), top, notes(page)), (verdicts(page), tuple(hero(page)))
    written: dict[Callable, Section | None] = {}
    for writers in (set(SECTIONS) - LATE, LATE):
        written |= {write: write(page) for write in SECTIONS if write in writers}
        sections = tuple(section for write in SECTIONS if (section := written.get(write)))
        yield ReportPage(*first, (*sections, glossary(top, sections)), *last, drawn)


def report_final(trained: Trained) -> dict:
    """As ``report``, on predictions out of fold; intervals that are scored on a fold are calibrated on the others."""
    run, labels, folds, options = trained.run, trained.labels, trained.folds, trained.options
    whole, results = np.arange(len(labels)), []
    final = scores_of_rows(trained, whole, whole)
    for outside, inside in folds.parts():
        try:
            scores = scores_of_rows(trained, inside, outside)
        except InputError:  # labels of one class
            continue
        results.append({**scores.result, "trust": coverage_of(trained, scores, outside)})
    lines = prediction_lines(trained, final)
    of_folds = pooled(results, predicted_together(labels.task, lines)) if results else {}
    result = final.result | facts_out_of_fold(trained, of_folds.get("trust", {}))
    if distributed.rank() == 0:
        run.write_predictions(lines)
        plot_predictions(final.task, final.y, final.prediction, run.predictions_picture(final.task.kind), final.bounds)
        repeats = repeatability(options, trained.labelled)
        level = reliability.usual_confidence(of_folds.get("trust", {}))
        use = (use_section(run.path, trained.fitted.model, level),)
        report_folds(run, labels.task, options, results or [{**result, "trust": {}}], lines, repeats, use)
        run.write_test(result)
    return result


def scores_of_rows(trained: Trained, rows: np.ndarray, others: np.ndarray) -> evaluate.StackScores:
    """The scores of predictions out of fold for some rows, compared with the mean labels of others."""
    part, out = trained.labels.take(rows), trained.fitted.out_of_fold
    source = {"dataset": TABLE, "split": evaluate.OUT_OF_FOLD}
    scored = evaluate.ScoredRows([""] * len(rows), part.y, part.bounds, source)
    stacked = Stacked(out.by_member[:, rows], out.values[rows], out.spread[rows])
    means = np.nanmean(trained.labels.y[others], axis=0)
    return evaluate.score_predictions(trained.fitted.model, scored, means, stacked)


def coverage_of(trained: Trained, scores: evaluate.StackScores, others: np.ndarray) -> dict:
    """As ``measure_trust``, of intervals that are calibrated on other rows; empty without intervals."""
    trust, out, labels = trained.fitted.model.trust, trained.fitted.out_of_fold, trained.labels
    if trust is None or trust.intervals is None or np.isnan(labels.y[others]).all(axis=0).any():
        return {}
    bounds = None if labels.bounds is None else labels.bounds[others]
    intervals = fit_intervals(labels.y[others], out.values[others], out.spread[others], LEAST_SHARE, bounds)
    return reliability.measure_trust(replace(trust, intervals=intervals), scores, scores.plain)


def prediction_lines(trained: Trained, final: evaluate.StackScores) -> list[list]:
    """The predictions as ``Scores.lines``; the split of a molecule is its fold."""
    labelled, folds = trained.labelled, trained.folds.numbers.tolist()
    targets, digits = final.task.targets, DIGITS["precise" if final.task.offset else "number"]
    lines: list[list] = [["row", "smiles", "split", *targets, *(f"{name}_predicted" for name in targets)]]
    for row, fold, values in zip(labelled.rows, folds, final.prediction.tolist(), strict=True):
        predicted = [f"{value:.{digits}g}" for value in values]
        lines.append([row.number, row.smiles, f"fold-{fold}", *label_texts(row), *predicted])
    if labelled.names:
        names: Sequence[str] = [NAME, *(labelled.names.get(row.number, "") for row in labelled.rows)]
        lines = [[*line, name] for line, name in zip(lines, names, strict=True)]
    return lines


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
    trust, grids, verdicts = of_all.get("trust", {}), [], []
    top: list[Card] = []
    for name, title in list(titles.items())[:MAX_PANELS]:
        folds, columns = [result["targets"][name] for result in results], columns_of(task)[name]
        facts, named = scores_of_target(together, columns), title if len(titles) > 1 else None
        grids.append(folds_grid(task, title, folds))
        grids.append(scores_grid(f"{title}, all folds together", facts, task, "mean of all labels"))
        top += score_cards(task, title, folds, facts)
        verdict = verdict_of(task, name, facts, trust, named, repeats, y[:, columns])
        verdicts.append(line("headline.verdict", verdict=verdict))
    top += [coverage_card(level, shares) for level, shares in trust.get("coverage", {}).items()]
    parity = (parity_of(together, lines, place) for place in range(min(len(task.targets), MAX_PANELS)))
    metric, charts, drawn = METRICS[task.metric].title, tuple(filter(None, parity)), {}
    sections = [Section("Scores", words("scores.folds", metric=metric, is_final=options.final), tuple(grids))]
    if charts:
        errors = reliability.molecule_errors(task, y, together.by_name[STACK])
        drawn = structures([row[1] for row in lines[1:]], errors)
        worst = [row for row in worst_first(errors)[:WORST].tolist() if not np.isnan(errors[row])]
        molecules = tuple(worst_molecule(together, lines, row) for row in worst)
        sections.append(Section("Worst predictions", ("The molecules with the largest errors.",), molecules=molecules))
    kind, named = "final" if options.final else "folds", titles.values()
    facts = {"molecules": len(lines) - 1, "folds": len(results), "options": options}
    summary = line(f"scores.{kind}_summary", kind=task.kind, titles=named, **facts)
    notes = *as_sentences(known_words(of_all), *reliability.low_coverage(of_all)), *words(f"scores.{kind}_note")
    parts = tuple(top), notes, (*sections, *last, glossary(top, sections)), tuple(verdicts), charts, drawn
    title = options.title or f"{whole.path.name}: {', '.join(named)}"
    write_atomically(whole.report, render(ReportPage(title, summary, *parts)))


def predicted_together(task: TaskConfig, lines: Sequence[list[str]]) -> Predicted:
    """The labels and their bounds, the predictions, and the means of the labels."""
    targets = len(task.targets)
    y, bounds = labels_of_texts([row[3 : 3 + targets] for row in lines[1:]], targets)
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
    facts: dict = {
        name: sum(result[name] for result in results)
        for name in ("n", "training_molecules", "training_families")
        if all(name in result for result in results)
    }
    if censored := sum((Counter(result.get("censored", {})) for result in results), Counter()):
        facts["censored"] = dict(censored)
    counts = {name: [result["targets"][name]["n"] for result in results] for name in results[0]["targets"]}
    facts["targets"] = {name: {"n": sum(numbers)} for name, numbers in counts.items()}
    for name, columns in columns_of(together.task).items():
        parts = {"bounds": together.with_bounds(columns), "top": together.tops(columns)}
        facts["targets"][name] |= {part: scores for part, scores in parts.items() if scores}
    levels = {reliability.usual_confidence(result["trust"]) for result in results}
    level = levels.pop()
    if levels or level is None:
        return facts
    covered = [result["trust"]["coverage"][level] for result in results]
    shares = {
        name: sum((shares[name] or 0) * n for shares, n in zip(covered, numbers, strict=True)) / sum(numbers)
        for name, numbers in counts.items()
        if sum(numbers)
    }
    return facts | {"trust": {"coverage": {level: shares}}}


def parity_of(together: Predicted, lines: Sequence[list[str]], place: int) -> Chart | None:
    """Predicted against measured values of a target of a regression; None without labels."""
    bounds = None if together.bounds is None else together.bounds[:, place]
    y, predicted = together.y[:, place], together.by_name[STACK][:, place]
    measured, _ = at_bounds(y, bounds)
    if together.task.kind != "regression" or np.isnan(measured).all():
        return None
    decimals = decimals_of(measured[~np.isnan(measured)])

    def text_of(row: int) -> str:
        facts = [f"{name} {text}" for name, text in texts_of(together, row, place, decimals).items()]
        return "\n".join((title_of_line(lines, row), lines[row + 1][1], *facts[:2]))

    return parity_chart(together.task.targets[place], dots_of(y, bounds, predicted, text_of))


def texts_of(together: Predicted, row: int, place: int, decimals: int) -> dict[str, str]:
    """The label of a molecule, or its bound, its prediction and the error."""
    bounds = None if together.bounds is None else together.bounds[[row], place]
    (measured,), (arrow,) = at_bounds(together.y[[row], place], bounds)
    values = (measured, together.by_name[STACK][row, place])
    label, prediction = (round(float(each), decimals) for each in values)
    texts = [shown(number, decimals) for number in (label, prediction, abs(prediction - label))]
    sign = {1: ">", -1: "<"}.get(int(arrow), "")
    return {"measured": sign + texts[0], "predicted": texts[1], "error": texts[2]}


def title_of_line(lines: Sequence[list[str]], place: int) -> str:
    """The name of a molecule, or its row, and the fold in which it was tested."""
    row, _, fold, *_ = line = lines[place + 1]
    name = line[-1] if lines[0][-1] == NAME else ""
    return f"{name or f'row {row}'}, {fold}"


def worst_molecule(together: Predicted, lines: Sequence[list[str]], row: int) -> Molecule:
    targets, facts = together.task.targets, []
    for place in np.flatnonzero(~np.isnan(together.y[row]))[:MAX_PANELS].tolist():
        labels, of = together.y[:, place], f" {targets[place]}" if len(targets) > 1 else ""
        texts = texts_of(together, row, place, decimals_of(labels[~np.isnan(labels)]))
        facts += [(f"{name}{of}", text) for name, text in texts.items()]
    smiles = lines[row + 1][1]
    return Molecule(title_of_line(lines, row), smiles, plain_picture(smiles), tuple(facts))
