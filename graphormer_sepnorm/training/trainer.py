"""The training loop: it yields epochs and knows no files of the run."""

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from tqdm import tqdm

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.layers.batch_norm import reestimate_batch_norm, synchronize_batch_norms
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.device import autocast, current
from graphormer_sepnorm.training.finetune import learning_body, start_from
from graphormer_sepnorm.training.objectives.base import Objectives
from graphormer_sepnorm.training.objectives.labels import LabelObjective
from graphormer_sepnorm.training.optimizers import make_optimizers
from graphormer_sepnorm.training.schedule import (
    epoch_batches,
    fitted_epochs,
    learning_rate,
    smallest_batch_size,
)
from graphormer_sepnorm.training.step import Step, find_loss

REESTIMATE_BATCHES = 16


@dataclass
class TrainingProgress:
    """How far a run has come: the last epoch, and the best one with its validation metric (0 and None: none yet)."""

    epoch: int = 0
    best_metric: float | None = None
    best_epoch: int = 0


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training split gave: a line of the metrics."""

    epoch: int
    train_loss: float
    val_metric: float
    lr: float
    molecules_per_second: float
    seconds: float


class Trainer:
    """Trains one model.

    Args:
        config: the run; its task and the number of epochs are fitted to the training split here.
        train, val: prepared splits.
        verbose: show progress bars.
        make_objective: from the task and the splits to what is trained for; by default, to predict their labels.

    Attributes:
        config: the run, with the fitted task and epochs.
        objective: what is trained for.
        model: in training.
        evaluated: the model that is evaluated and kept: the averaged one where there is one.
        optimizers: each of its own parameters of the model.
        step: what updates the model.
        progress: how far it has come.

    Raises:
        InputError: an unknown optimizer, fewer than two training molecules, splits that the objective cannot use, more
            processes than molecules in a batch, or a checkpoint to start from that does not fit.
    """

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
        smallest_batch = smallest_batch_size(len(train), config.train.batch_size)
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
        self.body = learning_body(self.model)
        self.model.to(self.device)
        self.optimizers = make_optimizers(self.model, config.train)
        self.average = AveragedModel(self.model) if config.train.averaging else None
        if config.train.compile:
            self.model.compile(dynamic=True)
        self.step = Step(self.model, self.objective, train, self.config.train, self.optimizers, self.average)
        self.progress = TrainingProgress()

    @property
    def evaluated(self) -> Network:
        """The model that is evaluated and kept: the averaged one where there is one."""
        return self.model if self.average is None else cast(Network, self.average.module)

    @property
    def out_of_patience(self) -> bool:
        """Whether as many epochs as the config's patience brought nothing better; frozen ones do not count."""
        train = self.config.train
        return 0 < train.patience <= self.progress.epoch - max(self.progress.best_epoch, train.frozen_epochs)

    def autocast(self) -> AbstractContextManager:
        """Within it the model computes in the precision of the run."""
        return autocast(self.config.train.precision, self.device)

    def epochs(self) -> Iterator[Epoch]:
        """Trains from where the run stands to the last epoch."""
        if distributed.num_processes() > 1:
            self.compile()
            distributed.wait_for_all()
        while self.progress.epoch < self.config.train.epochs and not self.out_of_patience:
            yield self.run_epoch(self.progress.epoch + 1)

    def compile(self) -> None:
        """Computes a gradient and forgets it, so that whatever an update compiles is compiled."""
        molecules = np.arange(min(len(self.train), self.config.train.batch_size))
        (share,) = self.step.shares([molecules])
        loss = find_loss(self.model.eval(), self.objective, self.config.train.precision, share.batch)
        learning = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        torch.autograd.grad(loss, learning, allow_unused=True)

    def run_epoch(self, epoch: int) -> Epoch:
        """One pass over the training split and an evaluation."""
        started = time.perf_counter()
        self.freeze(epoch)
        self.model.set_dropout(epoch <= self.config.train.dropout_until * self.config.train.epochs)
        torch.manual_seed(self.config.train.seed + 1_000_003 * epoch + 7919 * distributed.rank())
        loss, lr = self.train_epoch(epoch)
        trained = time.perf_counter()
        metric = self.evaluate(epoch)
        self.progress.epoch = epoch
        if self.objective.improves(metric, self.progress.best_metric):
            self.progress.best_metric, self.progress.best_epoch = metric, epoch
        speed = len(self.train) / (trained - started)
        return Epoch(epoch, loss, metric, lr, speed, time.perf_counter() - started)

    def freeze(self, epoch: int) -> None:
        """Lets the body learn in this epoch or not, as the config says."""
        for parameter in self.body:
            parameter.requires_grad_(epoch > self.config.train.frozen_epochs)

    def train_epoch(self, epoch: int) -> tuple[float, float]:
        """Updates the model on every batch of the epoch; returns the mean loss and the last learning rate."""
        train = self.config.train
        batches = epoch_batches(len(self.train), train.batch_size, train.seed, epoch)
        total_loss, lr = 0.0, train.lr
        self.model.train()
        description = f"epoch {epoch}/{train.epochs}"
        hidden = None if self.verbose and distributed.rank() == 0 else True
        with tqdm(total=len(self.train), desc=description, unit=" molecules", leave=False, disable=hidden) as bar:
            taken: list[tuple[np.ndarray, Tensor]] = []
            for step, (molecules, share) in enumerate(zip(batches, self.step.shares(batches), strict=True)):
                lr = learning_rate(train, (epoch - 1) * len(batches) + step, train.epochs * len(batches))
                taken.append((molecules, self.step(share, lr)))
                if len(taken) < self.step.updates_per_reading and step + 1 < len(batches):
                    continue
                for number, loss in enumerate(self.losses(taken, epoch, step + 2 - len(taken))):
                    total_loss += loss * len(taken[number][0])
                    bar.update(len(taken[number][0]))
                bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
                taken.clear()
        return total_loss / len(self.train), lr

    def losses(self, taken: list[tuple[np.ndarray, Tensor]], epoch: int, first: int) -> list[float]:
        """The losses of updates by some molecules, read from where they lie.

        Args:
            first: the number of the first of these updates in the epoch.

        Raises:
            InputError: one of them, or a gradient, is not finite.
        """
        read = torch.stack([loss_and_norm for _, loss_and_norm in taken]).tolist()
        for number, (loss, gradient_norm) in enumerate(read):
            if not (math.isfinite(loss) and math.isfinite(gradient_norm)):
                suspects = self.suspects(taken[number][0]).tolist()
                raise InputError(
                    f"loss {loss}, gradient norm {gradient_norm} in epoch {epoch}, step {first + number}, molecules "
                    f"{suspects} of the training split: lower the learning rate or look at their targets; "
                    "the last checkpoint is intact"
                )
        return [loss for loss, _ in read]

    @torch.no_grad()
    def suspects(self, molecules: np.ndarray) -> np.ndarray:
        """Those of a batch whose own loss is not finite; all of them if none stands out.

        For a run that is over: running statistics, which the batch may have spoilt, start anew.
        """
        for module in self.model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.reset_running_stats()
        self.model.eval()
        batches = (self.train.batch([molecule]).to(self.device) for molecule in molecules)
        losses = [find_loss(self.model, self.objective, self.config.train.precision, batch) for batch in batches]
        wrong = ~torch.stack(losses).isfinite().cpu().numpy()
        return molecules[wrong] if wrong.any() else molecules

    def evaluate(self, epoch: int) -> float:
        """The score on the validation split, with BatchNorm statistics of today's weights."""
        with self.autocast():
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
        batches = epoch_batches(len(self.train), train.batch_size, train.seed, -epoch % 2**31)
        return (share.batch for share in self.step.shares(batches[:REESTIMATE_BATCHES]))
