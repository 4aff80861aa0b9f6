"""Tiny models with random weights, for tests of what surrounds a model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from graphormer_sepnorm.chem.features import FEATURIZERS, Molecules
from graphormer_sepnorm.config import Config, ModelConfig, TaskConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.predictors import Predictions, Predictor
from graphormer_sepnorm.predict.trust import Trust, calibrated, trust_arrays
from graphormer_sepnorm.recipes import paper_encodings
from graphormer_sepnorm.runs.arrays import array_digest
from graphormer_sepnorm.runs.checkpoint import save_model
from graphormer_sepnorm.runs.folder import WEIGHTS, RunFolder
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.stacking import SIGNS, Difficulty
from graphormer_sepnorm.training.run_writer import RunWriter
from graphormer_sepnorm.training.trainer import Trainer


def tiny_model(
    featurizer: str = "ogb",
    targets: tuple[str, ...] = ("logp",),
    kind: str = "regression",
    seed: int = 0,
    class_names: tuple[tuple[str, str], ...] = (),
) -> tuple[Network, Config]:
    """A model of one layer in evaluation mode, and the config of the run that could have given it."""
    torch.manual_seed(seed)
    found = FEATURIZERS[featurizer]
    sizes = {"num_tasks": len(targets), "layers": 1, "width": 16, "ffn_width": 16, "heads": 2}
    shape = ModelConfig(found.atom_sizes, found.bond_sizes, **sizes, encodings=paper_encodings())
    scale = {"mean": (0.0,) * len(targets), "std": (1.0,) * len(targets)} if kind == "regression" else {}
    task = TaskConfig(kind, "mae" if kind == "regression" else "rocauc", targets, **scale, class_names=class_names)
    return Network(shape).eval(), Config("sample", featurizer, task, shape)


def save_tiny(folder: Path, **options) -> Path:
    """Writes a ``tiny_model`` as a run folder."""
    model, config = tiny_model(**options)
    save_model(folder / WEIGHTS, model, config, {"epoch": 3, "val_metric": 0.5})
    return folder


def save_two(folder: Path, **options) -> Path:
    """Writes a table model of two tiny networks, with expected errors."""
    models = [tiny_model(seed=seed, **options) for seed in range(2)]
    config, ones = models[0][1], np.ones((1, len(models[0][1].task.targets)))
    difficulty = Difficulty(np.repeat(0 * ones, 1 + SIGNS, axis=0), ones, np.concatenate([0 * ones, ones]))
    networks = NetworksMember([(*model, {}) for model in models])
    TableModel(config.task, config.featurizer, {"networks": networks}, ones, None, difficulty).save(folder)
    return folder


def recorder(config: Config, train: MoleculeDataset, val: MoleculeDataset, folder: Path) -> RunWriter:
    """A run at its beginning; ``next(recorder(...).epochs())`` trains one epoch and writes it down."""
    return RunWriter(Trainer(config, train, val), RunFolder(folder), verbose=False)


class Trusting(Predictor):
    """Networks whose mean is calibrated, with intervals and a domain."""

    def __init__(self, models: list[tuple[Network, Config]], trust: Trust | None = None):
        super().__init__(models)
        self.trust = trust

    @property
    def digest(self) -> str:
        return array_digest(trust_arrays(self.trust), {}) if self.trust else ""

    def predictions(self, molecules: Molecules, outputs: list[np.ndarray]) -> Predictions:
        found = super().predictions(molecules, outputs)
        warnings = self.trust.domain.warnings_on(molecules) if self.trust else found.warnings
        return replace(found, values=calibrated(found.values, self.trust), warnings=warnings)
