"""Calibrated probabilities, learnt from molecules that the model was not fitted to.

Axis letters: M molecules, K molecules of calibration, T targets.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from graphormer_sepnorm.runs.arrays import Stored

LARGEST_LOGIT = 13.8  # of a probability of one in a million


@dataclass(frozen=True)
class Calibration:
    """Probabilities that mean what they say, by Platt's scaling: the logit is stretched and shifted.

    Source: Platt, "Probabilistic outputs for support vector machines", 1999, with his targets, which are not quite 0
    and 1.
    """

    slope: Annotated[np.ndarray, Stored(np.float64, 1)]  # [T]; 1 and an intercept of 0 leave a target as it is
    intercept: Annotated[np.ndarray, Stored(np.float64, 1)]

    def __call__(self, probability: np.ndarray) -> np.ndarray:
        """Calibrated probabilities [M, T] from the model's."""
        return 1 / (1 + np.exp(-(self.slope * limited_logit(probability) + self.intercept)))


def limited_logit(probability: np.ndarray) -> np.ndarray:
    """The logarithm of p / (1 - p), float64, at most ``LARGEST_LOGIT`` on either side."""
    with np.errstate(divide="ignore"):
        probability = np.asarray(probability, np.float64)
        return (np.log(probability) - np.log1p(-probability)).clip(-LARGEST_LOGIT, LARGEST_LOGIT)


def fit_calibration(y: np.ndarray, probability: np.ndarray) -> Calibration:
    """Calibrates with labels [K, T], NaN where missing, and probabilities of class 1 of molecules not learnt from.

    A target with labels of one class stays as it is; one that is ranked against its labels is only shifted to the mean.
    """
    from sklearn.linear_model import LogisticRegression  # its import takes seconds

    slope, intercept = np.ones(y.shape[1]), np.zeros(y.shape[1])
    for target, (column, predicted) in enumerate(zip(y.T, probability.T, strict=True)):
        labelled = ~np.isnan(column)
        positive = column[labelled] == 1
        ones, zeros = positive.sum(), (~positive).sum()
        if not ones or not zeros:
            continue
        share = np.where(positive, (ones + 1) / (ones + 2), 1 / (zeros + 2))
        logits = limited_logit(predicted[labelled])
        x = np.tile(logits, 2)[:, None]
        classes = np.repeat([1, 0], len(positive))
        found = LogisticRegression(C=np.inf).fit(x, classes, sample_weight=np.concatenate([share, 1 - share]))
        if found.coef_[0, 0] > 0:
            slope[target], intercept[target] = found.coef_[0, 0], found.intercept_[0]
        else:
            intercept[target] = shift_to(share.mean(), logits)
    return Calibration(slope, intercept)


def shift_to(mean: float, logits: np.ndarray) -> float:
    """The number to add to logits [M] for probabilities of this mean, which is between 0 and 1."""
    from scipy.optimize import brentq  # its import takes a while

    most = 2 * LARGEST_LOGIT
    return brentq(lambda shift: (1 / (1 + np.exp(-logits - shift))).mean() - mean, -most, most)


def calibration_error(y: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """By how much probabilities miss the share of class 1, the mean over molecules in ten bins of probability [T].

    Source: Guo et al., "On calibration of modern neural networks", ICML 2017, there of the more probable class.
    """
    errors = np.full(y.shape[1], np.nan)
    for target, (column, predicted) in enumerate(zip(y.T, probability.T, strict=True)):
        labelled = ~np.isnan(column)
        if labelled.any():
            bins = np.minimum((10 * predicted[labelled]).astype(int), 9)
            excess = np.bincount(bins, np.subtract(predicted, column, dtype=np.float64)[labelled])
            errors[target] = np.abs(excess).sum() / labelled.sum()
    return errors


def brier_score(y: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """The mean squared error of probabilities [T]; arguments as ``calibration_error``."""
    labelled = ~np.isnan(y)
    squares = np.where(labelled, np.subtract(np.nan_to_num(y), probability, dtype=np.float64) ** 2, 0).sum(axis=0)
    return np.where(labelled.any(axis=0), squares / np.maximum(labelled.sum(axis=0), 1), np.nan)
