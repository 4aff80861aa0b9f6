"""The interface of training objectives: the loss to minimize, and the score that selects an epoch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.training.objectives.labels import LabelObjective


class Objective(Protocol):
    """A training objective on two splits, without parameters: the head makes all predictions."""

    task: TaskConfig  # fitted to the training split

    def loss(self, network: Network, batch: GraphBatch) -> Tensor:
        """The mean loss [] over a batch of the training split, in float32; random numbers are PyTorch's."""

    def counts(self, molecules: np.ndarray) -> Tensor:
        """Weight of each training molecule with these indices in the mean loss: [B] or [B, D]."""

    def score(self, network: Network) -> float:
        """On the validation split, by all processes together; raises InputError if a prediction is not finite."""

    def improves(self, score: float, best: float | None) -> bool:
        """Whether a score is better than the best one so far; None: there is none yet."""


Objectives = Callable[[TaskConfig, MoleculeDataset, MoleculeDataset, torch.device], Objective]
"""Creates an objective from the task, the training split, the validation split and the device of the network."""


@dataclass(frozen=True)
class Corpus:
    """Molecules for pretraining."""

    smiles: list[str]
    targets: tuple[str, ...]  # names of the outputs of the head
    y: np.ndarray  # float32 [M, targets] with about unit scale, NaN where missing

    def take(self, rows: np.ndarray) -> "Corpus":
        return Corpus([self.smiles[row] for row in rows], self.targets, self.y[rows])


class Pretraining(Protocol):
    """A pretraining task."""

    title: str  # what the model learns to predict
    objective: Objectives = LabelObjective

    def corpus(self, smiles: list[str]) -> Corpus:
        """The readable molecules, with their labels; raises InputError if they are too few or the same."""

    def task(self, targets: tuple[str, ...]) -> TaskConfig:
        """The task of the network; its metric selects the epoch."""
        return TaskConfig("regression", "mae", targets, loss="mse")
