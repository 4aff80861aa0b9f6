"""Conformal sets of classes: which classes a molecule may be of, at a confidence.

Axis letters: M molecules, N molecules of calibration, T targets, G groups of C classes that exclude each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Annotated

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import Stored

SEPARATOR = "; "


@dataclass(frozen=True)
class ClassSets:
    """Class-conditional (Mondrian) conformal prediction sets.

    A set at confidence c holds the class of a new molecule with probability c or more, for molecules of each class, if
    the molecule is drawn as those of calibration were. A class of few molecules of calibration stands in every set, and
    the most probable class does too, so that no set is empty or contradicts the probabilities.

    ``scores`` [N, G, C] are the probabilities that molecules of a class got for it without having been learnt from, in
    rising order; NaN at the end, for molecules of other classes.

    Source: Vovk, Gammerman and Shafer, "Algorithmic learning in a random world", 2005, section 4.5.
    """

    scores: Annotated[np.ndarray, Stored(np.float64, 3, finite=False)]

    def holds(self, probability: np.ndarray, confidence: float) -> np.ndarray:
        """Which classes are in the sets: bool [M, G, C]; none for a molecule without a prediction."""
        by_classes = by_class(probability, self.scores.shape[1])
        held = [self.holds_of(group, by_classes[:, group], confidence) for group in range(by_classes.shape[1])]
        return np.stack(held, axis=1)

    def holds_of(self, group: int, probability: np.ndarray, confidence: float) -> np.ndarray:
        """As ``holds`` for one group, from the probabilities [M, C] of its classes: bool [M, C]."""
        check_level(confidence)
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
        return [
            SEPARATOR.join(name for name, inside in zip(names, row, strict=True) if inside) for row in held.tolist()
        ]

    def fits(self, targets: int) -> bool:
        """Whether they can be those of so many targets."""
        return self.scores.shape[1:] in ((targets, 2), (1, targets))


def check_level(confidence: float) -> None:
    """Raises InputError for a confidence level that is not between 0 and 1."""
    if not 0 < confidence < 1:
        near = f"; did you mean {confidence / 100:g}?" if 50 <= confidence < 100 else ""
        raise InputError(f"the confidence is {confidence:g}: choose one between 0 and 1, such as 0.9{near}")


def check_confidence(name: str, value: object) -> None:
    """Raises InputError for a confidence level, in the parameter of this name, that is no number."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
        raise InputError(f"{name}: give a number between 0 and 1, such as 0.9, not {value!r}")


def by_class(values: np.ndarray, groups: int) -> np.ndarray:
    """Labels or probabilities [M, T] for each class: float64 [M, G, C]."""
    values = np.asarray(values, np.float64)
    return np.stack([1 - values, values], axis=2) if groups == values.shape[1] else values[:, None]


def fit_class_sets(y: np.ndarray, probability: np.ndarray, exclude_each_other: bool) -> ClassSets:
    """Calibrates sets with labels and probabilities [N, T] of molecules that were not learnt from."""
    groups = 1 if exclude_each_other else y.shape[1]
    own = by_class(y, groups) == 1
    return ClassSets(np.sort(np.where(own, by_class(probability, groups), np.nan), axis=0))
