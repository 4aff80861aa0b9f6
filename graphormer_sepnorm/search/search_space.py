"""The search space: fields of a config and their ranges."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from graphormer_sepnorm.config import Config, TrainConfig
from graphormer_sepnorm.training.settings import with_settings

if TYPE_CHECKING:
    from optuna.trial import Trial

Value = bool | int | float | str


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, inclusive; integers if ``low`` is one.

    Attributes:
        log: whether to sample the logarithm.
    """

    low: int | float
    high: int | float
    log: bool = False


@dataclass(frozen=True)
class SearchSpace:
    """Range or choices of each field of a config.

    The names are those of ``TrainConfig`` and ``ModelConfig``. The width is a multiple of the heads, and the width of
    the FFN stays proportional to it.
    """

    lr: Range = Range(2e-4, 5e-3, log=True)
    batch_size: Range = Range(16, 128, log=True)
    warmup: Range = Range(0.0, 0.3)
    weight_decay: Range = Range(0.0, 0.3)
    optimizer: tuple[Value, ...] = ("adamw", "muon")
    layers: Range = Range(3, 12)
    width: Range = Range(48, 128)
    norm: tuple[Value, ...] = ("sepnorm", "sepnorm-layernorm", "sepnorm-layernorm-batchnorm", "sharenorm")
    messages: tuple[Value, ...] = (False, True)
    dropout: Range = Range(0.0, 0.4)
    attention_dropout: Range = Range(0.0, 0.5)
    embedding_std: Range = Range(0.02, 0.3, log=True)


# The part of the config that contains each field.
PARTS = {
    field.name: "train" if field.name in TrainConfig.__dataclass_fields__ else "model" for field in fields(SearchSpace)
}


def fixed_by(settings: Sequence[str]) -> frozenset[str]:
    """The names of the fields of ``SearchSpace`` that ``settings``, as for ``with_settings``, set."""
    paths = {setting.partition("=")[0] for setting in settings}
    names = {f"{part}.{name}": name for name, part in PARTS.items()}
    return frozenset(name for path, name in names.items() if {path, path.partition(".")[0]} & paths)


def searched(space: SearchSpace, config: Config, fixed: frozenset[str]) -> dict[str, Range | tuple[Value, ...]]:
    """The fields to search, by name, each with its range extended to include the value of the config."""
    own = values_of(config)
    places = {field.name: getattr(space, field.name) for field in fields(space) if field.name not in fixed}
    if "messages" in places and (config.model.attention_layers is not None or config.model.message_gates):
        places["messages"] = (True,)  # blocks without attention and gates need them
    if "warmup" in places and config.train.schedule == "trapezoid":
        longest = min(space.warmup.high, 1 - config.train.cooldown)
        places["warmup"] = replace(space.warmup, low=min(space.warmup.low, longest), high=longest)
    for name, place in places.items():
        value = own[name]
        if isinstance(place, tuple):
            places[name] = place if value in place else (*place, value)
        else:
            assert not isinstance(value, str)
            places[name] = replace(place, low=min(place.low, value), high=max(place.high, value))
    return places


def values_of(config: Config) -> dict[str, Value]:
    """The values of a config for the fields of ``SearchSpace``."""
    return {name: getattr(getattr(config, part), name) for name, part in PARTS.items()}


def with_values(config: Config, values: Mapping[str, Value]) -> Config:
    """The config with other values for fields of ``SearchSpace``; the FFN stays proportional to the width."""
    changed: dict[str, Value] = {f"{PARTS[name]}.{name}": value for name, value in values.items()}
    if "width" in values:
        ffn_width = round(config.model.ffn_width * int(values["width"]) / config.model.width)
        changed["model.ffn_width"] = max(1, ffn_width)
    return with_settings(config, [f"{path}={json.dumps(value)}" for path, value in changed.items()])


def suggested(trial: "Trial", places: Mapping[str, Range | tuple[Value, ...]], heads: int) -> dict[str, Value]:
    """The values that an Optuna trial samples, by field name; widths are multiples of ``heads``."""
    values: dict[str, Value] = {}
    for name, place in places.items():
        if isinstance(place, tuple):
            choice = trial.suggest_categorical(name, place)
            assert choice is not None
            values[name] = choice
        elif isinstance(place.low, int):
            step = heads if name == "width" else 1
            low, high = -(-place.low // step) * step, int(place.high) // step * step
            values[name] = trial.suggest_int(name, low, high, log=place.log, step=step)
        else:
            values[name] = trial.suggest_float(name, place.low, place.high, log=place.log)
    return values
