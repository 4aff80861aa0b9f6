"""Names and labels of N training molecules, and predictions for N approved drugs; M molecules, T targets."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import Stored, array_digest, checked_array, load_format, save_arrays

MOST_DECIMALS = 3
USUAL_DECIMALS = 2  # of computed numbers, such as logarithms
FAR = 100  # mean of labels in standard deviations above which their digits matter to float32
FREQUENT = 0.25  # share of the labels of a target from which on equal ones are pointed out
DRUGS = "drugs.safetensors"
FORMAT = 1


@dataclass(frozen=True)
class TrainingRows:
    """The rows of the training molecules that a ``Domain`` keeps.

    ``labels`` [N, T] are NaN where missing or censored, ``bounds`` [N, T, 2] the smallest and largest possible values.
    """

    labels: Annotated[np.ndarray, Stored(np.float64, 2, finite=False)]
    text: Annotated[np.ndarray, Stored(np.uint8, 1)]
    bounds: Annotated[np.ndarray, Stored(np.float64, 3, finite=False)] = field(
        default_factory=lambda: np.empty((0, 0, 2))
    )
    conditions: Annotated[np.ndarray, Stored(np.float32, 2)] = field(
        default_factory=lambda: np.empty((0, 0), np.float32)
    )

    @classmethod
    def of(cls, labels: np.ndarray, bounds: np.ndarray | None = None) -> "TrainingRows":
        """Rows with labels [N, T] and bounds [N, T, 2], and without names."""
        kept = np.empty((0, 0, 2)) if bounds is None else np.asarray(bounds, np.float64)
        return cls(np.asarray(labels, np.float64), np.empty(0, np.uint8), kept)

    def named(self, names: Sequence[str]) -> "TrainingRows":
        """The same rows with N names."""
        lines = "\n".join(" ".join(name.split()) for name in names)
        return replace(self, text=np.frombuffer(lines.encode(errors="replace"), np.uint8))

    @cached_property
    def names(self) -> list[str]:
        """The name of each row; N times "" if the names are unknown."""
        return bytes(self.text).decode(errors="replace").split("\n") if len(self.text) else [""] * len(self.labels)

    def censored(self, target: int, digits: int = 7) -> list[str]:
        """The N censored labels of a target, such as "<-6.5", "" for other ones; empty if there are none."""
        if not np.isfinite(self.bounds[:, target : target + 1]).any():
            return []
        return [
            f"<{high:.{digits}g}" if np.isfinite(high) else f">{low:.{digits}g}" if np.isfinite(low) else ""
            for low, high in self.bounds[:, target].tolist()
        ]

    @cached_property
    def sorted_labels(self) -> list[np.ndarray]:
        """The known labels of each target, in ascending order."""
        return [np.sort(column[~np.isnan(column)]) for column in self.labels.T]

    @cached_property
    def sorted_bounds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The lower and the upper bounds of the censored labels of each target, in ascending order."""
        none = np.empty(0)
        if not len(self.bounds):
            return [(none, none)] * self.labels.shape[1]
        lower, upper = self.bounds.transpose(2, 1, 0)
        return [
            (np.sort(low[np.isfinite(low)]), np.sort(high[np.isfinite(high)]))
            for low, high in zip(lower, upper, strict=True)
        ]

    @property
    def labelled(self) -> list[int]:
        """How many rows have a label of each target, exact or censored."""
        return [int(self.measured(target).sum()) for target in range(self.labels.shape[1])]

    def measured(self, target: int) -> np.ndarray:
        """Whether each row has a label of a target, exact or censored: bool [N]."""
        bounded = np.isfinite(self.bounds[:, target]).any(axis=1) if len(self.bounds) else False
        return ~np.isnan(self.labels[:, target]) | bounded

    def of_rows(self, rows: np.ndarray) -> "TrainingRows":
        bounds, conditions = (each[rows] if len(each) else each for each in (self.bounds, self.conditions))
        kept = replace(self, labels=self.labels[rows], bounds=bounds, conditions=conditions)
        return kept.named([self.names[row] for row in rows.tolist()]) if len(self.text) else kept

    @property
    def decimals(self) -> list[int]:
        """How many decimals the labels of each target need, as ``decimals_of``."""
        return [decimals_of(labels) for labels in self.sorted_labels]

    @property
    def positive(self) -> list[bool]:
        """Whether each target has labels and all of them are above 0."""
        return [len(labels) > 0 and bool(labels[0] > 0) for labels in self.sorted_labels]

    @property
    def frequent(self) -> list[tuple[float, float] | None]:
        """The most frequent label of each target, as a limit of the assay, and its share; None below ``FREQUENT``."""
        shares: list[tuple[float, float] | None] = []
        for labels in self.sorted_labels:
            values, counts = np.unique(labels, return_counts=True)
            is_frequent = len(labels) > 0 and counts.max() >= FREQUENT * len(labels)
            shares.append((float(values[counts.argmax()]), float(counts.max() / len(labels))) if is_frequent else None)
        return shares

    def percentiles(self, values: np.ndarray, target: int) -> np.ndarray:
        """Percentiles of values [M] among the labels of a target: [M], in the middle of ``percentile_ends``."""
        return self.percentile_ends(values, target).mean(axis=0)

    def percentile_ends(self, values: np.ndarray, target: int) -> np.ndarray:
        """The least and greatest possible percentiles of values [M] among the labels of a target: float64 [2, M].

        Equal labels count half. A censored label may be on either side of a value that its bound does not exclude.
        """
        labels, (least, most) = self.sorted_labels[target], self.sorted_bounds[target]
        below = (np.searchsorted(labels, values) + np.searchsorted(labels, values, "right")) / 2
        above = len(labels) - below + len(least) - np.searchsorted(least, values)
        total = len(labels) + len(least) + len(most)
        with np.errstate(invalid="ignore"):
            ends = 100 * np.stack([below + np.searchsorted(most, values, "right"), total - above]) / np.float64(total)
        return np.where(np.isnan(values), np.nan, ends)

    def best(self, target: int, minimize: bool) -> float:
        """The best label of a target, or the bound that the label of a molecule is better than; NaN without labels."""
        least, most = self.sorted_bounds[target]
        labels = np.concatenate([self.sorted_labels[target], most if minimize else least])
        return float(labels.min() if minimize else labels.max()) if len(labels) else float("nan")

    def fits(self, molecules: int) -> bool:
        """Whether the rows match this number of molecules."""
        is_whole = not len(self.bounds) or self.bounds.shape == (*self.labels.shape, 2)
        is_whole &= len(self.conditions) in (0, molecules)
        return len(self.labels) == len(self.names) == molecules and is_whole


def decimals_of(labels: np.ndarray) -> int:
    """How many decimals nine of ten labels [N] need; more than ``MOST_DECIMALS`` only for two digits of the median."""
    for decimals in range(MOST_DECIMALS + 1 if len(labels) else 0):
        rounded = labels.round(decimals)
        fits = np.isclose(labels, rounded, rtol=0, atol=1e-9) & ((rounded != 0) | (labels == 0))
        if fits.mean() >= 0.9:
            return decimals
    sizes = np.abs(labels[labels != 0])
    if not len(sizes):
        return USUAL_DECIMALS
    size, spread = np.median(sizes), labels.std()
    return max(USUAL_DECIMALS, 1 - int(np.floor(np.log10(spread if 0 < FAR * spread < size else size))))


@dataclass(frozen=True)
class Drugs:
    """The predictions of a model for approved drugs."""

    values: np.ndarray  # float32 [N, T], in ascending order for each target
    targets: tuple[str, ...]
    source: str  # where the drugs are from, in words

    @property
    def digest(self) -> str:
        return array_digest({"values": self.values}, {"targets": self.targets})

    def percentiles(self, values: np.ndarray, target: str) -> np.ndarray:
        """Percentiles of predictions [M] of a target among the drugs, ties count half: float64 [M], NaN for NaN."""
        drugs, wanted = self.values[:, self.targets.index(target)], values.astype(np.float32)
        below, above = np.searchsorted(drugs, wanted), np.searchsorted(drugs, wanted, "right")
        return np.where(np.isnan(wanted), np.nan, 100 * (below + above) / (2 * len(drugs)))


def save_drugs(folder: Path, values: np.ndarray, targets: Sequence[str], source: str) -> None:
    """Writes the predictions for approved drugs into the folder of a model.

    Args:
        values: [N, T], the predictions of the model, in any order.
        targets: T names of targets of the model.
        source: where the drugs are from, in words.

    Raises:
        InputError: a value is not finite, the shapes do not fit, or the file cannot be written.
    """
    ordered = np.sort(np.asarray(values, np.float32), axis=0)
    if ordered.ndim != 2 or ordered.shape[1] != len(targets) or not len(ordered) or not np.isfinite(ordered).all():
        raise InputError(f"the predictions of drugs are not finite numbers of {len(targets)} targets: leave out others")
    save_arrays(folder / DRUGS, {"values": ordered}, {"format": FORMAT, "targets": list(targets), "source": source})


def read_drugs(folder: Path, targets: Sequence[str]) -> Drugs | None:
    """Reads what ``save_drugs`` wrote, None if there is no such file; raises InputError for a damaged one."""
    path = folder / DRUGS
    if not path.exists():
        return None
    arrays, facts = load_format(path, FORMAT)
    values, names = checked_array(arrays, "values", np.float32, 2, path), facts.get("targets")
    fits = isinstance(names, list) and set(names) <= set(targets) and values.shape[1] == len(names)
    if not fits or not len(values) or (np.diff(values, axis=0) < 0).any():
        raise InputError(f"{path} is damaged: its values do not fit the targets of the model")
    return Drugs(values, tuple(facts["targets"]), str(facts.get("source")))
