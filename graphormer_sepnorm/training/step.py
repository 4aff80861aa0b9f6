"""Updates of a model on its device, without synchronizing with it."""

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
    """This process's share of a batch, on the device of the model."""

    batch: GraphBatch
    weight: float  # such that the mean loss over processes is the mean over all labels


class Step:
    """Updates a model, and its moving average if there is one."""

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
        self.updates_per_reading = 1 if self.device.type == "cpu" else 100  # reading synchronizes with a GPU

    def shares(self, batches: Sequence[np.ndarray]) -> Iterator[BatchShare]:
        """This process's shares of batches of the training split; a batch is given by the indices of its molecules."""
        weights = map(self.weight_of_share, batches)
        own = self.train.batches(map(distributed.share, batches), self.device)
        return map(BatchShare, own, weights)

    def weight_of_share(self, molecules: np.ndarray) -> float:
        if distributed.num_processes() == 1:
            return 1.0
        counts = self.objective.counts(molecules).numpy()
        return distributed.num_processes() * distributed.share(counts).sum() / (counts.sum() or 1)

    def __call__(self, share: BatchShare, lr: float) -> Tensor:
        """The loss and the norm of the gradient [2] over all processes; no weight changes if one is not finite."""
        loss = find_loss(self.model, self.objective, self.config.precision, share.batch) * share.weight
        self.model.zero_grad()
        loss.backward()
        distributed.average_gradients(self.model)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        loss_and_norm = torch.stack([distributed.mean(loss.detach()), norm])
        skip = (~loss_and_norm.isfinite().all()).float()
        for optimizer in self.optimizers:
            step_unless(skip, optimizer, lr)
        if self.average is not None:
            follow(self.average.module, self.model, self.config.averaging, first=not self.average.n_averaged)
            self.average.n_averaged += 1
        return loss_and_norm


def step_unless(skip: Tensor, optimizer: Optimizer, lr: float) -> None:
    """An optimizer step at a learning rate, which changes nothing if ``skip`` [] is 1."""
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
    """The loss [] of a model for a batch of the training split, in a precision accepted by ``autocast``."""
    with autocast(precision, batch.x.device):
        return objective.loss(model, batch)


def follow(average: nn.Module, model: nn.Module, decay: float, first: bool) -> None:
    """Updates the moving average of the weights, or copies them if ``first``; buffers are copied."""
    with torch.no_grad():
        pairs = list(zip(average.parameters(), model.parameters(), strict=True))
        averages, now = ([pair[side].detach() for pair in pairs] for side in (0, 1))
        torch._foreach_lerp_(averages, now, 1.0 if first else 1 - decay)
        for kept, buffer in zip(average.buffers(), model.buffers(), strict=True):
            kept.copy_(buffer)
