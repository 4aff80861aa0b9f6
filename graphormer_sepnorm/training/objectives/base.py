"""What a network is trained for: the loss that the loop lowers, and the score that chooses an epoch.

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


class Objective(Protocol):
    """What a network is trained for on two splits.

    It has no parameters: whatever it wants to be predicted, the head of the network predicts, one number per target.

    Attributes:
        task: with what was learnt from the training split; it is written into the config of the run.
    """

    task: TaskConfig

    def loss(self, network: Network, batch: GraphBatch) -> Tensor:
        """The mean loss [] over a batch of the training split, in float32.

        The network computes in the precision of the run. Random numbers, such as what to mask, are PyTorch's.
        """

    def counts(self, molecules: np.ndarray) -> Tensor:
        """How much each of the training molecules with these numbers counts in the mean loss: [B] or [B, D].

        Of several processes, each computes the loss of its share of a batch.
        """

    def score(self, network: Network) -> float:
        """How well a network in evaluation mode does on the validation split; by all processes together.

        Raises:
            InputError: what it predicts is not finite.
        """

    def improves(self, score: float, best: float | None) -> bool:
        """Whether a score is better than the best one so far; None: there is none yet."""


Objectives = Callable[[TaskConfig, MoleculeDataset, MoleculeDataset, torch.device], Objective]
"""Makes an objective from the task, the training split, the validation split, and where the network lies.

Raises:
    InputError: the splits cannot be learnt from or scored.
"""


@dataclass(frozen=True)
class Corpus:
    """Molecules to pre-train on.

    Attributes:
        smiles: [M].
        targets: names of what the head predicts.
        y: float32 [M, D], the labels by target, of about unit scale, NaN where missing; [M, 0] for an objective that
            finds what is to be predicted in the molecules themselves.
    """

    smiles: list[str]
    targets: tuple[str, ...]
    y: np.ndarray

    def take(self, rows: np.ndarray) -> "Corpus":
        return Corpus([self.smiles[row] for row in rows], self.targets, self.y[rows])


class Pretraining(Protocol):
    """What a body is pre-trained for.

    Attributes:
        title: what it learns to predict, for people: "RDKit's descriptors".
        objective: what the loop is handed.
    """

    title: str
    objective: Objectives

    def corpus(self, smiles: list[str]) -> Corpus:
        """Those of the molecules that it can be pre-trained on, with their labels.

        What takes long is kept in the cache; no other process computes in the same folder of the cache meanwhile.

        Args:
            smiles: of all rows of the tables, as they stand there; some cannot be read.

        Raises:
            InputError: too few molecules, or nothing to learn from them.
        """

    def task(self, targets: tuple[str, ...]) -> TaskConfig:
        """The task of the network: its targets are those of the corpus, its metric chooses the epoch."""
