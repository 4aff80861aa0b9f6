"""Scores, predictions, pictures and the report at the end of training on a table.

Axis letters: M molecules, T targets.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.report.folds import pooled, predicted_together, report_folds
from graphormer_sepnorm.report.headline import cards, notes, summary, verdicts
from graphormer_sepnorm.report.learning import learning_curve
from graphormer_sepnorm.report.page import ReportPage, Section, glossary, render
from graphormer_sepnorm.report.predictions import hero, structures
from graphormer_sepnorm.report.reported import Reported, Trained
from graphormer_sepnorm.report.sections import LATE, SECTIONS, use_section
from graphormer_sepnorm.runs.plots import plot_predictions
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.table_model.evaluate import (
    OUT_OF_FOLD,
    ScoredRows,
    StackScores,
    means_of,
    rows_for_test,
    score_predictions,
    score_rows,
)
from graphormer_sepnorm.table_model.fit import LEAST_SHARE, FittedTable
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.model import Stacked
from graphormer_sepnorm.table_model.reliability import compare, measure_trust, usual_confidence
from graphormer_sepnorm.table_model.scores import STACK, Predicted, columns_of, scores_of
from graphormer_sepnorm.table_model.stacking import each_by_itself
from graphormer_sepnorm.tables.prepared_table import NAME, TABLE, label_texts
from graphormer_sepnorm.tables.remarks import repeatability
from graphormer_sepnorm.tables.writers.base import DIGITS


def report(trained: Trained) -> dict:
    """Scores a model on its test rows, or without such out of fold; writes all files of the run with its predictions.

    The result is that of ``evaluate_table``, with ``facts_out_of_fold`` and ``learning_curve``, if there is one.
    """
    return report_final(trained) if trained.options.final else report_table(trained)


def report_table(trained: Trained) -> dict:
    """As ``report``, on the test rows."""
    run, fitted, labels, folds = trained.run, trained.fitted, trained.labels, trained.folds
    model, rows = fitted.model, rows_for_test(run, fitted.model)
    assert model.trust is not None
    scored = score_rows(model, rows, means_of(run, model))
    looked = compare(model, rows.smiles, scored, [sample.conditions for sample in rows.samples])
    trust = {
        "calibrated_on": int((~np.isnan(labels.y) | labels.bounded)[folds.predicted].any(axis=1).sum()),
        "calibrated_by": "molecules with out-of-fold predictions" if folds.predict_all else "validation molecules",
        **measure_trust(model.trust, scored, scored.plain),
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
    """The parts of a result that do not come from test rows, and ``measure_trust``."""
    scores = scores_out_of_fold(trained.fitted, trained.labels, trained.folds)
    facts = {"seed": trained.options.seed, "folds": len(trained.folds), "out_of_fold": scores, "trust": trust}
    return facts | trained.fitted.notes


def scores_out_of_fold(fitted: FittedTable, labels: Labels, folds: Folds) -> dict[str, dict]:
    """The scores of the members and of the whole, by name, on the rows that a fold predicted; with ``BoundScores``."""
    rows, found = folds.predicted, fitted.out_of_fold
    names, values = [*fitted.model.members, STACK], [*each_by_itself(labels.task, found.by_member), found.values]
    by_name = {name: each[rows] for name, each in zip(names, values, strict=True)}
    part = labels.take(rows)
    scores: dict[str, dict] = {name: scores_of(labels.task, part.y, each) for name, each in by_name.items()}
    predicted = Predicted(labels.task, part.y, by_name, np.nanmean(labels.y, axis=0), part.bounds)
    for target, columns in columns_of(labels.task).items():
        for name, bounds in predicted.with_bounds(columns).items():
            if name in scores:
                scores[name].setdefault("bounds", {})[target] = bounds
    return scores


def pages_of(page: Reported) -> Iterator[ReportPage]:
    """The page that describes a run: first without the sections that take long, then whole."""
    title = f"{page.run.path.name}: {', '.join(map(page.title_of, page.result['targets']))}"
    top, drawn = cards(page), {} if page.looked is None else structures(page.looked.smiles, page.looked.errors)
    first, last = (page.options.title or title, summary(page), top, notes(page)), (verdicts(page), tuple(hero(page)))
    found: dict[Callable, Section | None] = {}
    for writers in (set(SECTIONS) - LATE, LATE):
        found |= {write: write(page) for write in SECTIONS if write in writers}
        sections = tuple(section for write in SECTIONS if (section := found.get(write)))
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
    lines = lines_of(trained, final)
    found = pooled(results, predicted_together(labels.task, lines)) if results else {}
    result = final.result | facts_out_of_fold(trained, found.get("trust", {}))
    if distributed.rank() == 0:
        run.write_predictions(lines)
        plot_predictions(final.task, final.y, final.prediction, run.predictions_picture(final.task.kind), final.bounds)
        repeats, level = repeatability(options, trained.labelled), usual_confidence(found.get("trust", {}))
        use = (use_section(run.path, trained.fitted.model, level),)
        report_folds(run, labels.task, options, results or [{**result, "trust": {}}], lines, repeats, use)
        run.write_test(result)
    return result


def scores_of_rows(trained: Trained, rows: np.ndarray, others: np.ndarray) -> StackScores:
    """The scores of predictions out of fold for some rows, compared with the mean labels of others."""
    part, out = trained.labels.take(rows), trained.fitted.out_of_fold
    asked = ScoredRows([""] * len(rows), part.y, part.bounds, {"dataset": TABLE, "split": OUT_OF_FOLD})
    stacked = Stacked(out.by_member[:, rows], out.values[rows], out.spread[rows])
    means = np.nanmean(trained.labels.y[others], axis=0)
    return score_predictions(trained.fitted.model, asked, means, stacked)


def coverage_of(trained: Trained, scores: StackScores, others: np.ndarray) -> dict:
    """As ``measure_trust``, of intervals that are calibrated on other rows; empty without intervals."""
    trust, out, labels = trained.fitted.model.trust, trained.fitted.out_of_fold, trained.labels
    if trust is None or trust.intervals is None or np.isnan(labels.y[others]).all(axis=0).any():
        return {}
    bounds = None if labels.bounds is None else labels.bounds[others]
    intervals = fit_intervals(labels.y[others], out.values[others], out.spread[others], LEAST_SHARE, bounds)
    return measure_trust(replace(trust, intervals=intervals), scores, scores.plain)


def lines_of(trained: Trained, final: StackScores) -> list[list]:
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
