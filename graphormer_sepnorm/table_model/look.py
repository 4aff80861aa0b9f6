"""A look at the network of the first fold: whether those of the other folds are worth their time.

Axis letters: K members, M molecules of the first fold, T targets."""

import numpy as np

from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.base import Setting
from graphormer_sepnorm.table_model.members.kernel import KernelMember, as_values, fit_tuned
from graphormer_sepnorm.table_model.stacking import combined, stacking_weights
from graphormer_sepnorm.tasks.censored import error_deviation

CLEAR = 2.0  # standard errors of a gain at which one of several targets decides
PARTS = 5  # of the first fold: the weights that predict a part are learnt on the others


def reason_to_stop(
    molecules: MoleculeFeatures, labels: Labels, folds: Folds, setting: Setting, output: np.ndarray
) -> str:
    if "kernel" not in setting.members:
        return ""
    gain, deviation = gains_of_network(molecules, labels, folds, setting, output)
    if not len(gain) or gain.mean() > 0 or (gain > CLEAR * deviation).any():
        return ""
    return "the network of the first fold does not lower the error out of fold"


def gains_of_network(
    molecules: MoleculeFeatures, labels: Labels, folds: Folds, setting: Setting, output: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """As ``gains``, of the first network with ``output`` [all molecules, D + T] and the machines on its embeddings."""
    kernel = setting.members["kernel"]
    assert isinstance(kernel, KernelMember)
    learnt, predicted = folds.parts()[0]
    width = output.shape[1] - labels.y.shape[1]
    known = setting.known_to(0, labels)
    _, _, decisions = fit_tuned(kernel, molecules, output[:, :width], known, learnt, predicted)
    tuned = as_values(decisions, kernel.calibration)
    without = {name: values[predicted] for name, values in setting.out_of_fold.items()}
    return gains(labels.take(predicted), without, {"networks": output[predicted, width:], "tuned kernel": tuned})


def gains(labels: Labels, without: dict[str, np.ndarray], more: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """By how much members lower the error of others, as a share of it, and its standard error: [T'] each."""
    before, after = squared_errors(labels, without), squared_errors(labels, without | more)
    counts = (~np.isnan(before - after)).sum(axis=0)
    before, after, counts = before[:, counts > 1], after[:, counts > 1], counts[counts > 1]
    change = (before - after) / np.maximum(2 * np.nanmean(before, axis=0), np.finfo(float).tiny)
    return np.nanmean(change, axis=0), np.nanstd(change, axis=0, ddof=1) / np.sqrt(counts)


def squared_errors(labels: Labels, by_name: dict[str, np.ndarray]) -> np.ndarray:
    """The squared errors [M, T] of the weighted mean of members, with weights that were learnt on other molecules."""
    by_member = np.stack(list(by_name.values())).astype(np.float64)
    prior = np.array([MEMBERS[name].share for name in by_name])
    parts, values = np.arange(len(labels)) % PARTS, np.full_like(labels.y, np.nan)
    for part in range(PARTS):
        inside = np.flatnonzero(parts == part)
        outside = np.flatnonzero(parts != part)
        weights = stacking_weights(labels.take(outside), by_member[:, outside], prior)
        values[inside] = combined(labels.task, by_member[:, inside], weights)
    deviation = 0.0 if labels.bounds is None else error_deviation(labels.y, labels.bounds, values)
    errors = labels.error(values, deviation) ** 2
    return errors if labels.weight is None else errors * labels.weight[:, None]
