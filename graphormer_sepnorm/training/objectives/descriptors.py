"""Pretraining on RDKit's descriptors of molecules.

Source: Burns et al., "Deep Learning Foundation Models from Classical Molecular Descriptors", 2025 (CheMeleon), which
uses Mordred's descriptors.

Axis letters: M molecules, D descriptors.
"""

import numpy as np

from graphormer_sepnorm.chem.descriptors import NAMES, all_descriptors
from graphormer_sepnorm.datasets.store import locked
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.files import cache_root
from graphormer_sepnorm.training.objectives.base import Corpus, Pretraining

CLIP = 6.0  # standard deviations
ABSURD = 1e6
MOST_MISSING = 0.05


class Descriptors(Pretraining):
    """Predicts the RDKit descriptors that vary between molecules, in standard deviations."""

    title = "RDKit's descriptors"

    def corpus(self, smiles: list[str]) -> Corpus:
        """As ``corpus_of_descriptors``; the descriptors are computed once and cached."""
        folder = cache_root() / "descriptors"
        with locked(folder):
            return corpus_of_descriptors(smiles, all_descriptors([*smiles], folder))


def corpus_of_descriptors(smiles: list[str], values: np.ndarray) -> Corpus:
    """The molecules that have descriptors, with the descriptors that vary between them, scaled and clipped.

    A descriptor is excluded if it is the same for all molecules, exceeds ``ABSURD`` for any, or is missing for more
    than ``MOST_MISSING`` of them. ``values`` are [M, len(NAMES)], NaN where missing.
    """
    rows = np.flatnonzero(~np.isnan(values).all(axis=1))
    if len(rows) < 3:
        raise InputError(f"{len(rows)} molecules can be read; pre-training needs many thousands")
    values = values[rows].astype(np.float64)
    present = np.flatnonzero(np.isnan(values).mean(axis=0) <= MOST_MISSING)
    lowest, highest = np.nanmin(values[:, present], axis=0), np.nanmax(values[:, present], axis=0)
    columns = present[(highest > lowest) & (np.maximum(-lowest, highest) <= ABSURD)]
    if not len(columns):
        raise InputError("all molecules have the same descriptors: there is nothing to learn")
    values = values[:, columns]
    scaled = (values - np.nanmean(values, axis=0)) / np.nanstd(values, axis=0)
    names = tuple(NAMES[column] for column in columns)
    return Corpus([smiles[row] for row in rows], names, scaled.clip(-CLIP, CLIP).astype(np.float32))
