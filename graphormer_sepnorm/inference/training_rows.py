"""What is known of the training molecules beside their structures: what they are called, and what was measured.

Axis letters: M molecules, N training molecules, T targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from graphormer_sepnorm.runs.arrays import checked_array

MOST_DECIMALS = 3
USUAL_DECIMALS = 2  # of computed numbers, such as logarithms


@dataclass(frozen=True)
class TrainingRows:
    """The rows of the training molecules that a ``Domain`` keeps.

    Attributes:
        labels: float64 [N, T], NaN where nothing was measured, or only a bound.
        text: uint8, what each is called, one per line; empty where that is not known.
    """

    labels: np.ndarray
    text: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray) -> "TrainingRows":
        """Rows without names, of labels [N, T]."""
        return cls(np.asarray(labels, np.float64), np.empty(0, np.uint8))

    def named(self, names: Sequence[str]) -> "TrainingRows":
        """The same rows, called by N names."""
        lines = "\n".join(" ".join(name.split()) for name in names)
        return replace(self, text=np.frombuffer(lines.encode(errors="replace"), np.uint8))

    @cached_property
    def names(self) -> list[str]:
        """What each row is called; N times "" where that is not known."""
        return bytes(self.text).decode(errors="replace").split("\n") if len(self.text) else [""] * len(self.labels)

    @cached_property
    def sorted_labels(self) -> list[np.ndarray]:
        """The labels of each target that are known, in rising order."""
        return [np.sort(column[~np.isnan(column)]) for column in self.labels.T]

    @property
    def decimals(self) -> list[int]:
        """How many decimals nine of ten labels of each target need, at most ``MOST_DECIMALS``."""
        return [decimals_of(known) for known in self.sorted_labels]

    def percentiles(self, values: np.ndarray) -> np.ndarray:
        """How many of 100 labels are below values [M, T], equal ones counted as half: float64 [M, T].

        NaN where the value is, or for a target without labels.
        """
        found = np.full(values.shape, np.nan)
        for target, known in enumerate(self.sorted_labels):
            asked = ~np.isnan(values[:, target])
            if len(known):
                below, up_to = (np.searchsorted(known, values[asked, target], side) for side in ("left", "right"))
                found[asked, target] = 50 * (below + up_to) / len(known)
        return found

    def fits(self, molecules: int) -> bool:
        """Whether they can be the rows of so many molecules."""
        return len(self.labels) == len(self.names) == molecules


def decimals_of(labels: np.ndarray) -> int:
    """How many decimals nine of ten labels [N] need.

    ``USUAL_DECIMALS`` if they need more than ``MOST_DECIMALS``, or there are no labels.
    """
    for decimals in range(MOST_DECIMALS + 1 if len(labels) else 0):
        if np.isclose(labels, labels.round(decimals), rtol=0, atol=1e-9).mean() >= 0.9:
            return decimals
    return USUAL_DECIMALS


def read_training_rows(arrays: dict[str, np.ndarray], path: Path) -> TrainingRows | None:
    """The rows among the arrays of a file; None in one that was written before there were any.

    Raises:
        InputError: the arrays are none of such rows.
    """
    if "rows.labels" not in arrays:
        return None
    return TrainingRows(
        checked_array(arrays, "rows.labels", np.float64, 2, path), checked_array(arrays, "rows.text", np.uint8, 1, path)
    )
