"""The learning curve: out-of-fold scores of the kernel for a quarter, a half and all of the training molecules.

Axis letters: M molecules, T targets.
"""

import numpy as np

from graphormer_sepnorm.report.charts import learning_chart
from graphormer_sepnorm.report.headline import gain_of
from graphormer_sepnorm.report.page import Section
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.report.words import line, words
from graphormer_sepnorm.runs.numbers import decimals_for
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import FittedTable
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.machines import Compared, completed, fit_machines
from graphormer_sepnorm.table_model.members.kernel import KernelMember, as_values, calibration_of
from graphormer_sepnorm.table_model.reference import landmarks
from graphormer_sepnorm.table_model.scores import (
    MOST_DRAWN,
    columns_of,
    interval,
    known,
    paired_difference,
    resampled,
    score,
)
from graphormer_sepnorm.table_model.stacking import each_by_itself
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.tasks.censored import log_likelihoods

PARTS = (0.25, 0.5)  # of the training molecules; the scores for all of them are known
LEAST_MOLECULES = 40  # fewest training molecules, of which a quarter still shows something
MOST_LABELS = 2_000  # most training molecules times targets: a few seconds


def learning_curve(
    fitted: FittedTable, molecules: MoleculeFeatures, labels: Labels, folds: Folds, seed: int
) -> dict | None:
    """Scores of the kernel on the molecules outside each fold, by the number of molecules it was fitted to.

    Only the kernel is fitted, to similarities that have been computed before, so that the curve costs seconds. The
    ``seed`` chooses the molecules: those of a quarter are among those of the half.

    Returns:
        ``rows``, the mean numbers of training molecules; and ``targets``, by name ``values`` of the metric and its 95 %
        ``interval`` for each number, None where undefined, ``last_doubling``, the ``paired_difference`` of the last
        two, and with censored labels their mean ``log_likelihood`` for each number. None without a kernel, and if there
        are fewer than ``LEAST_MOLECULES`` molecules or more than ``MOST_LABELS`` labels.
    """
    kernel = fitted.model.members.get("kernel")
    if not isinstance(kernel, KernelMember) or len(labels) < LEAST_MOLECULES or labels.y.size > MOST_LABELS:
        return None
    compared = Compared(molecules.of(kernel.reference.similarities), landmarks(len(labels)))
    predictions = [kernel_out_of_fold(compared, labels, folds, part, seed) for part in PARTS]
    predictions.append(fitted.out_of_fold.by_member[list(fitted.model.members).index("kernel")])
    mean = np.mean([len(learnt) for learnt, _ in folds.parts()])
    values = each_by_itself(labels.task, np.stack(predictions))
    targets = {}
    for name, columns in columns_of(labels.task).items():
        given = labels, [each[:, columns] for each in values], columns, folds.predicted
        targets[name] = curve_of_target(*given) | bounds_of_curve(*given)
    return {"rows": [round(part * mean) for part in (*PARTS, 1)], "targets": targets}


def kernel_out_of_fold(compared: Compared, labels: Labels, folds: Folds, part: float, seed: int) -> np.ndarray:
    """Out-of-fold predictions [M, T] of kernel machines that are fitted to a part of the molecules outside the fold."""
    decisions = np.full_like(labels.y, np.nan)
    for number, (learnt, predicted) in enumerate(folds.parts()):
        order = np.random.default_rng([seed, number]).permutation(learnt)
        rows = np.sort(order[: round(part * len(learnt))])
        machines = fit_machines(compared, completed(compared, labels, rows), rows)
        decisions[predicted] = machines(compared.similarities[predicted])
    return as_values(decisions, calibration_of(labels, decisions, folds.predicted))


def curve_of_target(labels: Labels, predictions: list[np.ndarray], columns: slice, rows: np.ndarray) -> dict:
    """The metric of predictions [M, C] of the columns of one target on some rows, and its intervals."""
    metric = labels.task.metric
    rows = rows[~np.isnan(labels.y[rows, columns]).all(axis=1)]
    y, predictions = labels.y[rows, columns], [each[rows] for each in predictions]
    values = [known(score(METRICS[metric], y, each)) for each in predictions]
    if not 2 <= len(y) <= MOST_DRAWN:
        undefined = {"difference": None, "interval": None}
        return {"values": values, "interval": [None] * len(values), "last_doubling": undefined}
    drawn, (*_, half, whole) = resampled(metric, y, predictions), predictions
    change = paired_difference(METRICS[metric], y, whole, half, drawn[:, :-3:-1])
    return {"values": values, "interval": [interval(each) for each in drawn.T], "last_doubling": change}


def bounds_of_curve(labels: Labels, predictions: list[np.ndarray], columns: slice, rows: np.ndarray) -> dict:
    """The mean ``log_likelihoods`` for each number, if labels are censored; arguments as ``curve_of_target``."""
    if not labels.bounded[rows, columns].any():
        return {}
    assert labels.bounds is not None
    y, bounds = labels.y[rows, columns][:, 0], labels.bounds[rows, columns][:, 0]
    means = (float(np.nanmean(log_likelihoods(y, bounds, each[rows, 0]))) for each in predictions)
    return {"log_likelihood": list(map(known, means))}


def learning_section(page: Reported) -> Section | None:
    """The learning curve, if the kernel was fitted to parts of the training molecules."""
    curve = page.result.get("learning_curve")
    if curve is None:
        return None
    charts = tuple(
        learning_chart(page.title_of(name), page.metric, curve["rows"], facts, curve_words(page, curve["rows"], facts))
        for name, facts in list(curve["targets"].items())[:MAX_PANELS]
    )
    paragraphs = words("scores.learning", folds=len(page.folds), has_others=len(page.model.members) > 1)
    return Section("Learning curve", paragraphs, charts=charts)


def curve_words(page: Reported, rows: list[int], facts: dict) -> str:
    """How much the last doubling of the training molecules improved the score, if it clearly changed it."""
    gain = gain_of(facts["last_doubling"], page.task.metric)
    decimals = None if gain is None else decimals_for(gain, facts["values"][-1])
    return line("scores.curve", fewer=rows[-2], all=rows[-1], metric=page.metric, gain=gain, decimals=decimals)
