"""A small table, and each member fitted to it."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig, TrainConfig
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members import forest
from graphormer_sepnorm.table_model.members.base import Setting
from tests.tiny import tiny_model

LEARNT = 60


@pytest.fixture(scope="package", autouse=True)
def small_forests():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "TREES", 20)
        patch.setattr(forest, "TREES_PER_FOLD", 10)
        yield


@pytest.fixture(scope="session")
def setting() -> Setting:
    """Networks of one layer, which train for a moment."""
    _, config = tiny_model("mol", ("logP", "TPSA"))
    return Setting(replace(config, train=TrainConfig(epochs=8, lr=2e-2, batch_size=16)))


@pytest.fixture(scope="session")
def molecules(smiles) -> MoleculeFeatures:
    return MoleculeFeatures(smiles[:LEARNT])


@pytest.fixture(scope="session")
def folds() -> Folds:
    return Folds(np.arange(LEARNT) % 3)


@pytest.fixture(scope="session")
def labels(logp) -> Labels:
    """Two numbers, of which some are missing."""
    y = logp[:LEARNT].copy()
    y[5, 0] = y[7, 1] = np.nan
    return Labels(TaskConfig("regression", "rmse", ("logP", "TPSA")), y)


@pytest.fixture(scope="session")
def classes(logp) -> Labels:
    """Whether the two numbers are above their medians."""
    y = (logp[:LEARNT] > np.median(logp[:LEARNT], axis=0)).astype(np.float64)
    y[3, 0] = np.nan
    return Labels(TaskConfig("classification", "rocauc", ("logP", "TPSA")), y)


@pytest.fixture(scope="session")
def others(smiles) -> MoleculeFeatures:
    """Molecules that were not learnt from."""
    return MoleculeFeatures(smiles[LEARNT : LEARNT + 40])
