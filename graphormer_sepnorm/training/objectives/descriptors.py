"""Pre-training without labels: a body that learns to predict RDKit's descriptors of molecules.

Source: Burns et al., "Deep Learning Foundation Models from Classical Molecular Descriptors", 2025 (CheMeleon), with
Mordred's descriptors there.

Axis letters: M molecules, D descriptors.
"""

import numpy as np

from graphormer_sepnorm.chem.descriptors import NAMES, all_descriptors
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.dataset import cache_root
from graphormer_sepnorm.datasets.store import locked
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.training.objectives.base import Corpus, Objectives
from graphormer_sepnorm.training.objectives.labels import LabelObjective

CLIP = 6.0  # standard deviations
ABSURD = 1e6
MOST_MISSING = 0.05


class Descriptors:
    """Learns those of RDKit's descriptors that tell the molecules apart, in standard deviations."""

    title = "RDKit's descriptors"
    objective: Objectives = LabelObjective

    def corpus(self, smiles: list[str]) -> Corpus:
        """As ``corpus_of_descriptors``; the descriptors are computed once and kept in the cache."""
        folder = cache_root() / "descriptors"
        with locked(folder):
            return corpus_of_descriptors(smiles, all_descriptors([*smiles], folder))

    def task(self, targets: tuple[str, ...]) -> TaskConfig:
        """A regression by squared errors, scored by absolute ones."""
        return TaskConfig("regression", "mae", targets, loss="mse")


def corpus_of_descriptors(smiles: list[str], values: np.ndarray) -> Corpus:
    """The molecules that have descriptors, with those descriptors that tell them apart, scaled and clipped.

    A descriptor is left out if it is the same for all, if it is beyond ``ABSURD`` for any, or if more than
    ``MOST_MISSING`` of the molecules do not have it.

    Args:
        smiles: [M].
        values: [M, len(NAMES)], NaN where missing.

    Raises:
        InputError: too few molecules to tell them apart.
    """
    rows = np.flatnonzero(~np.isnan(values).all(axis=1))
    if len(rows) < 3:
        raise InputError(f"{len(rows)} molecules can be read; pre-training needs many thousands")
    values = values[rows].astype(np.float64)
    columns = telling_columns(values)
    if not len(columns):
        raise InputError("all molecules have the same descriptors: there is nothing to learn")
    values = values[:, columns]
    scaled = (values - np.nanmean(values, axis=0)) / np.nanstd(values, axis=0)
    names = tuple(NAMES[column] for column in columns)
    return Corpus([smiles[row] for row in rows], names, scaled.clip(-CLIP, CLIP).astype(np.float32))


def telling_columns(values: np.ndarray) -> np.ndarray:
    """The columns of values [M, D] that ``corpus_of_descriptors`` keeps."""
    present = np.flatnonzero(np.isnan(values).mean(axis=0) <= MOST_MISSING)
    lowest, highest = np.nanmin(values[:, present], axis=0), np.nanmax(values[:, present], axis=0)
    return present[(highest > lowest) & (np.maximum(-lowest, highest) <= ABSURD)]
