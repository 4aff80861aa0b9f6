"""Settings of a run by field name: any field of a config can be set, and is validated by the config."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Literal

from pydantic import ValidationError

from graphormer_sepnorm.config import ADAPTER, Config, TrainConfig, first_problem
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.checkpoint import check_names

ELSEWHERE = {"dataset", "format_version"}  # the dataset has its own option, the format belongs to the package


def with_given(config: TrainConfig, options: Mapping[str, Any]) -> TrainConfig:
    """The optimization with the options that are not None; given epochs are exact, without a minimum of updates."""
    chosen = {name: value for name, value in options.items() if value is not None}
    return replace(config, **({"min_updates": 0} if "epochs" in chosen else {}) | chosen)


def in_precision(train: TrainConfig, precision: Literal["auto", "float32", "bfloat16"]) -> TrainConfig:
    named = {"auto": train.precision, "float32": "32-true", "bfloat16": "bf16-mixed"}
    return replace(train, precision=named[precision])


def with_settings(config: Config, settings: Sequence[str], option: str = "--set") -> Config:
    """A config with fields replaced, as in ``model.encodings.2.max_hops=4``; the value is JSON or text."""
    if not settings:
        return config
    fields = ADAPTER.dump_python(config, mode="json", exclude=ELSEWHERE)
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting} has no value: write --set FIELD=VALUE, such as --set train.warmup=0.05")
        names = list(field_names(fields))
        if name not in names:
            near = get_close_matches(name, names, n=1, cutoff=0)
            raise InputError(f"{option} {name}: there is no such field, the nearest is {near[0]}")
        *outer, last = (int(part) if part.isdigit() else part for part in name.split("."))
        place: Any = fields
        for part in outer:
            place = place[part]
        try:
            place[last] = json.loads(text)
        except (ValueError, RecursionError):
            place[last] = text
    try:
        changed = ADAPTER.validate_json(json.dumps({**fields, "dataset": config.dataset}))
    except ValidationError as error:
        raise InputError(f"{option}: {first_problem(error)}") from None
    check_names(changed, option)
    return changed


def refuse_patience(train: TrainConfig, recipe: TrainConfig) -> None:
    """Raises InputError if the training of a table has another ``patience`` than its recipe: it has no effect."""
    if train.patience != recipe.patience:
        raise InputError("patience is only for benchmark datasets: networks on a table train to their last epoch")


def field_names(fields: object, prefix: str = "") -> Iterator[str]:
    held = fields.items() if isinstance(fields, dict) else enumerate(fields) if isinstance(fields, list) else ()
    for key, value in held:
        yield f"{prefix}{key}"
        yield from field_names(value, f"{prefix}{key}.")


def differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The fields that differ, as in "train.epochs: 4, now 5"."""
    for name in before:
        if isinstance(before[name], Mapping) and isinstance(now[name], Mapping):
            yield from differences(before[name], now[name], f"{prefix}{name}.")
        elif before[name] != now[name]:
            yield f"{prefix}{name}: {before[name]}, now {now[name]}"
