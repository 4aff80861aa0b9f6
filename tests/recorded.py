"""Trainings in run folders, for tests."""

from pathlib import Path

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.training.run_writer import RunWriter
from graphormer_sepnorm.training.trainer import Trainer


def recorder(config: Config, train: MoleculeDataset, val: MoleculeDataset, folder: Path) -> RunWriter:
    """A run at its beginning; ``next(recorder(...).epochs())`` trains one epoch and writes it down."""
    return RunWriter(Trainer(config, train, val), RunFolder(folder), verbose=False)
