"""One update of a model after another, on the device where it lies."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.device import autocast
from graphormer_sepnorm.training.objectives.base import Objective
from graphormer_sepnorm.training.optimizers import Parted

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class Step(Protocol):
    """What updates a model by batches of the training split, each named by the numbers of its molecules.

    Attributes:
        updates_per_reading: after how many updates their results are best read.
    """

    updates_per_reading: int

    def batch(self, molecules: np.ndarray) -> GraphBatch:
        """This process's share of a batch, where the model lies."""

    def __call__(self, molecules: np.ndarray, lr: float) -> Tensor:
        """Updates the model, and the averaged one if there is one, at a learning rate.

        Returns:
            the loss and the norm of the gradient before clipping [2], over all processes; if one of them is not finite,
            no weight has changed.
        """


class HostStep:
    """Updates that are read one by one, by one process or several, with any optimizer.

    Args:
        fabric: that set up what follows.
        forward: the model as Fabric wraps it.
        model: in training.
        objective: what it is trained for.
        train: the training split.
        config: batch size, precision, clipping and averaging.
        optimizers: of the model's parameters, as Fabric wraps them.
        average: follows the model; None: nothing does.
    """

    updates_per_reading = 1

    def __init__(
        self,
        fabric: "Fabric",
        forward: Network,
        model: Network,
        objective: Objective,
        train: MoleculeDataset,
        config: TrainConfig,
        optimizers: Sequence[Optimizer],
        average: AveragedModel | None,
    ):
        self.fabric, self.forward, self.model, self.objective = fabric, forward, model, objective
        self.train, self.config, self.optimizers, self.average = train, config, optimizers, average

    def batch(self, molecules: np.ndarray) -> GraphBatch:
        return self.train.batch(distributed.share(molecules)).to(self.fabric.device)

    def __call__(self, molecules: np.ndarray, lr: float) -> Tensor:
        set_rate(self.optimizers, lr)
        batch = self.batch(molecules)
        loss = find_loss(self.forward, self.objective, self.config.precision, batch) * self.weight_of_share(molecules)
        self.model.zero_grad()
        self.fabric.backward(loss)
        distributed.average_gradients(self.model)
        gradient_norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        mean_loss, norm = float(distributed.mean(loss).item()), float(gradient_norm.item())
        if math.isfinite(mean_loss) and math.isfinite(norm):
            for optimizer in self.optimizers:
                optimizer.step()
            self.follow()
        return torch.tensor([mean_loss, norm], dtype=torch.float64)

    def weight_of_share(self, molecules: np.ndarray) -> float:
        """What the loss of this process's share counts, for the mean over processes to be the mean over all labels."""
        counts = self.objective.counts(molecules).numpy()
        return distributed.num_processes() * distributed.share(counts).sum() / (counts.sum() or 1)

    def follow(self) -> None:
        """Lets the averaged weights follow those of the model."""
        if self.average is not None:
            follow(self.average.module, self.model, self.config.averaging, first=not self.average.n_averaged)
            self.average.n_averaged += 1


def set_rate(optimizers: Sequence[Optimizer] | Sequence[Parted], lr: float) -> None:
    """Gives all groups of parameters a learning rate."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = lr


def find_loss(model: Network, objective: Objective, precision: str, batch: GraphBatch) -> Tensor:
    """The loss [] of a model for a batch of the training split, in a precision as ``autocast`` knows it."""
    with autocast(precision, batch.x.device):
        return objective.loss(model, batch)


def follow(average: nn.Module, model: nn.Module, decay: float, first: bool) -> None:
    """Moves averaged weights towards those of a model, or to them at ``first``; buffers are copied."""
    with torch.no_grad():
        pairs = list(zip(average.parameters(), model.parameters(), strict=True))
        averages, now = ([pair[side].detach() for pair in pairs] for side in (0, 1))
        torch._foreach_lerp_(averages, now, 1.0 if first else 1 - decay)
        for kept, buffer in zip(average.buffers(), model.buffers(), strict=True):
            kept.copy_(buffer)
