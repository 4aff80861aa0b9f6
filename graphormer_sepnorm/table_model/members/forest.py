"""Random forests on Morgan counts and RDKit's descriptors."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.inference.predict import Output
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.runs.folder import FOREST
from graphormer_sepnorm.system.files import cache_root
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.forest import Forest, forest_arrays, forest_features, load_forest, save_forest
from graphormer_sepnorm.table_model.growing import TREES, fit_forest, table_features
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members.base import Fitted, Setting

TREES_PER_FOLD = 100


def learnt_features(molecules: MoleculeFeatures) -> np.ndarray:
    """As ``asked_features`` of SMILES, in several processes, the descriptors from the cache if they are there."""
    return table_features(molecules.molecules, cache_root() / "descriptors")


def asked_features(molecules: MoleculeFeatures) -> np.ndarray:
    """As ``forest_features``: float32 [M, F]."""
    return forest_features(molecules.molecules)


@dataclass(frozen=True)
class ForestMember:
    """Random forests, one per target. They learn exact labels only."""

    forest: Forest

    @classmethod
    def fit(cls, molecules: MoleculeFeatures, labels: Labels, folds: Folds, setting: Setting) -> Fitted:
        """As ``Member.fit``. The forests of the folds have ``TREES_PER_FOLD`` trees per target."""
        features = molecules.of(learnt_features)
        out_of_fold = np.full_like(labels.y, np.nan)
        for learnt, predicted in folds.parts():
            targets = np.flatnonzero(~np.isnan(labels.y[learnt]).all(axis=0))
            part = grow(features[learnt], labels.take(learnt), targets, setting, TREES_PER_FOLD)
            out_of_fold[np.ix_(predicted, targets)] = part.predict(features[predicted])
        every = np.arange(labels.y.shape[1])
        return Fitted(cls(grow(features, labels, every, setting, TREES)), out_of_fold)

    def predict(self, molecules: MoleculeFeatures) -> np.ndarray:
        return self.forest.predict(molecules.of(asked_features)).astype(np.float64)

    @property
    def models(self) -> list[tuple[Network, Config]]:
        return []

    @property
    def outputs(self) -> list[Output]:
        return []

    def computed(self, outputs: list[np.ndarray]) -> dict[Callable, np.ndarray]:
        return {}

    def arrays(self) -> dict[str, np.ndarray]:
        return forest_arrays(self.forest)

    def save(self, folder: Path) -> None:
        save_forest(folder / FOREST, self.forest)

    @classmethod
    def load(cls, folder: Path) -> "ForestMember":
        return cls(load_forest(folder / FOREST))


def grow(features: np.ndarray, labels: Labels, targets: np.ndarray, setting: Setting, trees: int) -> Forest:
    """Forests of some targets."""
    kind: Literal["regression", "classification"] = "classification" if labels.is_classification else "regression"
    return fit_forest(features, labels.y[:, targets], kind, setting.config.train.seed, trees, labels.weight)
