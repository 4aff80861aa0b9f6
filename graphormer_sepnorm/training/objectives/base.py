"""Training objectives: the loss to minimize, the score that selects an epoch, and supervised training on labels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import predict_together
from graphormer_sepnorm.tasks import make_task


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


class LabelObjective:
    """Learns the labels of the training split; the score is the task's metric on the validation split."""

    def __init__(self, task: TaskConfig, train: MoleculeDataset, val: MoleculeDataset, device: torch.device):
        unfitted = make_task(task)
        unfitted.check_learnable(train.y)
        unfitted.check_scorable(val.y, "validation")
        self.task = unfitted.fitted(train.y, train.per_molecule.get("weight"))
        self.train, self.val = train, val
        self.here = make_task(self.task, device)
        self.on_host = make_task(self.task)

    def loss(self, network: Network, batch: GraphBatch) -> Tensor:
        assert batch.y is not None
        return self.here.loss(network(batch).float(), batch.y, batch.bounds, batch.weight)

    def counts(self, molecules: np.ndarray) -> Tensor:
        return self.on_host.counts(*self.train.labels(molecules), self.train.of_molecules("weight", molecules))

    def score(self, network: Network) -> float:
        prediction = predict_together(network, self.val, self.here)
        wrong = np.flatnonzero(~np.isfinite(prediction).all(axis=1))
        if len(wrong):
            raise InputError(f"the predictions for validation molecules {wrong[:10].tolist()} are not finite")
        return self.here.metric(self.val.y, prediction)

    def improves(self, score: float, best: float | None) -> bool:
        return self.here.metric.improves(score, best)


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
