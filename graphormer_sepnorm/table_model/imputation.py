"""Imputation of censored labels from the labels of other molecules (Buckley and James, Biometrika 1979).

A Gaussian process predicts each molecule from all others (Rasmussen and Williams, 2006, section 5.4.2); a bound becomes
the mean of this normal distribution beyond it, ten times. Axis letters: R training molecules, T targets."""

from dataclasses import replace

import numpy as np

from graphormer_sepnorm.table_model.labels import Labels, Target
from graphormer_sepnorm.table_model.machines import Compared, Landmarks, learn_weights, spread, standardized
from graphormer_sepnorm.tasks.censored import Censored
from graphormer_sepnorm.tasks.limits import limited

ROUNDS = 10


def completed(compared: Compared, labels: Labels, learnt: np.ndarray) -> Labels:
    """The labels with values in place of the bounds of the molecules ``learnt``, from their labels only."""
    if labels.bounds is None:
        return labels
    y = labels.y.copy()
    for place in range(y.shape[1]):
        target = labels.target(place)
        rows = learnt[np.isin(learnt, target.known) & (target.weight[learnt] > 0)]
        exact = ~np.isnan(y[rows, place])
        if exact.any() and not exact.all():
            y[rows, place] = imputed(compared, rows, target.take(rows))
    return replace(labels, y=np.where(np.isnan(labels.y), limited(y, labels.task.limits), y), bounds=None)


def imputed(compared: Compared, rows: np.ndarray, target: Target) -> np.ndarray:
    """The labels [R] of molecules with the indices ``rows``, some of which are censored."""
    assert target.bounds is not None
    weights, noise = learn_weights(compared, rows, target)
    own = noise * spread(target.weight)
    if compared.with_all:
        inverse = np.linalg.inv(compared.mixed_among(rows, weights) + np.diag(own))
        variance = 1 / np.diag(inverse)
    else:
        process = Landmarks.of(compared, rows, weights, noise, target)
        variance = 1 / (process.precision * (1 - process.leverage).clip(min=0.001))
    bounded, (low, high) = np.isnan(target.y), target.bounds.T
    found = np.where(bounded, np.where(np.isfinite(low), low, high), target.y)
    for _ in range(ROUNDS):
        y, mean, deviation = standardized(found, target.weight)
        rest = inverse @ y if compared.with_all else process.precision * (y - process.smooth(y))
        without = mean + deviation * (y - variance * rest)  # what the other labels predict
        expected = Censored(target.bounds, without, deviation * np.sqrt(variance)).expected
        found = np.where(bounded, expected, target.y)
    return found
