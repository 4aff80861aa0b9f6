"""Pretraining on RDKit's descriptors of molecules, as CheMeleon on Mordred's (Burns et al., 2025)."""

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
        folder = cache_root() / "descriptors"
        with locked(folder):
            return corpus_of_descriptors(smiles, all_descriptors([*smiles], folder))


def corpus_of_descriptors(smiles: list[str], values: np.ndarray) -> Corpus:
    """The descriptors that vary, scaled and clipped, without those that are absurd or often missing."""
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
