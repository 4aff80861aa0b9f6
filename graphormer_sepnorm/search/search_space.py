"""The search space: fields of a config and the distributions that Optuna samples."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from graphormer_sepnorm.config import Config, TrainConfig
from graphormer_sepnorm.training.settings import with_settings

# By fields of ``TrainConfig`` and ``ModelConfig``; the width is a multiple of the heads.
SPACE: dict[str, BaseDistribution] = {
    "lr": FloatDistribution(2e-4, 5e-3, log=True),
    "batch_size": IntDistribution(16, 128, log=True),
    "warmup": FloatDistribution(0.0, 0.3),
    "weight_decay": FloatDistribution(0.0, 0.3),
    "optimizer": CategoricalDistribution(("adamw", "muon")),
    "layers": IntDistribution(3, 12),
    "width": IntDistribution(48, 128),
    "norm": CategoricalDistribution(("sepnorm", "sepnorm-layernorm", "sepnorm-layernorm-batchnorm", "sharenorm")),
    "messages": CategoricalDistribution((False, True)),
    "dropout": FloatDistribution(0.0, 0.4),
    "attention_dropout": FloatDistribution(0.0, 0.5),
    "embedding_std": FloatDistribution(0.02, 0.3, log=True),
}
TRAINING = {field.name for field in fields(TrainConfig)}
PARTS = {name: "train" if name in TRAINING else "model" for name in SPACE}  # of a config


def fixed_by(settings: Sequence[str]) -> frozenset[str]:
    """The names in ``SPACE`` that ``settings``, as for ``with_settings``, set."""
    paths = {setting.partition("=")[0] for setting in settings}
    return frozenset(name for name, part in PARTS.items() if {f"{part}.{name}", part} & paths)


def searched(config: Config, fixed: frozenset[str]) -> dict[str, BaseDistribution]:
    """The fields to search, each with its range extended to include the value of the config."""
    places = {name: place for name, place in SPACE.items() if name not in fixed}
    if "messages" in places and (config.model.attention_layers is not None or config.model.message_gates):
        places["messages"] = CategoricalDistribution((True,))  # blocks without attention and gates need them
    if isinstance(warmup := places.get("warmup"), FloatDistribution) and config.train.schedule == "trapezoid":
        places["warmup"] = FloatDistribution(0.0, min(warmup.high, 1 - config.train.cooldown))
    return {name: including(place, name, config) for name, place in places.items()}


def including(place: Any, name: str, config: Config) -> BaseDistribution:
    value: Any = values_of(config)[name]
    if isinstance(place, CategoricalDistribution):
        return place if value in place.choices else CategoricalDistribution((*place.choices, value))
    low, high = min(place.low, value), max(place.high, value)
    if isinstance(place, FloatDistribution):
        return FloatDistribution(low, high, log=place.log)
    step = config.model.heads if name == "width" else 1
    return IntDistribution(-(-low // step) * step, high // step * step, log=place.log, step=step)


def values_of(config: Config) -> dict[str, Any]:
    return {name: getattr(getattr(config, part), name) for name, part in PARTS.items()}


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """The config with other values for fields of ``SPACE``; the FFN stays proportional to the width."""
    changed = {f"{PARTS[name]}.{name}": value for name, value in values.items()}
    if "width" in values:
        changed["model.ffn_width"] = max(1, round(config.model.ffn_width * values["width"] / config.model.width))
    return with_settings(config, [f"{path}={json.dumps(value)}" for path, value in changed.items()])
