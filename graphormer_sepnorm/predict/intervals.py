"""Conformal intervals around predictions of numbers; M molecules, K molecules of calibration, T targets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np

from graphormer_sepnorm.config import Limit
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.classes import check_confidence
from graphormer_sepnorm.runs.arrays import Stored
from graphormer_sepnorm.tasks.censored import Censored, error_deviation, is_bounded
from graphormer_sepnorm.tasks.scales import limited

ROUNDS = 100  # of the estimate of a distribution from bounds
LEAST = 1e-12
LEAST_COMMON = 30  # molecules with labels of two targets whose errors are correlated
LEAST_EIGENVALUE = 1e-3  # of correlations


@dataclass(frozen=True)
class Intervals:
    """Split-conformal intervals around predictions of numbers (Lei et al., JASA 2018, sections 2.2 and 5.2).

    An interval at confidence c holds the label of a new molecule with probability c or more, if that molecule is drawn
    as those of calibration were. MAPIE and crepes keep their state only by pickle.
    """

    # [K, T], absolute errors over their ``unit``, in rising order; NaN at the end where labels were missing
    scores: Annotated[np.ndarray, Stored(np.float64, 2, finite=False)]
    offset: Annotated[np.ndarray, Stored(np.float64, 1)]  # [T], added to the spread of models; 0 where it is not used
    # [T, T], as ``error_correlation``; empty if unknown
    correlation: Annotated[np.ndarray, Stored(np.float64, 2)] = field(default_factory=lambda: np.empty((0, 0)))

    @cached_property
    def counts(self) -> np.ndarray:
        """How many molecules of calibration have a label: int64 [T]."""
        return np.sum(~np.isnan(self.scores), axis=0)

    def of_target(self, target: int) -> "Intervals":
        """Those of one of the targets."""
        return Intervals(self.scores[:, [target]], self.offset[[target]])

    def half_widths(self, confidence: float, spread: np.ndarray) -> np.ndarray:
        """Half the widths of intervals, float64 [M, T], from the standard deviation over models; NaN for NaN."""
        ranks = ranks_of(confidence, self.counts)
        return self.scores[ranks - 1, np.arange(len(ranks))] * unit(spread, self.offset)

    def ends(
        self, confidence: float, values: np.ndarray, spread: np.ndarray, limits: Sequence[tuple[Limit, Limit]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The lower and upper ends of intervals around predictions, within limits: float64 [M, T] each."""
        half = self.half_widths(confidence, spread)
        return limited(values - half, limits), limited(values + half, limits)


def ranks_of(confidence: float, counts: np.ndarray) -> np.ndarray:
    """The ranks, from 1 on, of the scores [T] that give a confidence; raises InputError if there are too few."""
    check_confidence(confidence)
    ranks = np.ceil(np.round((counts + 1) * confidence, 9)).clip(min=1).astype(int)
    if (ranks > counts).any():
        least = int(counts.min())
        raise InputError(
            f"an interval of confidence {confidence:g} needs more labelled molecules than the {least} that this "
            f"model was calibrated on: choose one of at most {np.floor(1e4 * least / (least + 1)) / 1e4:g}"
        )
    return ranks


def spread_of_models(by_model: np.ndarray) -> np.ndarray:
    """The standard deviation over models of what they predict [models, M, T]: float64 [M, T]."""
    return by_model.std(axis=0, dtype=np.float64)


def unit(spread: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """The unit of errors [M, T]: the spread plus the offset; 1 (NaN for NaN) for a target without offset."""
    return np.where(offset > 0, spread + offset, 1 + 0 * spread)


def fit_intervals(
    y: np.ndarray, prediction: np.ndarray, spread: np.ndarray, share: float = 1.0, bounds: np.ndarray | None = None
) -> Intervals:
    """Calibrates intervals with labels, predictions and spreads [K, T] of molecules that were not learnt from."""
    y, prediction, spread = (np.asarray(values, np.float64) for values in (y, prediction, spread))
    if np.isnan(y).all(axis=0).any():
        raise InputError("a target has no labels in the calibration split")
    offset = share * spread.mean(axis=0)
    scores = (y - prediction) / unit(spread, offset)
    correlation = error_correlation(scores)
    if bounds is None:
        return Intervals(np.sort(np.abs(scores), axis=0), offset, correlation)
    ends = (bounds - prediction[..., None]) / unit(spread, offset)[..., None]
    columns = [with_censored(*each) for each in zip(scores.T, ends.transpose(1, 0, 2), strict=True)]
    return Intervals(np.stack(columns, axis=1), offset, correlation)


def error_correlation(errors: np.ndarray) -> np.ndarray:
    """Correlations of errors [K, T], NaN for missing labels: float64 [T, T], from ranks, positive definite."""
    from pandas import DataFrame  # its import takes a while

    if errors.shape[1] == 1:
        return np.ones((1, 1))
    ranked = DataFrame(errors).corr("spearman", min_periods=LEAST_COMMON).fillna(0).to_numpy(copy=True)
    np.fill_diagonal(ranked, 1)
    values, vectors = np.linalg.eigh(2 * np.sin(np.pi / 6 * ranked))
    correlation = (vectors * values.clip(LEAST_EIGENVALUE)) @ vectors.T
    size = np.sqrt(np.diag(correlation))
    return (correlation + correlation.T) / (2 * np.outer(size, size))


def with_censored(scores: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """The absolute scores [K] of a target in ascending order, NaN at the end; those with ``bounds`` [K, 2] censored.

    A censored score has the distribution of all scores on its known side (Turnbull, JRSS B 1976; Candes, Lei and Ren,
    JRSS B 2023); beyond the largest exact one, its expectation under a normal distribution.
    """
    exact, censored = np.sort(scores[~np.isnan(scores)]), is_bounded(scores, bounds)
    deviation = error_deviation(scores[:, None], bounds[:, None], np.zeros((len(scores), 1)))
    bounds = bounds[censored]
    least, most = exact.min(initial=np.inf), exact.max(initial=-np.inf)
    beyond = (bounds[:, 0] >= most) | (bounds[:, 1] <= least)
    far = Censored(bounds[beyond], np.zeros(beyond.sum()), deviation).expected
    support = np.sort(np.concatenate([exact, far]))
    counts = np.isin(support, exact).astype(np.float64)
    above, below = bounds[np.isfinite(bounds[:, 0]), 0], bounds[np.isfinite(bounds[:, 1]), 1]
    first, last = np.searchsorted(support, above, "right"), np.searchsorted(support, below)
    share = np.full(len(support), 1 / len(support))
    for _ in range(ROUNDS):
        up_to = np.concatenate([[0.0], np.cumsum(share)])
        taken = np.zeros(len(support) + 1)
        np.add.at(taken, first, 1 / np.maximum(up_to[-1] - up_to[first], LEAST))
        np.add.at(taken, 0, (1 / np.maximum(up_to[last], LEAST)).sum())
        np.add.at(taken, last, -1 / np.maximum(up_to[last], LEAST))
        share = counts + share * np.cumsum(taken)[:-1]
        share /= share.sum()
    order = np.argsort(np.abs(support))
    levels = (np.arange(len(exact) + len(bounds)) + 0.5) / (len(exact) + len(bounds))
    places = np.searchsorted(np.cumsum(share[order]), levels).clip(max=len(support) - 1)
    ends = np.full(len(scores), np.nan)
    ends[: len(levels)] = np.abs(support)[order][places]
    return ends


def coverage(y: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The share of the labels that lie in their interval [T]; NaN for a target without labels; arguments [M, T]."""
    labelled = ~np.isnan(y)
    inside = (low <= y) & (y <= high)
    counts = labelled.sum(axis=0)
    return np.where(counts > 0, (inside & labelled).sum(axis=0) / np.maximum(counts, 1), np.nan)
