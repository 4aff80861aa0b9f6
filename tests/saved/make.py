"""Writes a small table model in the present formats, with what it predicts: python -m tests.saved.make VERSION."""

import contextlib
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from graphormer_sepnorm.config import TaskConfig, TrainConfig
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import fit_table
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.load import load_model
from graphormer_sepnorm.table_model.members import forest
from graphormer_sepnorm.table_model.members.base import ToFit
from tests.tiny import save_tiny, tiny_model

ASKED = ["CCO", "c1ccccc1C(=O)O", "CC(=O)Oc1ccccc1C(=O)O"]
NUMBERS = ["logp", "logp_low", "logp_high", "logp_std", "nearest_logp", "similarity", "cls_distance"]


def main(folder: Path) -> None:
    table = sample_table()[:24]
    labels = Labels(TaskConfig("regression", "rmse", ("logp",)), np.array([[len(text) / 10] for text in table.smiles]))
    with tempfile.TemporaryDirectory() as elsewhere, contextlib.chdir(elsewhere):
        body = save_tiny(Path("body"), featurizer="mol")
        train = TrainConfig(epochs=2, lr=1e-2, batch_size=8, start_from=str(body))
        molecules, config = MoleculeFeatures(table.smiles.tolist()), replace(tiny_model("mol")[1], train=train)
        forest.TREES = 2
        found = fit_table(ToFit(molecules, labels, Folds(np.arange(24) % 2), config))
    found.model.save(folder)
    predicted = load_model(folder).predict(ASKED, interval=0.5, domain=True)
    predicted[["smiles", *NUMBERS]].to_csv(folder / "predicted.csv", index=False)


if __name__ == "__main__":
    main(Path(__file__).with_name(sys.argv[1]))
