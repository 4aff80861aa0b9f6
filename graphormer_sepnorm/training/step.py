"""One update of a model after another, on the device where it lies, none of which waits for a value there."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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


class BatchShare(NamedTuple):
    """This process's share of a batch, where the model lies.

    Attributes:
        batch: with labels.
        weight: of its loss, for the mean over processes to be the mean over all labels.
    """

    batch: GraphBatch
    weight: float


class Step:
    """What updates a model.

    Args:
        model: in training.
        objective: what it is trained for.
        train: the training split.
        config: precision, clipping and averaging.
        optimizers: of the model's parameters.
        average: follows the model; None: nothing does.

    Attributes:
        updates_per_reading: after how many updates their results are best read, for which a GPU is waited for.
    """

    def __init__(
        self,
        model: Network,
        objective: Objective,
        train: MoleculeDataset,
        config: TrainConfig,
        optimizers: Sequence[Optimizer],
        average: AveragedModel | None,
    ):
        self.model, self.objective, self.train, self.config = model, objective, train, config
        self.optimizers, self.average = optimizers, average
        self.device = model.cls.device
        self.updates_per_reading = 1 if self.device.type == "cpu" else 100

    def shares(self, batches: Sequence[np.ndarray]) -> Iterator[BatchShare]:
        """This process's shares of batches of the training split, each named by the numbers of its molecules."""
        weights = map(self.weight_of_share, batches)
        own = self.train.batches(map(distributed.share, batches), self.device)
        return map(BatchShare, own, weights)

    def weight_of_share(self, molecules: np.ndarray) -> float:
        if distributed.num_processes() == 1:
            return 1.0
        counts = self.objective.counts(molecules).numpy()
        return distributed.num_processes() * distributed.share(counts).sum() / (counts.sum() or 1)

    def __call__(self, share: BatchShare, lr: float) -> Tensor:
        """Updates the model, and the averaged one if there is one, at a learning rate.

        Returns:
            the loss and the norm of the gradient before clipping [2], over all processes; if one of them is not finite,
            no weight has changed.
        """
        loss = find_loss(self.model, self.objective, self.config.precision, share.batch) * share.weight
        self.model.zero_grad()
        loss.backward()
        distributed.average_gradients(self.model)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        found = torch.stack([distributed.mean(loss.detach()), norm])
        skip = (~found.isfinite().all()).float()
        for optimizer in self.optimizers:
            step_unless(skip, optimizer, lr)
        if self.average is not None:
            follow(self.average.module, self.model, self.config.averaging, first=not self.average.n_averaged)
            self.average.n_averaged += 1
        return found


def step_unless(skip: Tensor, optimizer: Optimizer, lr: float) -> None:
    """A step at a learning rate, which changes nothing where ``skip`` [] is 1.

    Optimizers that know PyTorch's ``found_inf`` look at it where it lies; for others it is read.
    """
    for group in optimizer.param_groups:
        group["lr"] = lr
    if not getattr(optimizer, "_step_supports_amp_scaling", False):
        if not skip.item():
            optimizer.step()
        return
    optimizer.found_inf = skip  # type: ignore[attr-defined]
    optimizer.step()
    del optimizer.found_inf  # type: ignore[attr-defined]


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
