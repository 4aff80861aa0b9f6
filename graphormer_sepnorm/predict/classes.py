"""Calibrated probabilities and sets of classes; M molecules, K of calibration, T targets, G groups of C classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from numbers import Real
from typing import Annotated

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import Stored

LARGEST_LOGIT = 13.8  # of a probability of one in a million
SEPARATOR = "; "


@dataclass(frozen=True)
class Calibration:
    """Probabilities that mean what they say, by the scaling of Platt (1999), with his targets, not quite 0 and 1."""

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
        regression = LogisticRegression(C=np.inf).fit(x, classes, sample_weight=np.concatenate([share, 1 - share]))
        if regression.coef_[0, 0] > 0:
            slope[target], intercept[target] = regression.coef_[0, 0], regression.intercept_[0]
        else:
            intercept[target] = shift_to(share.mean(), logits)
    return Calibration(slope, intercept)


def shift_to(mean: float, logits: np.ndarray) -> float:
    """The number to add to logits [M] for probabilities of this mean, which is between 0 and 1."""
    from scipy.optimize import brentq  # its import takes a while

    most = 2 * LARGEST_LOGIT
    return brentq(lambda shift: (1 / (1 + np.exp(-logits - shift))).mean() - mean, -most, most)


def calibration_error(y: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """The mean gap [T] between probabilities and the share of class 1, in ten bins (Guo et al., ICML 2017)."""
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


@dataclass(frozen=True)
class ClassSets:
    """Class-conditional conformal prediction sets (Vovk, Gammerman and Shafer, 2005, section 4.5).

    A set at confidence c holds the class of a new molecule with probability c or more, for molecules of each class, if
    the molecule is drawn as those of calibration were. It always holds the most probable class, and every class of few
    molecules of calibration. ``scores`` [K, G, C] are the probabilities that molecules of a class got for it without
    having been learnt from, in rising order; NaN at the end, for molecules of other classes.
    """

    scores: Annotated[np.ndarray, Stored(np.float64, 3, finite=False)]

    def holds(self, probability: np.ndarray, confidence: float) -> np.ndarray:
        """Which classes are in the sets: bool [M, G, C]; none for a molecule without a prediction."""
        by_classes = by_class(probability, self.scores.shape[1])
        held = [self.holds_of(group, by_classes[:, group], confidence) for group in range(by_classes.shape[1])]
        return np.stack(held, axis=1)

    def holds_of(self, group: int, probability: np.ndarray, confidence: float) -> np.ndarray:
        """As ``holds`` for one group, from the probabilities [M, C] of its classes: bool [M, C]."""
        check_confidence(confidence)
        conformity = np.empty_like(probability)
        for place, values in enumerate(probability.T):
            calibration = self.scores[~np.isnan(self.scores[:, group, place]), group, place]
            at_most = np.searchsorted(calibration, values, "right")
            conformity[:, place] = (1 + at_most) / (1 + len(calibration))
        most = probability.argmax(axis=1)[:, None] == np.arange(probability.shape[1])
        return ((conformity > round(1 - confidence, 9)) | most) & ~np.isnan(probability)

    def texts(self, group: int, probability: np.ndarray, confidence: float, names: Sequence[str]) -> list[str]:
        """The sets of M molecules for a group, as the joined names of classes; "" without a prediction."""
        held = self.holds_of(group, by_class(probability, self.scores.shape[1])[:, group], confidence)
        rows = list(map(tuple, held.tolist()))
        texts = {row: SEPARATOR.join(compress(names, row)) for row in set(rows)}
        return [texts[row] for row in rows]

    def fits(self, targets: int) -> bool:
        """Whether they can be those of so many targets."""
        return self.scores.shape[1:] in ((targets, 2), (1, targets))


def check_confidence(confidence: object, name: str = "confidence") -> None:
    """Raises InputError for a confidence level, in the parameter of this name, that is no number between 0 and 1."""
    if isinstance(confidence, bool) or not isinstance(confidence, Real):
        raise InputError(f"{name}: give a number between 0 and 1, such as 0.9, not {confidence!r}")
    if not 0 < (level := float(confidence)) < 1:
        near = f"; did you mean {level / 100:g}?" if 50 <= level < 100 else ""
        raise InputError(f"the confidence is {level:g}: choose one between 0 and 1, such as 0.9{near}")


def by_class(values: np.ndarray, groups: int) -> np.ndarray:
    """Labels or probabilities [M, T] for each class: float64 [M, G, C]."""
    values = np.asarray(values, np.float64)
    return np.stack([1 - values, values], axis=2) if groups == values.shape[1] else values[:, None]


def fit_class_sets(y: np.ndarray, probability: np.ndarray, exclude_each_other: bool) -> ClassSets:
    """Calibrates sets with labels and probabilities [K, T] of molecules that were not learnt from."""
    groups = 1 if exclude_each_other else y.shape[1]
    own = by_class(y, groups) == 1
    return ClassSets(np.sort(np.where(own, by_class(probability, groups), np.nan), axis=0))
