"""The interface of training objectives: the loss to minimize, and the score that selects an epoch.

Axis letters: M molecules of a split, B of a batch, D targets.
"""

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
    """A training objective on two splits.

    It has no parameters: the head of the network makes all predictions, one number per target.

    Attributes:
        task: fitted to the training split; written into the config of the run.
    """

    task: TaskConfig

    def loss(self, network: Network, batch: GraphBatch) -> Tensor:
        """The mean loss [] over a batch of the training split, in float32.

        The network computes in the precision of the run. Random numbers, for example for masking, are PyTorch's.
        """

    def counts(self, molecules: np.ndarray) -> Tensor:
        """Weight of each training molecule with these indices in the mean loss: [B] or [B, D].

        With several processes, each computes the loss of its share of a batch.
        """

    def score(self, network: Network) -> float:
        """The score of a network in evaluation mode on the validation split, computed by all processes together.

        Raises:
            InputError: a prediction is not finite.
        """

    def improves(self, score: float, best: float | None) -> bool:
        """Whether a score is better than the best one so far; None: there is none yet."""


Objectives = Callable[[TaskConfig, MoleculeDataset, MoleculeDataset, torch.device], Objective]
"""Creates an objective from the task, the training split, the validation split and the device of the network.

Raises:
    InputError: the splits cannot be used for training or scoring.
"""


@dataclass(frozen=True)
class Corpus:
    """Molecules for pretraining.

    Attributes:
        smiles: [M].
        targets: names of the outputs of the head.
        y: float32 [M, D] labels by target, with about unit scale, NaN where missing; [M, 0] for an objective that
            computes its targets from the molecules.
    """

    smiles: list[str]
    targets: tuple[str, ...]
    y: np.ndarray

    def take(self, rows: np.ndarray) -> "Corpus":
        return Corpus([self.smiles[row] for row in rows], self.targets, self.y[rows])


class Pretraining(Protocol):
    """A pretraining task.

    Attributes:
        title: what the model learns to predict, for example "RDKit's descriptors".
        objective: creates the objective for the training loop; by default, to predict the labels.
    """

    title: str
    objective: Objectives = LabelObjective

    def corpus(self, smiles: list[str]) -> Corpus:
        """The molecules that can be used for pretraining, with their labels.

        Expensive results are cached; meanwhile, no other process computes in the same cache folder.

        Args:
            smiles: of all rows of the tables, unchanged; some may be unreadable.

        Raises:
            InputError: too few molecules, or labels that are all the same.
        """

    def task(self, targets: tuple[str, ...]) -> TaskConfig:
        """The task of the network: its targets are those of the corpus, its metric selects the epoch.

        By default, a regression with squared errors as loss and MAE as metric.
        """
        return TaskConfig("regression", "mae", targets, loss="mse")
