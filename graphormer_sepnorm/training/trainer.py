"""The training loop. It yields epochs and does not access the files of the run."""

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from tqdm import tqdm

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.layers.batch_norm import freeze_statistics, reestimate_batch_norm, synchronize_batch_norms
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.runs.checkpoint import HEAD
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.device import autocast, current
from graphormer_sepnorm.tasks import make_task
from graphormer_sepnorm.training.finetune import start_from, start_head
from graphormer_sepnorm.training.objectives.base import LabelObjective, Objectives
from graphormer_sepnorm.training.optimizers import make_optimizers
from graphormer_sepnorm.training.schedule import epoch_batches, fitted_epochs, learning_rate, num_batches
from graphormer_sepnorm.training.step import Step, find_loss

REESTIMATE_BATCHES = 16


@dataclass
class TrainingProgress:
    """The last epoch, and the best one, which is the last if the config keeps that."""

    epoch: int = 0
    best_metric: float | None = None
    best_epoch: int = 0


@dataclass(frozen=True)
class Epoch:
    """Results of one pass over the training split; a line of the metrics file."""

    epoch: int
    train_loss: float
    val_metric: float
    lr: float
    molecules_per_second: float
    seconds: float


class Update(NamedTuple):
    """An update whose results may still be on the device."""

    step: int  # from 1
    molecules: np.ndarray
    loss_and_norm: Tensor  # [2]


class Trainer:
    """Trains one model; ``config`` is the run with the task and epochs fitted to the training split."""

    def __init__(
        self,
        config: Config,
        train: MoleculeDataset,
        val: MoleculeDataset,
        verbose: bool = False,
        make_objective: Objectives = LabelObjective,
    ):
        if len(train) < 2:
            raise InputError(f"training needs at least 2 molecules, the training split has {len(train)}")
        smallest_batch = len(train) // max(num_batches(len(train), config.train.batch_size), 1)
        if smallest_batch < distributed.num_processes():
            raise InputError(
                f"batches of {smallest_batch} molecules cannot be shared by {distributed.num_processes()} processes: "
                "start fewer, or choose a larger batch"
            )
        self.train, self.val, self.verbose = train, val, verbose
        distributed.join()
        self.device = current().device
        self.objective = make_objective(config.task, train, val, self.device)
        self.config = replace(config, task=self.objective.task, train=fitted_epochs(config.train, len(train)))
        torch.manual_seed(config.train.seed)
        self.model = Network(config.model)
        synchronize_batch_norms(self.model)
        if config.train.start_from is not None:
            start_from(self.model, resolve_model(config.train.start_from), config.train.frozen_layers)
        self.body = [p for name, p in self.model.named_parameters() if p.requires_grad and not name.startswith(HEAD)]
        self.model.to(self.device)
        self.optimizers = make_optimizers(self.model, config.train)
        self.average = AveragedModel(self.model) if config.train.averaging else None
        if config.train.compile:
            self.model.compile(dynamic=True)
        self.step = Step(self.model, self.objective, train, self.config.train, self.optimizers, self.average)
        self.progress = TrainingProgress()

    @property
    def evaluated(self) -> Network:
        """The model that is evaluated and saved: the moving average if there is one."""
        return self.model if self.average is None else cast(Network, self.average.module)

    @property
    def out_of_patience(self) -> bool:
        """Whether the best metric is older than the config's patience; frozen epochs do not count."""
        train = self.config.train
        return 0 < train.patience <= self.progress.epoch - max(self.progress.best_epoch, train.frozen_epochs)

    def autocast(self) -> AbstractContextManager:
        return autocast(self.config.train.precision, self.device)

    def epochs(self) -> Iterator[Epoch]:
        """Trains from the current to the last epoch."""
        if self.config.train.start_from is not None and self.progress.epoch == 0:
            start_head(self.model, self.train, make_task(self.objective.task))
            distributed.wait_for_all()
            for parameter in self.model.head.parameters():
                distributed.take_from_first(parameter.detach())
        if distributed.num_processes() > 1:
            self.compile()
            distributed.wait_for_all()
        while self.progress.epoch < self.config.train.epochs and not self.out_of_patience:
            yield self.run_epoch(self.progress.epoch + 1)

    def compile(self) -> None:
        """Compiles what updates need by a discarded gradient, before a slow process could exceed a time limit."""
        molecules = np.arange(min(len(self.train), self.config.train.batch_size))
        (share,) = self.step.shares([molecules])
        loss = find_loss(self.model.eval(), self.objective, self.config.train.precision, share.batch)
        learning = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        torch.autograd.grad(loss, learning, allow_unused=True)

    def run_epoch(self, epoch: int) -> Epoch:
        started = time.perf_counter()
        self.freeze(epoch)
        self.model.set_dropout(epoch <= self.epochs_in(self.config.train.dropout_until))
        if self.has_fixed_statistics(epoch) and not self.has_fixed_statistics(epoch - 1):
            with self.autocast():
                reestimate_batch_norm(self.model, self.model.encode, self.reestimation_batches(epoch))
        torch.manual_seed(self.config.train.seed + 1_000_003 * epoch + 7919 * distributed.rank())
        loss, lr = self.train_epoch(epoch)
        trained = time.perf_counter()
        metric = self.evaluate(epoch)
        self.progress.epoch = epoch
        if self.config.train.keep == "last" or self.objective.improves(metric, self.progress.best_metric):
            self.progress.best_metric, self.progress.best_epoch = metric, epoch
        speed = len(self.train) / (trained - started)
        return Epoch(epoch, loss, metric, lr, speed, time.perf_counter() - started)

    def has_fixed_statistics(self, epoch: int) -> bool:
        """Whether BatchNorm normalizes by fixed statistics in an epoch, counted from 1."""
        train = self.config.train
        return train.frozen_statistics or epoch > self.epochs_in(train.statistics_until)

    def epochs_in(self, fraction: float) -> float:
        """The epochs in a fraction of all: 29 of 50 for 0.58, though the product is below 29 in floating point."""
        return round(fraction * self.config.train.epochs, 6)

    def freeze(self, epoch: int) -> None:
        """Freezes or unfreezes the body for this epoch, according to the config."""
        for parameter in self.body:
            parameter.requires_grad_(epoch > self.config.train.frozen_epochs)

    def train_epoch(self, epoch: int) -> tuple[float, float]:
        """Updates the model on every batch of the epoch; returns the mean loss and the last learning rate."""
        train = self.config.train
        batches = epoch_batches(len(self.train), train.batch_size, train.seed, epoch)
        total_loss, lr = 0.0, train.lr
        self.model.train()
        if self.has_fixed_statistics(epoch):
            freeze_statistics(self.model)
        description = f"epoch {epoch}/{train.epochs}"
        hidden = None if self.verbose and distributed.rank() == 0 else True
        with tqdm(total=len(self.train), desc=description, unit=" molecules", leave=False, disable=hidden) as bar:
            unread: list[Update] = []
            for step, (molecules, share) in enumerate(zip(batches, self.step.shares(batches), strict=True), start=1):
                lr = learning_rate(train, (epoch - 1) * len(batches) + step - 1, train.epochs * len(batches))
                unread.append(Update(step, molecules, self.step(share, lr)))
                if len(unread) == self.step.updates_per_reading or step == len(batches):
                    losses = self.losses(unread, epoch)
                    for update, loss in zip(unread, losses, strict=True):
                        total_loss += loss * len(update.molecules)
                        bar.update(len(update.molecules))
                    bar.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
                    unread.clear()
        return total_loss / len(self.train), lr

    def losses(self, updates: list[Update], epoch: int) -> list[float]:
        """Reads the losses of updates from the device; raises InputError if a loss or gradient is not finite."""
        read = torch.stack([update.loss_and_norm for update in updates]).tolist()
        for update, (loss, gradient_norm) in zip(updates, read, strict=True):
            if not (math.isfinite(loss) and math.isfinite(gradient_norm)):
                raise InputError(
                    f"loss {loss}, gradient norm {gradient_norm} in epoch {epoch}, step {update.step}, molecules "
                    f"{self.suspects(update.molecules).tolist()} of the training split: lower the learning rate or "
                    "look at their targets; the last checkpoint is intact"
                )
        return [loss for loss, _ in read]

    @torch.no_grad()
    def suspects(self, molecules: np.ndarray) -> np.ndarray:
        """The molecules whose own loss is not finite, or all. For a failed run: resets running statistics."""
        for module in self.model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.reset_running_stats()
        self.model.eval()
        batches = (self.train.batch([molecule]).to(self.device) for molecule in molecules)
        losses = [find_loss(self.model, self.objective, self.config.train.precision, batch) for batch in batches]
        wrong = ~torch.stack(losses).isfinite().cpu().numpy()
        return molecules[wrong] if wrong.any() else molecules

    def evaluate(self, epoch: int) -> float:
        """The validation score, with BatchNorm statistics of the current weights unless they are fixed."""
        with self.autocast():
            if not self.has_fixed_statistics(epoch):
                reestimate_batch_norm(self.evaluated, self.evaluated.encode, self.reestimation_batches(epoch))
            self.evaluated.eval()
            try:
                return self.objective.score(self.evaluated)
            except InputError as error:
                raise InputError(
                    f"in epoch {epoch} {error}: lower the learning rate; the last checkpoint is intact"
                ) from None

    def reestimation_batches(self, epoch: int) -> Iterator[GraphBatch]:
        train = self.config.train
        other_order = -epoch % 2**31  # than that of any epoch
        batches = epoch_batches(len(self.train), train.batch_size, train.seed, other_order)
        return (share.batch for share in self.step.shares(batches[:REESTIMATE_BATCHES]))
