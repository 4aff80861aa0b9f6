"""A small table, and each member fitted to it."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graphormer_sepnorm.config import Config, TaskConfig, TrainConfig
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members import forest
from graphormer_sepnorm.table_model.members.base import ToFit
from graphormer_sepnorm.table_run import Plan, fit_run
from graphormer_sepnorm.tables.labels import LabelledTable, TableOptions, read_labelled, table_task
from tests.tiny import tiny_model

LEARNT = 60


@pytest.fixture(scope="session", autouse=True)
def small_forests():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "TREES", 20)
        yield


TRAIN = TrainConfig(epochs=8, lr=2e-2, batch_size=16)


@pytest.fixture(scope="session")
def to_fit(molecules, labels, folds) -> ToFit:
    """Networks of one layer, which train for a moment."""
    return ToFit(molecules, labels, folds, replace(tiny_model("mol", ("logP", "TPSA"))[1], train=TRAIN))


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


@dataclass(frozen=True)
class Trained:
    """A run folder of a table model, and what it was made of."""

    run: RunFolder
    labelled: LabelledTable
    options: TableOptions
    config: Config
    result: dict


def train(folder: Path, table: pd.DataFrame, target: str, conditions: tuple[str, ...] = ()) -> Trained:
    """Two networks of one layer next to the kernel and small forests."""
    table.to_csv(folder / "in.csv", index=False)
    options = TableOptions(str(folder / "in.csv"), (target,), split="random", feature_columns=conditions)
    config = replace(tiny_model("mol", (target,))[1], task=table_task(options), train=TRAIN)
    labelled, run = read_labelled(options, config.featurizer), RunFolder(folder / "run")
    return Trained(run, labelled, options, config, fit_run(labelled, options, config, run, Plan(2)))


@pytest.fixture(scope="session")
def trained(small_forests, smiles, logp, tmp_path_factory) -> Trained:
    """A table model of 60 molecules."""
    table = pd.DataFrame({"smiles": smiles[:LEARNT], "a": logp[:LEARNT, 0]})
    return train(tmp_path_factory.mktemp("trained"), table, "a")


@pytest.fixture(scope="session")
def conditioned(small_forests, smiles, logp, tmp_path_factory) -> RunFolder:
    """As ``trained``, on labels that depend on two conditions."""
    assays = list("aab") * (LEARNT // 3)
    table = pd.DataFrame({"smiles": smiles[:LEARNT], "T": [25, 60] * (LEARNT // 2), "assay": assays})
    table["y"] = logp[:LEARNT, 0] + table["T"] / 20 + (table.assay == "b")
    return train(tmp_path_factory.mktemp("conditioned"), table, "y", ("T", "assay")).run


@pytest.fixture(scope="session")
def others(smiles) -> MoleculeFeatures:
    """Molecules that were not learnt from."""
    return MoleculeFeatures(smiles[LEARNT : LEARNT + 40])
