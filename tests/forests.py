"""Molecules, their features, two numbers to learn of them, and a forest that learnt these."""

import numpy as np
import pytest

from graphormer_sepnorm.chem.descriptors import NAMES, descriptors
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.members.forest import ForestMember, fit_forest, forest_features

TREES = 20


@pytest.fixture(scope="session")
def smiles() -> list[str]:
    return sample_table().smiles.tolist()[:150]


@pytest.fixture(scope="session")
def features(smiles) -> np.ndarray:
    return forest_features(MoleculeFeatures(smiles))


@pytest.fixture(scope="session")
def logp(smiles) -> np.ndarray:
    return descriptors(smiles)[:, [NAMES.index("MolLogP"), NAMES.index("TPSA")]].astype(np.float64)


@pytest.fixture
def forest(features, logp) -> ForestMember:
    return grown(features[:100], logp[:100])


def grown(features: np.ndarray, y: np.ndarray, kind: str = "regression", seed: int = 0) -> ForestMember:
    """The forest of targets without a scale."""
    task = TaskConfig(kind, "rocauc" if kind == "classification" else "rmse", tuple(map(str, range(y.shape[1]))))
    return fit_forest(features, Labels(task, y), seed, TREES)
