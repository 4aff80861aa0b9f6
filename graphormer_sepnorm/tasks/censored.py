"""Labels that are bounds, as "<5" and ">10", under a normal error: expectations, likelihood and scores.

Source: Tobin, Econometrica 1958; the likelihood is maximized as by Dempster, Laird and Rubin, JRSS B 1977.
M molecules, T targets. A label is a number, or NaN with one finite bound.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

ROUNDS = 20  # of expectation and maximization
LEAST = 1e-12  # smallest standard deviation
MOST_PAIRED = 5_000  # molecules of which all pairs are compared
MOST_TOP, TOP_SHARE, LEAST_TOP = 20, 0.1, 3  # labels that are looked for, at most also this share of all
FAR = 1e3  # standard deviations from which on the hazard is the excess


@dataclass(frozen=True)
class Censored:
    """Censored labels with bounds [..., 2] around predictions [...]; 0 or unchanged where none is censored."""

    bounds: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray | float

    @cached_property
    def sign(self) -> np.ndarray:
        """1 where labels are above their bound, -1 where they are below, 0 where there is none: [...]."""
        low, high = np.moveaxis(np.isfinite(self.bounds), -1, 0)
        return low.astype(np.float64) - high

    @cached_property
    def excess(self) -> np.ndarray:
        """How far predictions are on the wrong side, in standard deviations; negative on the right side: [...]."""
        low, high = np.moveaxis(self.bounds, -1, 0)
        bound = np.where(self.sign > 0, low, np.where(self.sign < 0, high, self.mean))
        return self.sign * (bound - self.mean) / np.maximum(self.deviation, LEAST)

    @cached_property
    def log_likelihood(self) -> np.ndarray:
        return np.where(self.sign != 0, log_ndtr(-self.excess), 0)

    @cached_property
    def hazard(self) -> np.ndarray:
        """The expectation of what the label is beyond the prediction, in standard deviations: [...], 0 or more."""
        excess = np.minimum(self.excess, FAR)
        hazard = np.where(self.excess > FAR, self.excess, np.exp(log_density(excess) - log_ndtr(-excess)))
        return np.where(self.sign != 0, hazard, 0)

    @property
    def expected(self) -> np.ndarray:
        return self.mean + self.sign * self.deviation * self.hazard

    @property
    def squared_error(self) -> np.ndarray:
        return (self.deviation**2) * np.where(self.sign != 0, 1 + self.excess * self.hazard, 0)

    @property
    def absolute_error(self) -> np.ndarray:
        right = np.exp(log_density(np.zeros(())) - log_ndtr(-np.minimum(self.excess, 0)))  # both halves around the mean
        return self.deviation * np.where(self.excess < 0, 2 * right - self.hazard, self.hazard)


def log_ndtr(values: np.ndarray) -> np.ndarray:
    return torch.special.log_ndtr(torch.from_numpy(np.asarray(values, np.float64))).numpy()


def log_density(values: np.ndarray) -> np.ndarray:
    return -0.5 * values**2 - 0.5 * np.log(2 * np.pi)


def error_deviation(y: np.ndarray, bounds: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The deviation of errors [T] with the largest likelihood, of labels [M, T] with bounds [M, T, 2]."""
    exact = (y - values) ** 2
    squares = np.nan_to_num(exact)
    exact_rows, bounded = ~np.isnan(exact), is_bounded(y, bounds) & ~np.isnan(values)
    counts = np.maximum((exact_rows | bounded).sum(axis=0), 1)
    deviation = np.sqrt(squares.sum(axis=0) / np.maximum(exact_rows.sum(axis=0), 1))
    for _ in range(ROUNDS):
        censored = np.where(bounded, Censored(bounds, np.nan_to_num(values), deviation).squared_error, 0)
        deviation = np.sqrt((squares + censored).sum(axis=0) / counts)
    return deviation


def is_bounded(y: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Where a label is known only by its bound: bool [...]."""
    return np.isnan(y) & np.isfinite(bounds).any(axis=-1)


@dataclass(frozen=True)
class BoundScores:
    bounds: int  # number of censored labels
    right_side: float  # share of them whose prediction is on the known side
    concordance: float  # of pairs of certain order; Harrell et al., JAMA 1982
    log_likelihood: float  # mean, with normal errors


def bound_scores(y: np.ndarray, bounds: np.ndarray, prediction: np.ndarray) -> BoundScores | None:
    """The scores of predictions [M] of labels [M] with bounds [M, 2], or NaN; None if no label is censored."""
    censored = is_bounded(y, bounds)
    if not censored.any():
        return None
    low, high = bounds[censored].T
    right = (prediction[censored] >= low) & (prediction[censored] <= high)
    likelihood, order = float(np.nanmean(log_likelihoods(y, bounds, prediction))), concordance(y, bounds, prediction)
    return BoundScores(int(censored.sum()), float(right.mean()), order, likelihood)


@dataclass(frozen=True)
class TopScores:
    n: int  # largest predictions
    best: int  # largest labels: ``n``, or more if several are equal to the last of them
    found: int  # of the ``n``, those with one of these labels
    chance: float  # of a random choice, on average


def top_scores(y: np.ndarray, bounds: np.ndarray | None, prediction: np.ndarray) -> TopScores | None:
    """The scores of predictions [M] of labels [M] with bounds [M, 2] that are certainly among the largest, or not."""
    ends = np.tile([-np.inf, np.inf], (len(y), 1)) if bounds is None else bounds
    scored = ~np.isnan(prediction) & (~np.isnan(y) | is_bounded(y, ends))
    low, high = np.where(np.isnan(y), ends.T, y)[:, scored]
    n = min(MOST_TOP, int(len(low) * TOP_SHARE))
    if n < LEAST_TOP or np.isinf(least := np.sort(low)[-n]):
        return None
    decided = (low >= least) | (high <= least)
    best, order = (low >= least)[decided], np.argsort(-prediction[scored][decided], kind="stable")
    return TopScores(n, int(best.sum()), int(best[order[:n]].sum()), float(n * best.sum() / len(best)))


def log_likelihoods(y: np.ndarray, bounds: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """The logarithm of the likelihood of each label [M], with the ``error_deviation`` of all; NaN without a label."""
    y, bounds, prediction = (np.asarray(values, np.float64)[:, None] for values in (y, bounds, prediction))
    deviation = np.maximum(error_deviation(y, bounds, prediction), LEAST)
    exact = log_density((y - prediction) / deviation) - np.log(deviation)
    return np.where(is_bounded(y, bounds), Censored(bounds, prediction, deviation).log_likelihood, exact)[:, 0]


def concordance(y: np.ndarray, bounds: np.ndarray, prediction: np.ndarray) -> float:
    """As in ``BoundScores``, of at most ``MOST_PAIRED`` labels; NaN if the order of no pair is certain."""
    labelled = np.flatnonzero(~np.isnan(y) | is_bounded(y, bounds))
    labelled = labelled[:: -(-len(labelled) // MOST_PAIRED) or 1]
    exact, ends, prediction = ~np.isnan(y[labelled]), bounds[labelled], prediction[labelled]
    low, high = (np.where(exact, y[labelled], ends[:, side]) for side in (0, 1))
    # a bound excludes its own value, so that ">5" is above 5
    below = (high[:, None] < low) | ((high[:, None] == low) & ~(exact[:, None] & exact))
    agree = (prediction[:, None] < prediction) + 0.5 * (prediction[:, None] == prediction)
    return float(agree[below].mean()) if below.any() else float("nan")
