"""Saves and restores the state of a trainer, to continue from the last saved epoch."""

import copy
import shlex
from collections import defaultdict
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Annotated, cast

import torch
from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass
from torch import Tensor, nn
from torch.optim import Optimizer

from graphormer_sepnorm.config import STRICT, Config, first_problem
from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.training.optimizers import make_optimizers
from graphormer_sepnorm.training.settings import differences
from graphormer_sepnorm.training.trainer import Trainer, TrainingProgress

Scalar = bool | int | float | str | None
Place = MutableMapping[str, object]


@dataclass(config=STRICT)
class StateFacts:
    """The part of a state that is not tensors: the progress, and numbers and strings of optimizers."""

    epoch: Annotated[int, Field(ge=0)] = 0
    best_metric: float | None = None
    best_epoch: Annotated[int, Field(ge=0)] = 0
    optimizer: dict[str, Scalar] = field(default_factory=dict)


def state_of(trainer: Trainer) -> tuple[dict[str, Tensor], dict]:
    """All tensors, without copying them, and facts that ``resume`` needs."""
    tensors, scalars = kept(trainer.optimizers, trainer.model)
    tensors = weights(trainer) | {f"optimizer.{name}": tensor for name, tensor in tensors.items()}
    return tensors, asdict(trainer.progress) | {"optimizer": scalars}


def resume(trainer: Trainer, run: RunFolder) -> None:
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
    parts: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    trainer.freeze(facts.epoch)
    restore_optimizers(trainer, parts.pop("optimizer", {}), facts.optimizer, run.state)
    others = {f"{part}.{name}": tensor for part, named in parts.items() for name, tensor in named.items()}
    checkpoint.check_tensors(others, weights(trainer), run.state)
    trainer.model.load_state_dict(parts["model"])
    if trainer.average is not None:
        trainer.average.load_state_dict(parts["average"])
    trainer.progress = TrainingProgress(facts.epoch, facts.best_metric, facts.best_epoch)


def refuse_other(before: Config, now: Config, path: Path) -> None:
    """Raises InputError, with the fields that differ, if ``path`` was written with another config than ``now``."""
    if before != now:
        fields = "; ".join(differences(asdict(before), asdict(now)))
        other = "use a new --out"
        if before.dataset in DATASETS:
            other = f"start another run from these weights with --from {shlex.quote(str(path.parent))} --out OTHER"
        raise InputError(
            f"{path} was written by another configuration ({fields}): resume with the same options, or {other}"
        )


def weights(trainer: Trainer) -> dict[str, Tensor]:
    """The weights of a trainer and their averages, by their names in a state."""
    tensors = {f"model.{name}": value for name, value in trainer.model.state_dict().items()}
    if trainer.average is not None:
        tensors |= {f"average.{name}": value for name, value in trainer.average.state_dict().items()}
    return tensors


def states(optimizers: Sequence[Optimizer], model: nn.Module) -> Iterator[tuple[str, Place]]:
    """The state that optimizers keep for each parameter that is not frozen, by the name of the parameter."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad:
                    yield names[id(parameter)], optimizer.state[parameter]


def groups(optimizers: Sequence[Optimizer]) -> Iterator[tuple[str, Place]]:
    """The options of parameter groups, where some optimizers keep counters, as ``<optimizer>.group.<group>``."""
    for number, optimizer in enumerate(optimizers):
        for index, group in enumerate(optimizer.param_groups):
            yield f"{number}.group.{index}", group


def kept(optimizers: Sequence[Optimizer], model: nn.Module) -> tuple[dict[str, Tensor], dict[str, Scalar]]:
    """The state of optimizers: tensors, numbers and strings of parameters; tensors and numbers of groups."""
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, Scalar] = {}
    for place, state in states(optimizers, model):
        for key, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"{place}.{key}"] = value
            elif isinstance(value, Scalar):
                scalars[f"{place}.{key}"] = value
            else:
                raise TypeError(f"the optimizer keeps {key!r} of {place}, a {type(value).__name__}, which is not saved")
    for place, options in groups(optimizers):
        for key, value in options.items():
            if key == "lr":
                scalars[f"{place}.{key}"] = float(cast(float, value))
            elif isinstance(value, Tensor):
                tensors[f"{place}.{key}"] = value
            elif isinstance(value, int | float) and not isinstance(value, bool):
                scalars[f"{place}.{key}"] = value
    return tensors, scalars


def kept_after_one_update(trainer: Trainer) -> tuple[dict[str, Tensor], dict[str, Scalar]]:
    """The state of new optimizers after one update of a copy of the model with zero gradients."""
    model = copy.deepcopy(trainer.model)
    optimizers = make_optimizers(model, trainer.config.train)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    for optimizer in optimizers:
        optimizer.step()
    return kept(optimizers, model)


def restore_optimizers(trainer: Trainer, tensors: dict[str, Tensor], scalars: dict[str, Scalar], path: Path) -> None:
    """Restores the state of optimizers; raises InputError if something is missing or does not fit."""
    expected, expected_scalars = kept_after_one_update(trainer)
    group_places = dict(groups(trainer.optimizers))
    places = dict(states(trainer.optimizers, trainer.model)) | group_places
    first = {name: tensor for name, tensor in tensors.items() if name in expected or place_of(name) not in places}
    checkpoint.check_tensors(first, expected, path)
    for name in expected_scalars.keys() - scalars.keys():
        if place_of(name) not in group_places:
            raise InputError(f"{path}: {name} is missing")
    for name, scalar in scalars.items():
        if place_of(name) not in places or (place_of(name) in group_places and name not in expected_scalars):
            raise InputError(f"{path}: {name} is not kept by the optimizer")
        if isinstance(expected_scalars.get(name), int | float) and not isinstance(scalar, int | float):
            raise InputError(f"{path}: {name} is {scalar!r}, not a number")
    for name, tensor in tensors.items():
        device = expected[name].device if name in expected else trainer.device
        places[place_of(name)][name.rpartition(".")[2]] = tensor.to(device)
    for name, scalar in scalars.items():
        places[place_of(name)][name.rpartition(".")[2]] = scalar


def place_of(name: str) -> str:
    return name.rpartition(".")[0]
