"""The training loop, its updates and its schedule. It yields epochs and does not access the files of the run."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, cast

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from graphormer_sepnorm.config import Config, TrainConfig
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
from graphormer_sepnorm.training.objectives import LabelObjective
from graphormer_sepnorm.training.optimizers import make_optimizers

REESTIMATE_BATCHES = 16


def learning_rate(config: TrainConfig, update: int, updates: int) -> float:
    """Warm-up to the peak, then decay to zero, at the middle of an update. Trapezoid: Hagele et al., NeurIPS 2024."""
    progress = (update + 0.5) / updates
    if progress < config.warmup:
        return config.lr * progress / config.warmup
    if config.schedule == "trapezoid":
        return config.lr * min(1.0, (1 - progress) / config.cooldown)
    fallen = (progress - config.warmup) / (1 - config.warmup)
    if config.schedule == "linear":
        return config.lr * (1 - fallen)
    return config.lr * 0.5 * (1 + math.cos(math.pi * fallen))


def epoch_batches(num_molecules: int, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Random batches of an epoch. Their sizes differ by at most one, so no batch has a single molecule."""
    order = np.random.default_rng((seed, epoch)).permutation(num_molecules)
    return np.array_split(order, num_batches(num_molecules, batch_size))


def fitted_epochs(config: TrainConfig, num_molecules: int) -> TrainConfig:
    """The optimization with the epochs that ``min_updates`` requires for a training split of this size."""
    least = math.ceil(config.min_updates / num_batches(num_molecules, config.batch_size))
    return with_epochs(config, max(config.epochs, least))


def with_epochs(config: TrainConfig, epochs: int) -> TrainConfig:
    """With another number of epochs, of which at most half are frozen, so that the body is also trained."""
    return replace(config, epochs=epochs, frozen_epochs=min(config.frozen_epochs, epochs // 2))


def num_batches(num_molecules: int, batch_size: int) -> int:
    return min(math.ceil(num_molecules / batch_size), num_molecules // 2)


Share = tuple[GraphBatch, float]
"""This process's share of a batch, on the device of the model, and a weight such that the mean loss over processes is
the mean over all labels."""


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


def find_loss(model: Network, objective: LabelObjective, precision: str, batch: GraphBatch) -> Tensor:
    with autocast(precision, batch.x.device):
        return objective.loss(model, batch)


@dataclass
class TrainingProgress:
    """The last epoch, and the best one, which is the last if the config keeps that."""

    epoch: Annotated[int, Field(ge=0)] = 0
    best_metric: float | None = None
    best_epoch: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True)
class Epoch:
    """Results of one pass over the training split; a line of the metrics file."""

    epoch: int
    train_loss: float
    val_metric: float
    lr: float
    molecules_per_second: float
    seconds: float


class Trainer:
    """Trains one model; ``config`` is the run with the task and epochs fitted to the training split."""

    def __init__(
        self,
        config: Config,
        train: MoleculeDataset,
        val: MoleculeDataset,
        verbose: bool = False,
        make_objective: type[LabelObjective] = LabelObjective,
    ):
        if len(train) < 2:
            raise InputError(f"training needs at least 2 molecules, the training split has {len(train)}")
        smallest_batch = len(train) // num_batches(len(train), config.train.batch_size)
        if smallest_batch < distributed.num_processes():
            problem = f"cannot be shared by {distributed.num_processes()} processes"
            raise InputError(f"batches of {smallest_batch} molecules {problem}: start fewer, or choose a larger batch")
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
        average = get_ema_multi_avg_fn(config.train.averaging)
        self.average = AveragedModel(self.model, multi_avg_fn=average) if config.train.averaging else None
        if config.train.compile:
            self.model.compile(dynamic=True)
        self.updates_per_reading = 1 if self.device.type == "cpu" else 100  # reading synchronizes with a GPU
        self.progress = TrainingProgress()

    @property
    def evaluated(self) -> Network:
        return self.model if self.average is None else cast(Network, self.average.module)

    def epochs(self) -> Iterator[Epoch]:
        if self.config.train.start_from is not None and self.progress.epoch == 0:
            start_head(self.model, self.train, make_task(self.objective.task))
            distributed.wait_for_all()
            for parameter in self.model.head.parameters():
                distributed.take_from_first(parameter.detach())
        train, progress = self.config.train, self.progress
        if distributed.num_processes() > 1:  # compiles what updates need, before a slow process exceeds a time limit
            ((batch, _),) = self.shares([np.arange(min(len(self.train), train.batch_size))])
            loss = find_loss(self.model.eval(), self.objective, train.precision, batch)
            learning = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
            torch.autograd.grad(loss, learning, allow_unused=True)
            distributed.wait_for_all()
        while progress.epoch < train.epochs:
            if 0 < train.patience <= progress.epoch - max(progress.best_epoch, train.frozen_epochs):
                break  # frozen epochs do not count
            yield self.run_epoch(progress.epoch + 1)

    def shares(self, batches: Sequence[np.ndarray]) -> Iterator[Share]:
        """Shares of batches of the training split; a batch is given by the indices of its molecules."""
        own, weight = self.train.batches(map(distributed.share, batches), self.device), 1.0
        for molecules, batch in zip(batches, own, strict=True):
            if distributed.num_processes() > 1:
                counts = self.objective.counts(molecules).numpy()
                weight = distributed.num_processes() * distributed.share(counts).sum() / (counts.sum() or 1)
            yield batch, weight

    def update(self, share: Share, lr: float) -> Tensor:
        """The loss and the norm of the gradient [2] over all processes; no weight changes if one is not finite."""
        batch, weight = share
        loss = find_loss(self.model, self.objective, self.config.train.precision, batch) * weight
        self.model.zero_grad()
        loss.backward()
        distributed.average_gradients(self.model)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.train.clip_norm)
        loss_and_norm = torch.stack([distributed.mean(loss.detach()), norm])
        skip = (~loss_and_norm.isfinite().all()).float()
        for optimizer in self.optimizers:
            step_unless(skip, optimizer, lr)
        if self.average is not None:
            self.average.update_parameters(self.model)
        return loss_and_norm

    def run_epoch(self, epoch: int) -> Epoch:
        started = time.perf_counter()
        self.freeze(epoch)
        self.model.set_dropout(epoch <= self.epochs_in(self.config.train.dropout_until))
        if self.has_fixed_statistics(epoch) and not self.has_fixed_statistics(epoch - 1):
            self.reestimate(self.model, epoch)
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
        hidden = None if self.verbose and distributed.rank() == 0 else True
        description = f"epoch {epoch}/{train.epochs}"
        with tqdm(total=len(self.train), desc=description, unit=" molecules", leave=False, disable=hidden) as bar:
            unread: list[Tensor] = []  # results that may still be on the device
            for step, share in enumerate(self.shares(batches), start=1):
                lr = learning_rate(train, (epoch - 1) * len(batches) + step - 1, train.epochs * len(batches))
                unread.append(self.update(share, lr))
                if len(unread) == self.updates_per_reading or step == len(batches):
                    first = step - len(unread)
                    for number, (loss, norm) in enumerate(torch.stack(unread).tolist(), start=first):
                        if not (math.isfinite(loss) and math.isfinite(norm)):
                            where = f"epoch {epoch}, step {number + 1}, molecules {self.suspects(batches[number])}"
                            advice = "lower the learning rate or look at their targets; the last checkpoint is intact"
                            problem = f"loss {loss}, gradient norm {norm} in {where} of the training split"
                            raise InputError(f"{problem}: {advice}")
                        total_loss += loss * len(batches[number])
                    bar.update(sum(map(len, batches[first:step])))
                    bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
                    unread.clear()
        return total_loss / len(self.train), lr

    @torch.no_grad()
    def suspects(self, molecules: np.ndarray) -> list[int]:
        """The molecules whose own loss is not finite, or all. For a failed run: resets running statistics."""
        for module in self.model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.reset_running_stats()
        self.model.eval()
        batches = (self.train.batch([molecule]).to(self.device) for molecule in molecules)
        losses = [find_loss(self.model, self.objective, self.config.train.precision, batch) for batch in batches]
        wrong = ~torch.stack(losses).isfinite().cpu().numpy()
        return (molecules[wrong] if wrong.any() else molecules).tolist()

    def evaluate(self, epoch: int) -> float:
        """The validation score, with BatchNorm statistics of the current weights unless they are fixed."""
        if not self.has_fixed_statistics(epoch):
            self.reestimate(self.evaluated, epoch)
        try:
            with autocast(self.config.train.precision, self.device):
                return self.objective.score(self.evaluated.eval())
        except InputError as error:
            advice = "lower the learning rate; the last checkpoint is intact"
            raise InputError(f"in epoch {epoch} {error}: {advice}") from None

    def reestimate(self, model: Network, epoch: int) -> None:
        """Recomputes the statistics of BatchNorm from random batches of another order than that of any epoch."""
        train = self.config.train
        batches = epoch_batches(len(self.train), train.batch_size, train.seed, -epoch % 2**31)
        shares = self.shares(batches[:REESTIMATE_BATCHES])
        with autocast(train.precision, self.device):
            reestimate_batch_norm(model, model.encode, (batch for batch, _ in shares))
