"""Scores and report of a model that is fitted to all rows: each molecule is predicted out of fold.

Axis letters: M molecules, T targets.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.report.folds import pooled, predicted_together, report_folds
from graphormer_sepnorm.report.write import scores_out_of_fold
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.plots import plot_predictions
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.table_model.evaluate import OUT_OF_FOLD, ScoredRows, StackScores, score_predictions
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import LEAST_SHARE, FittedTable
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.model import Stacked
from graphormer_sepnorm.table_model.reliability import measure_trust
from graphormer_sepnorm.tables.labels import LabelledTable, TableOptions
from graphormer_sepnorm.tables.prepared_table import NAME, TABLE, label_texts
from graphormer_sepnorm.tables.remarks import repeatability
from graphormer_sepnorm.tables.writers import DIGITS


def report_final(
    run: RunFolder,
    fitted: FittedTable,
    molecules: MoleculeFeatures,
    labels: Labels,
    folds: Folds,
    labelled: LabelledTable,
    options: TableOptions,
) -> dict:
    """Scores the predictions out of fold of a model of all rows; writes the files of ``report_table`` and the report.

    Arguments as ``report_table``. Intervals that are scored on a fold are calibrated on the others.

    Returns:
        as ``report_table``, with "out of fold" as its ``split``.
    """
    whole = np.arange(len(labels))
    final = scores_of_rows(fitted, labels, whole, whole)
    results = []
    for outside, inside in folds.parts():
        try:
            scores = scores_of_rows(fitted, labels, inside, outside)
        except InputError:  # labels of one class
            continue
        results.append({**scores.result, "trust": coverage_of(fitted, labels, scores, inside, outside)})
    lines = lines_of(labelled, folds, final)
    found = pooled(results, predicted_together(labels.task, lines)) if results else {}
    result = {
        **final.result,
        "seed": options.seed,
        "folds": len(folds),
        "out_of_fold": scores_out_of_fold(fitted, labels, folds),
        "trust": found.get("trust", {}),
        **fitted.notes,
    }
    if distributed.rank() == 0:
        run.write_predictions(lines)
        plot_predictions(final.task, final.y, final.prediction, run.predictions_picture(final.task.kind), final.bounds)
        repeats = repeatability(options, labelled)
        report_folds(run, labels.task, options, results or [{**result, "trust": {}}], lines, repeats)
        run.write_test(result)
    return result


def scores_of_rows(fitted: FittedTable, labels: Labels, rows: np.ndarray, others: np.ndarray) -> StackScores:
    """The scores of predictions out of fold for some rows, compared with the mean labels of others."""
    part, out = labels.take(rows), fitted.out_of_fold
    asked = ScoredRows([""] * len(rows), part.y, part.bounds, {"dataset": TABLE, "split": OUT_OF_FOLD})
    stacked = Stacked(out.by_member[:, rows], out.values[rows], out.spread[rows])
    return score_predictions(fitted.model, asked, np.nanmean(labels.y[others], axis=0), stacked).final


def coverage_of(fitted: FittedTable, labels: Labels, scores: StackScores, rows: np.ndarray, others: np.ndarray) -> dict:
    """As ``measure_trust``, of intervals that are calibrated on other rows; empty without intervals."""
    trust, out = fitted.model.trust, fitted.out_of_fold
    if trust is None or trust.intervals is None or np.isnan(labels.y[others]).all(axis=0).any():
        return {}
    bounds = None if labels.bounds is None else labels.bounds[others]
    intervals = fit_intervals(labels.y[others], out.values[others], out.spread[others], LEAST_SHARE, bounds)
    return measure_trust(replace(trust, intervals=intervals), scores, scores)


def lines_of(labelled: LabelledTable, folds: Folds, final: StackScores) -> list[list]:
    """The predictions as ``Scores.lines``; the split of a molecule is its fold."""
    targets, digits = final.task.targets, DIGITS["precise" if final.task.offset else "number"]
    lines: list[list] = [["row", "smiles", "split", *targets, *(f"{name}_predicted" for name in targets)]]
    for row, fold, values in zip(labelled.rows, folds.numbers.tolist(), final.prediction.tolist(), strict=True):
        predicted = [f"{value:.{digits}g}" for value in values]
        lines.append([row.number, row.smiles, f"fold-{fold}", *label_texts(row), *predicted])
    if labelled.names:
        names: Sequence[str] = [NAME, *(labelled.names.get(row.number, "") for row in labelled.rows)]
        lines = [[*line, name] for line, name in zip(lines, names, strict=True)]
    return lines
