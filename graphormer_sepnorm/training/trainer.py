"""The training loop, on Lightning Fabric, and the run folder that it leaves behind."""

import itertools
import json
import math
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from graphormer_sepnorm.config import Config, config_to_json, first_problem
from graphormer_sepnorm.data.store import MoleculeDataset
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.inference.forward import predict_together
from graphormer_sepnorm.layers.batch_norm import reestimate_batch_norm, synchronize_batch_norms
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import CONFIG, CURVES, METRICS_FILE, STATE, WEIGHTS
from graphormer_sepnorm.runs.plots import plot_curves
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.files import remove_leftovers, write_atomically
from graphormer_sepnorm.tasks import Task, check_learnable, check_scorable, fit_scale
from graphormer_sepnorm.training.finetune import start_from
from graphormer_sepnorm.training.optimizers import MOMENTS, OPTIMIZERS
from graphormer_sepnorm.training.resume import Progress
from graphormer_sepnorm.training.schedule import epoch_batches, learning_rate, num_batches

REESTIMATE_BATCHES = 32


class Trainer:
    """Trains one model and keeps its run folder.

    Args:
        config: the run; the scale of its task is fitted on the training split here.
        train, val: prepared splits.
        out: run folder.
        verbose: show progress bars and a line per epoch.

    Raises:
        InputError: fewer than two training molecules, an empty validation split, targets that cannot be used, more
            processes than molecules in a batch, or a checkpoint to start from that does not fit.
    """

    def __init__(self, config: Config, train: MoleculeDataset, val: MoleculeDataset, out: Path, verbose: bool = True):
        if len(train) < 2:
            raise InputError(f"training needs at least 2 molecules, the training split has {len(train)}")
        check_learnable(config.task, train.y)
        self.config = replace(config, task=fit_scale(config.task, train.y))
        check_scorable(self.config.task, val.y, "validation")
        smallest_batch = len(train) // num_batches(len(train), config.train.batch_size)
        if smallest_batch < distributed.num_processes():
            raise InputError(
                f"batches of {smallest_batch} molecules cannot be shared by {distributed.num_processes()} processes: "
                "start fewer, or choose a larger batch"
            )
        self.task = Task(self.config.task)
        self.train, self.val, self.out = train, val, out
        self.is_main = distributed.rank() == 0
        self.verbose = verbose and self.is_main
        self.fabric = distributed.make_fabric(config.train.precision)
        torch.manual_seed(config.train.seed)
        self.model = Network(config.model)
        synchronize_batch_norms(self.model)
        if config.train.start_from is not None:
            start_from(self.model, Path(config.train.start_from), config.train.frozen_layers)
        optimizers = OPTIMIZERS[config.train.optimizer](self.model, config.train)
        self.forward, *self.optimizers = self.fabric.setup(self.model, *optimizers)
        self.average = None
        if config.train.averaging:
            self.average = AveragedModel(
                self.model, multi_avg_fn=get_ema_multi_avg_fn(config.train.averaging), use_buffers=False
            )
        self.progress = Progress()

    @property
    def evaluated(self) -> Network:
        """The model that is evaluated and kept: the averaged one where there is one."""
        return self.model if self.average is None else self.average.module

    @property
    def out_of_patience(self) -> bool:
        """Whether as many epochs as the config's patience brought nothing better."""
        patience = self.config.train.patience
        return 0 < patience <= self.progress.epoch - self.progress.best_epoch

    def batch(self, molecules: np.ndarray) -> GraphBatch:
        """This process's share of a batch."""
        return self.train.batch(distributed.share(molecules)).to(self.fabric.device)

    def run(self) -> dict:
        """Trains from where the run stands to the last epoch; returns the facts of the best checkpoint."""
        if self.is_main:
            write_atomically(self.out / CONFIG, config_to_json(self.config).encode())
            remove_leftovers(self.out)
        while self.progress.epoch < self.config.train.epochs and not self.out_of_patience:
            self.run_epoch(self.progress.epoch + 1)
        if self.is_main:
            plot_curves(self.out / METRICS_FILE, self.out / CURVES, self.config.task.metric)
        distributed.wait_for_all()
        return {"epoch": self.progress.best_epoch, "val_metric": self.progress.best_metric}

    def run_epoch(self, epoch: int) -> None:
        """One pass over the training split, an evaluation, and everything written down."""
        started = time.perf_counter()
        torch.manual_seed(self.config.train.seed + 1_000_003 * epoch + 7919 * distributed.rank())
        loss, lr = self.train_epoch(epoch)
        trained = time.perf_counter()
        metric = self.evaluate(epoch)
        self.progress.epoch = epoch
        if self.task.metric.improves(metric, self.progress.best_metric):
            self.progress.best_metric, self.progress.best_epoch = metric, epoch
        speed = len(self.train) / (trained - started)
        line = {
            "epoch": epoch,
            "train_loss": loss,
            "val_metric": metric,
            "lr": lr,
            "molecules_per_second": speed,
            "seconds": time.perf_counter() - started,
        }
        if self.is_main:
            self.save_epoch(line)
        if self.verbose:
            print(
                f"epoch {epoch}/{self.config.train.epochs}: training loss {loss:.4f}, "
                f"validation {self.config.task.metric} {metric:.4f}, {speed:.0f} molecules/s",
                flush=True,
            )

    def save_epoch(self, line: dict) -> None:
        """Writes what an epoch gave; the state comes last, so that what it tells of is on the disk."""
        if self.progress.best_epoch == line["epoch"]:
            facts = {"epoch": line["epoch"], "val_metric": line["val_metric"]}
            checkpoint.save_model(self.out / WEIGHTS, self.evaluated, self.config, facts)
        self.append_metrics(line)
        self.save_state()

    def train_epoch(self, epoch: int) -> tuple[float, float]:
        """Updates the model on every batch of the epoch; returns the mean loss and the last learning rate."""
        train = self.config.train
        batches = epoch_batches(len(self.train), train.batch_size, train.seed, epoch)
        total_loss, lr = 0.0, train.lr
        self.model.train()
        description = f"epoch {epoch}/{train.epochs}"
        hidden = None if self.verbose else True
        with tqdm(total=len(self.train), desc=description, unit=" molecules", leave=False, disable=hidden) as bar:
            for step, molecules in enumerate(batches):
                lr = learning_rate(train, (epoch - 1 + (step + 1) / len(batches)) / train.epochs)
                loss, gradient_norm = self.update(molecules, lr)
                if not (math.isfinite(loss) and math.isfinite(gradient_norm)):
                    raise InputError(
                        f"loss {loss}, gradient norm {gradient_norm} in epoch {epoch}, step {step + 1}, molecules "
                        f"{self.suspects(molecules).tolist()} of the training split: lower the learning rate or look "
                        "at their targets; the last checkpoint is intact"
                    )
                total_loss += loss * len(molecules)
                bar.update(len(molecules))
                bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
        return total_loss / len(self.train), lr

    def update(self, molecules: np.ndarray, lr: float) -> tuple[float, float]:
        """One optimiser step; returns the loss and the norm of the gradient before clipping, over all processes.

        No step is taken if one of them is not finite.
        """
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = lr
        batch = self.batch(molecules)
        loss = self.task.loss(self.forward(batch), batch.y) * self.weight_of_share(molecules)
        self.model.zero_grad()
        self.fabric.backward(loss)
        gradient_norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.train.clip_norm)
        loss, norm = distributed.mean(loss).item(), gradient_norm.item()
        if math.isfinite(loss) and math.isfinite(norm):
            for optimizer in self.optimizers:
                optimizer.step()
            if self.average is not None:
                self.average.update_parameters(self.model)
        return loss, norm

    @torch.no_grad()
    def suspects(self, molecules: np.ndarray) -> np.ndarray:
        """Those of a batch whose own loss is not finite; all of them if none stands out.

        For a run that is over: running statistics, which the batch may have spoilt, start anew.
        """
        for module in self.model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.reset_running_stats()
        batch = self.train.batch(molecules).to(self.fabric.device)
        output = self.model.eval()(batch)
        losses = [self.task.loss(*rows) for rows in zip(output.split(1), batch.y.split(1), strict=True)]
        wrong = ~(torch.stack(losses).isfinite() & output.isfinite().all(dim=1)).cpu().numpy()
        return molecules[wrong] if wrong.any() else molecules

    def weight_of_share(self, molecules: np.ndarray) -> float:
        """What the loss of this process's share counts, for the mean over processes to be the mean over all labels."""
        labelled = ~np.isnan(self.train.y[molecules])
        return distributed.num_processes() * distributed.share(labelled).sum() / max(labelled.sum(), 1)

    def evaluate(self, epoch: int) -> float:
        """The metric on the validation split, with BatchNorm statistics of today's weights."""
        reestimate_batch_norm(self.evaluated, self.reestimation_batches(epoch))
        self.evaluated.eval()
        prediction = predict_together(self.evaluated, self.val, self.task)
        wrong = np.flatnonzero(~np.isfinite(prediction).all(axis=1))
        if len(wrong):
            raise InputError(
                f"in epoch {epoch} the predictions for validation molecules {wrong[:10].tolist()} are not finite: "
                "lower the learning rate; the last checkpoint is intact"
            )
        return self.task.metric(self.val.y, prediction)

    def reestimation_batches(self, epoch: int) -> Iterator[GraphBatch]:
        train = self.config.train
        batches = epoch_batches(len(self.train), train.batch_size, train.seed, -epoch % 2**31)
        return (self.batch(molecules) for molecules in batches[:REESTIMATE_BATCHES])

    def append_metrics(self, line: dict) -> None:
        """Adds a line to the metrics, in place of lines of this epoch or later ones from an interrupted run."""
        path = self.out / METRICS_FILE
        before = path.read_text().splitlines() if path.exists() else []
        try:
            kept = [text for text in before if json.loads(text)["epoch"] < line["epoch"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"{path} is damaged: remove it, and the run goes on without its earlier epochs") from None
        write_atomically(path, "".join(f"{text}\n" for text in [*kept, json.dumps(line)]).encode())

    def save_state(self) -> None:
        """Writes everything that ``resume`` needs."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for name, moment, parameter, optimizer in self.moments():
            tensors[f"optimizer.{name}"] = optimizer.state[parameter][moment]
        if self.average is not None:
            tensors |= {f"average.{name}": value for name, value in self.average.state_dict().items()}
        checkpoint.save_tensors(self.out / STATE, tensors, self.config, asdict(self.progress))

    def resume(self) -> None:
        """Goes back to the last completed epoch of the run folder; to the beginning if there is none yet.

        Raises:
            InputError: the state is damaged, gone, or belongs to another configuration.
        """
        path = self.out / STATE
        if not path.exists() and self.holds_first_epoch_at_most():
            return
        tensors, config, facts = checkpoint.load_tensors(path)
        if config != self.config:
            raise InputError(
                f"{path} was written by another configuration: resume with the same options, or use a new --out"
            )
        checkpoint.check_tensors(tensors, self.state_layout(), path)
        parts: dict[str, dict[str, Tensor]] = defaultdict(dict)
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        self.model.load_state_dict(parts["model"])
        for name, moment, parameter, optimizer in self.moments():
            optimizer.state[parameter][moment] = parts["optimizer"][name].to(parameter.device)
        if self.average is not None:
            self.average.load_state_dict(parts["average"])
        try:
            self.progress = Progress(**facts)
        except ValidationError as error:
            raise InputError(f"{path}: {first_problem(error)}") from None

    def moments(self) -> Iterator[tuple[str, str, nn.Parameter, Optimizer]]:
        """What optimizers remember of parameters that are not frozen: its whole name, moment, parameter, optimizer."""
        names = {id(parameter): name for name, parameter in self.model.named_parameters()}
        for optimizer in self.optimizers:
            parameters = itertools.chain.from_iterable(group["params"] for group in optimizer.param_groups)
            for parameter, moment in itertools.product(parameters, MOMENTS[type(optimizer.optimizer)]):
                if parameter.requires_grad:
                    yield f"{names[id(parameter)]}.{moment}", moment, parameter, optimizer

    def state_layout(self) -> dict[str, Tensor]:
        """Tensors of the names, shapes and types that ``save_state`` writes."""
        layout = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for name, moment, parameter, _ in self.moments():
            layout[f"optimizer.{name}"] = parameter if moment != "step" else torch.zeros(())
        if self.average is not None:
            layout |= {f"average.{name}": value for name, value in self.average.state_dict().items()}
        return layout

    def holds_first_epoch_at_most(self) -> bool:
        """Whether the run folder is that of a run that was stopped before its first epoch was complete."""
        weights = self.out / WEIGHTS
        return not weights.exists() or checkpoint.load_tensors(weights)[2].get("epoch") == 1
