"""The learning curve: out-of-fold scores of the kernel for a quarter, a half and all of the training molecules.

Axis letters: M molecules, T targets, C columns of a target.
"""

import numpy as np

from graphormer_sepnorm.report.charts import learning_chart
from graphormer_sepnorm.report.headline import gain_of
from graphormer_sepnorm.report.page import Section
from graphormer_sepnorm.report.reported import Reported, Trained
from graphormer_sepnorm.report.words import line, words
from graphormer_sepnorm.runs.numbers import decimals_for
from graphormer_sepnorm.runs.plots import MAX_PANELS
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
)
from graphormer_sepnorm.table_model.stacking import each_by_itself
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.tasks.censored import log_likelihoods

PARTS = (0.25, 0.5)  # of the training molecules; the scores for all of them are known
LEAST_MOLECULES = 40  # fewest training molecules, of which a quarter still shows something
MOST_LABELS = 2_000  # most training molecules times targets: a few seconds


def learning_curve(trained: Trained) -> dict | None:
    """Mean numbers of training molecules, ``rows``, and ``targets``, by name the ``curve_of_target`` for these numbers.

    Only the kernel is fitted, to similarities that have been computed before. None without a kernel, and if there are
    fewer than ``LEAST_MOLECULES`` molecules or more than ``MOST_LABELS`` labels.
    """
    members, labels, folds = trained.fitted.model.members, trained.labels, trained.folds
    kernel = members.get("kernel")
    if not isinstance(kernel, KernelMember) or len(labels) < LEAST_MOLECULES or labels.y.size > MOST_LABELS:
        return None
    compared = Compared(trained.molecules.of(kernel.reference.similarities), landmarks(len(labels)))
    predictions = [kernel_out_of_fold(compared, labels, folds, part, trained.options.seed) for part in PARTS]
    predictions.append(trained.fitted.out_of_fold.by_member[list(members).index("kernel")])
    mean = np.mean([len(learnt) for learnt, _ in folds.parts()])
    values = each_by_itself(labels.task, np.stack(predictions))
    targets = {
        name: curve_of_target(labels, [each[:, columns] for each in values], columns, folds.predicted)
        for name, columns in columns_of(labels.task).items()
    }
    return {"rows": [round(part * mean) for part in (*PARTS, 1)], "targets": targets}


def kernel_out_of_fold(compared: Compared, labels: Labels, folds: Folds, part: float, seed: int) -> np.ndarray:
    """Out-of-fold predictions [M, T] of kernel machines that are fitted to a part of the molecules outside the fold.

    The ``seed`` chooses the molecules: those of a quarter are among those of the half.
    """
    decisions = np.full_like(labels.y, np.nan)
    for number, (learnt, predicted) in enumerate(folds.parts()):
        order = np.random.default_rng([seed, number]).permutation(learnt)
        rows = np.sort(order[: round(part * len(learnt))])
        machines = fit_machines(compared, completed(compared, labels, rows), rows)
        decisions[predicted] = machines(compared.similarities[predicted])
    return as_values(decisions, calibration_of(labels, decisions, folds.predicted))


def curve_of_target(labels: Labels, predictions: list[np.ndarray], columns: slice, rows: np.ndarray) -> dict:
    """``values`` of the metric of predictions [M, C] for rows, each with its 95 % ``interval``, None where undefined.

    ``last_doubling`` is the ``paired_difference`` of the last two. With censored labels, there is also their mean
    ``log_likelihood``.
    """
    metric, scored = labels.task.metric, rows[~np.isnan(labels.y[rows, columns]).all(axis=1)]
    y, predicted = labels.y[scored, columns], [each[scored] for each in predictions]
    found: dict = {"values": [known(METRICS[metric].or_nan(y, each)) for each in predicted]}
    if 2 <= len(y) <= MOST_DRAWN:
        drawn, (*_, half, whole) = resampled(metric, y, predicted), predicted
        change = paired_difference(METRICS[metric], y, whole, half, drawn[:, :-3:-1])
        found |= {"interval": [interval(each) for each in drawn.T], "last_doubling": change}
    else:
        found |= {"interval": [None] * len(predicted), "last_doubling": {"difference": None, "interval": None}}
    if labels.bounded[rows, columns].any():
        assert labels.bounds is not None
        censored = labels.y[rows, columns][:, 0], labels.bounds[rows, columns][:, 0]
        means = (float(np.nanmean(log_likelihoods(*censored, each[rows, 0]))) for each in predictions)
        found["log_likelihood"] = list(map(known, means))
    return found


def learning_section(page: Reported) -> Section | None:
    """The learning curve, if the kernel was fitted to parts of the training molecules."""
    if (curve := page.result.get("learning_curve")) is None:
        return None
    charts = []
    for name, facts in list(curve["targets"].items())[:MAX_PANELS]:
        gain = gain_of(facts["last_doubling"], page.task.metric)
        decimals = None if gain is None else decimals_for(gain, facts["values"][-1])
        fewer, most = curve["rows"][-2:]
        said = line("scores.curve", fewer=fewer, all=most, metric=page.metric, gain=gain, decimals=decimals)
        charts.append(learning_chart(page.title_of(name), page.metric, curve["rows"], facts, said))
    paragraphs = words("scores.learning", folds=len(page.folds), has_others=len(page.model.members) > 1)
    return Section("Learning curve", paragraphs, charts=tuple(charts))
