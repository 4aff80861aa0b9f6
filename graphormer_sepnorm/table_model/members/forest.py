"""Forests on Morgan counts and descriptors. Axis letters: M molecules, T targets."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np

from graphormer_sepnorm.chem.fast_descriptors import WIDTH
from graphormer_sepnorm.chem.fingerprints import SIZE
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.runs.folder import FOREST
from graphormer_sepnorm.table_model.conditions import condition_values
from graphormer_sepnorm.table_model.features import MoleculeFeatures, descriptors, morgan
from graphormer_sepnorm.table_model.forest import Forest, forest_arrays, load_forest, save_forest
from graphormer_sepnorm.table_model.growing import TREES, fit_forest
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members.base import Fitted, Member, Setting, WithoutNetworks

FEATURES = SIZE + WIDTH
MOST_CONDITIONS = 10_000  # most values of conditions that are appended to the features


def forest_features(molecules: MoleculeFeatures) -> np.ndarray:
    """Morgan counts, ``fast_descriptors`` (0 where not finite) and conditions: float32 [M, FEATURES + C]."""
    parts = [molecules.of(morgan).toarray(), np.nan_to_num(molecules.of(descriptors)), molecules.of(condition_values)]
    return np.concatenate(parts, axis=1, dtype=np.float32)


@dataclass(frozen=True)
class ForestMember(WithoutNetworks):
    """One forest per target."""

    share: ClassVar = 0.15

    forest: Forest

    @classmethod
    def words(cls, task: TaskConfig, molecules: int) -> str:
        return f"a forest of {TREES} extremely randomized trees on Morgan counts and descriptors"

    @classmethod
    def fit(cls, molecules: MoleculeFeatures, labels: Labels, folds: Folds, setting: Setting) -> Fitted:
        features = molecules.of(forest_features)
        out_of_fold = np.full_like(labels.y, np.nan)
        for number, (learnt, predicted) in enumerate(folds.parts()):
            known = setting.known_to(number, labels).take(learnt)
            targets = np.flatnonzero(~np.isnan(known.y).all(axis=0))
            if not len(targets):  # all labels of the fold are bounds
                continue
            part = grow(features[learnt], known, targets, setting)
            out_of_fold[np.ix_(predicted, targets)] = part.predict(features[predicted])
        every = np.arange(labels.y.shape[1])
        return Fitted(cls(grow(features, setting.known_to(-1, labels), every, setting)), out_of_fold)

    def predict(self, molecules: MoleculeFeatures) -> np.ndarray:
        return self.forest.predict(molecules.of(forest_features)).astype(np.float64)

    def arrays(self) -> dict[str, np.ndarray]:
        return forest_arrays(self.forest)

    @classmethod
    def files(cls, folder: Path) -> list[Path]:
        return [folder / FOREST]

    def save(self, folder: Path) -> None:
        save_forest(folder / FOREST, self.forest)

    @classmethod
    def load(cls, folder: Path, members: dict[str, Member]) -> Self:
        return cls(load_forest(folder / FOREST, FEATURES + MOST_CONDITIONS))


def grow(features: np.ndarray, labels: Labels, targets: np.ndarray, setting: Setting) -> Forest:
    """Grows forests for some targets."""
    kind: Literal["regression", "classification"] = "classification" if labels.is_classification else "regression"
    return fit_forest(features, labels.y[:, targets], kind, setting.config.train.seed, TREES, labels.weight)
