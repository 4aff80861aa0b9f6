"""Predictions for approved drugs, among which a prediction has a percentile; M molecules, N drugs, T targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import array_digest, checked_array, load_format, save_arrays

DRUGS = "drugs.safetensors"
FORMAT = 1


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
        known, asked = self.values[:, self.targets.index(target)], values.astype(np.float32)
        below, above = np.searchsorted(known, asked), np.searchsorted(known, asked, "right")
        return np.where(np.isnan(asked), np.nan, 100 * (below + above) / (2 * len(known)))


def save_drugs(folder: Path, values: np.ndarray, targets: Sequence[str], source: str) -> None:
    """Writes the predictions for approved drugs into the folder of a model.

    Args:
        values: [N, T], the predictions of the model, in any order.
        targets: T names of targets of the model.
        source: where the drugs are from, in words.

    Raises:
        InputError: a value is not finite, the shapes do not fit, or the file cannot be written.
    """
    found = np.sort(np.asarray(values, np.float32), axis=0)
    if found.ndim != 2 or found.shape[1] != len(targets) or not len(found) or not np.isfinite(found).all():
        raise InputError(f"the predictions of drugs are not finite numbers of {len(targets)} targets: leave out others")
    save_arrays(folder / DRUGS, {"values": found}, {"format": FORMAT, "targets": list(targets), "source": source})


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
