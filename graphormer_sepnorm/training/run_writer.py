"""Writes the run folder during training, prints a line per epoch, and restores the last saved epoch."""

import contextlib
import copy
import shlex
import sys
import time
from collections.abc import Generator, Iterator, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

import torch
from pydantic import ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass
from torch import Tensor, nn
from torch.optim import Optimizer

from graphormer_sepnorm.config import STRICT, Config, first_problem
from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.forward import on_gpu
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.plots import plot_curves
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training.optimizers import make_optimizers
from graphormer_sepnorm.training.settings import differences
from graphormer_sepnorm.training.trainer import Epoch, Trainer, TrainingProgress

OPTIMIZER = "optimizer."  # begins the names of tensors that are not those of networks
SECONDS_BETWEEN_SAVES = 60.0  # for GPUs, where an epoch may take a second

Scalar = bool | int | float | str | None
Place = MutableMapping[str, object]
Content = tuple[dict[str, Tensor], dict]
# Lines for the metrics file, the best epoch (None: an earlier one), and the state to continue from.
Unsaved = tuple[list[dict], Content | None, Content]


@dataclass
class RunWriter:
    """Writes after every epoch, on a GPU less often; a killed run continues after the last line of its metrics."""

    trainer: Trainer
    run: RunFolder
    verbose: bool = True
    label: str = ""  # prefix of the line of each epoch
    unsaved: Unsaved | None = field(default=None, init=False)
    saved_at: float | None = field(default=None, init=False)

    def train(self, resume: bool = False) -> dict:
        """Trains to the last epoch, first restored if ``resume``; returns the facts of the best checkpoint."""
        if resume:
            restore(self.trainer, self.run)
        with contextlib.closing(self.epochs()) as epochs:
            for _ in epochs:
                pass
        if distributed.rank() == 0 and (lines := self.run.read_metrics()):
            plot_curves(lines, self.run.curves, METRICS[self.trainer.config.task.metric].title)
        distributed.wait_for_all()
        progress = self.trainer.progress
        return {"epoch": progress.best_epoch, "val_metric": progress.best_metric}

    def epochs(self) -> Generator[Epoch, None, None]:
        """Yields each epoch of the trainer after recording it; all are written when this ends or is closed."""
        if distributed.rank() == 0:
            self.run.begin(self.trainer.config)
        try:
            for epoch in self.trainer.epochs():
                if distributed.rank() == 0:
                    self.record(epoch)
                    if self.verbose:
                        print(f"{self.label}{epoch_words(epoch, self.trainer.config)}", file=sys.stderr)
                yield epoch
        finally:
            self.write()

    def record(self, epoch: Epoch) -> None:
        """Writes the results of an epoch, or keeps them to write them with later ones."""
        trainer, (lines, best, _) = self.trainer, self.unsaved or ([], None, None)
        if trainer.progress.best_epoch == epoch.epoch:
            best = trainer.evaluated.state_dict(), {"epoch": epoch.epoch, "val_metric": epoch.val_metric}
        self.unsaved = [*lines, asdict(epoch)], best, state_of(trainer)
        is_due = self.saved_at is None or time.monotonic() - self.saved_at > SECONDS_BETWEEN_SAVES
        if is_due or not on_gpu(trainer.model):  # on the CPU after every epoch
            self.write()
        else:
            self.unsaved = copy.deepcopy(self.unsaved)  # further training changes the tensors

    def write(self) -> None:
        if self.unsaved is not None:
            (lines, best, state), config, self.unsaved = self.unsaved, self.trainer.config, None
            if best is not None:
                checkpoint.save_tensors(self.run.weights, best[0], config, best[1])
            self.run.append_metrics(lines)
            checkpoint.save_tensors(self.run.state, state[0], config, state[1])
            self.saved_at = time.monotonic()


def epoch_words(epoch: Epoch, config: Config) -> str:
    scaled = " (scaled)" if config.task.std else ""  # in standard deviations of the labels, other than the metric
    losses = f"training loss{scaled} {epoch.train_loss:.4f}, validation {METRICS[config.task.metric].title}"
    speed = f"{epoch.molecules_per_second:.0f} molecules/s"
    return f"epoch {epoch.epoch}/{config.train.epochs}: {losses} {epoch.val_metric:.4f}, {speed}"


@contextlib.contextmanager
def training_alone(run: RunFolder, resume: bool) -> Iterator[None]:
    """No other run can train in the folder; with several processes, the first one holds the lock."""
    if distributed.rank() != 0:
        yield
        return
    with run.locked():
        run.check_free(resume)
        yield


@pydantic_dataclass(config=STRICT)
class StateFacts(TrainingProgress):
    """The part of a state that is not tensors: the progress, and numbers and strings of optimizers."""

    optimizer: dict[str, Scalar] = field(default_factory=dict)


def state_of(trainer: Trainer) -> tuple[dict[str, Tensor], dict]:
    """All tensors, without copying them, and facts that ``resume`` needs."""
    tensors, scalars = kept(places_of(trainer.optimizers, trainer.model))
    tensors = networks(trainer).state_dict() | {f"{OPTIMIZER}{name}": tensor for name, tensor in tensors.items()}
    return tensors, asdict(trainer.progress) | {"optimizer": scalars}


def restore(trainer: Trainer, run: RunFolder) -> None:
    """Restores the last saved epoch of a run folder; does nothing if there is none yet."""
    if not run.state.exists() and (
        not run.weights.exists() or checkpoint.load_tensors(run.weights)[2].get("epoch") == 1
    ):
        return
    tensors, config, fields = checkpoint.load_tensors(run.state)
    refuse_other(config, trainer.config, run.state)
    try:
        facts = StateFacts(**fields)
    except ValidationError as error:
        raise InputError(f"{run.state}: {first_problem(error)}") from None
    in_networks = {name: tensor for name, tensor in tensors.items() if not name.startswith(OPTIMIZER)}
    in_optimizers = {name.removeprefix(OPTIMIZER): tensors[name] for name in tensors if name not in in_networks}
    trainer.freeze(facts.epoch)
    restore_optimizers(trainer, in_optimizers, facts.optimizer, run.state)
    checkpoint.check_tensors(in_networks, networks(trainer).state_dict(), run.state)
    networks(trainer).load_state_dict(in_networks)
    trainer.progress = TrainingProgress(facts.epoch, facts.best_metric, facts.best_epoch)


def refuse_other(before: Config, now: Config, path: Path) -> None:
    if before != now:
        fields = "; ".join(differences(asdict(before), asdict(now)))
        restart = f"start another run from these weights with --from {shlex.quote(str(path.parent))} --out OTHER"
        advice = f"resume with the same options, or {restart if before.dataset in DATASETS else 'use a new --out'}"
        raise InputError(f"{path} was written by another configuration ({fields}): {advice}")


def networks(trainer: Trainer) -> nn.ModuleDict:
    """The model and, if there is one, its moving average."""
    named = {"model": trainer.model, "average": trainer.average}
    return nn.ModuleDict({name: network for name, network in named.items() if network is not None})


def places_of(optimizers: Sequence[Optimizer], model: nn.Module) -> dict[str, Place]:
    """The state that optimizers keep for each parameter that is not frozen, by the name of the parameter.

    And the options of their groups, where some keep counters, as ``<optimizer>.group.<group>``.
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = {
        f"{number}.group.{index}": group
        for number, optimizer in enumerate(optimizers)
        for index, group in enumerate(optimizer.param_groups)
    }
    states = {
        names[id(parameter)]: optimizer.state[parameter]
        for optimizer in optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.requires_grad
    }
    return states | groups


def kept(places: dict[str, Place]) -> tuple[dict[str, Tensor], dict[str, Scalar]]:
    """The state of optimizers: tensors, numbers and strings of parameters; tensors and numbers of groups."""
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, Scalar] = {}
    for place, state in places.items():
        for key, value in state.items():
            name, is_option = f"{place}.{key}", "params" in state
            if is_option and key == "lr":
                scalars[name] = float(cast(float, value))
            elif isinstance(value, Tensor):
                tensors[name] = value
            elif isinstance(value, Scalar) and not (is_option and isinstance(value, bool | str | None)):
                scalars[name] = value
            elif not is_option:
                raise TypeError(f"the optimizer keeps {key!r} of {place}, a {type(value).__name__}, which is not saved")
    return tensors, scalars


def restore_optimizers(trainer: Trainer, tensors: dict[str, Tensor], scalars: dict[str, Scalar], path: Path) -> None:
    """Restores the state of optimizers; raises InputError unless it fits that after an update with zero gradients."""
    model = copy.deepcopy(trainer.model)
    optimizers = make_optimizers(model, trainer.config.train)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    for optimizer in optimizers:
        optimizer.step()
    expected, expected_scalars = kept(places_of(optimizers, model))
    places = places_of(trainer.optimizers, trainer.model)
    saved = {name: name.rpartition(".") for name in (*tensors, *scalars, *expected_scalars)}
    first = {name: tensor for name, tensor in tensors.items() if name in expected or saved[name][0] not in places}
    checkpoint.check_tensors(first, expected, path)
    for name in expected_scalars.keys() - scalars.keys():
        if "params" not in places[saved[name][0]]:
            raise InputError(f"{path}: {name} is missing")
    for name, scalar in scalars.items():
        place = places.get(saved[name][0])
        if place is None or ("params" in place and name not in expected_scalars):
            raise InputError(f"{path}: {name} is not kept by the optimizer")
        if isinstance(expected_scalars.get(name), int | float) and not isinstance(scalar, int | float):
            raise InputError(f"{path}: {name} is {scalar!r}, not a number")
        place[saved[name][2]] = scalar
    for name, tensor in tensors.items():
        device = expected[name].device if name in expected else trainer.device
        places[saved[name][0]][saved[name][2]] = tensor.to(device)
