"""Parameters and options without an effect on a model of only the kernel machine, which ``quick`` fits."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.options import declared
from graphormer_sepnorm.recipes import find_recipe
from graphormer_sepnorm.table_model.reference import BODY

# By field or parameter. The number of networks is that of the folds, and the metric that of later scores.
UNUSED = {each.field for each in declared(TrainConfig, without=("seed",))} | {
    *("forest", "blend", "loss", "weights", "frozen_layers", "dropout", "attention_dropout", "precision")
}


def unused_parameters(parameters: dict[str, Any], defaults: dict[str, Any]) -> list[str]:
    """The parameters of an estimator that differ from their defaults and have no effect."""
    names = [name for name in parameters if name in UNUSED and not np.array_equal(parameters[name], defaults[name])]
    if is_unused(parameters["recipe"], parameters["pretrained"]):
        names.append("recipe")
    return names + [f"settings {name}" for name in unused_settings(parameters["settings"] or {})]


def unused_settings(settings: Iterable[str]) -> list[str]:
    """The names of config fields that only networks use, such as ``model.layers``."""
    return [name for name in settings if name.startswith("model.") or name.removeprefix("train.") in UNUSED]


def is_unused(recipe: str, start: object) -> bool:
    """Whether the kernel is that of the default recipe: it embeds with the network of ``start`` or a recipe's."""
    return recipe != BODY and (start is not None or find_recipe(recipe).train.start_from in (None, BODY))


def quick_remark(quick: str, names: list[str]) -> str:
    """A sentence on parameters or options, at least one, that have no effect because of ``quick``."""
    *others, last = names
    listed = f"{', '.join(others)} and {last} have" if others else f"{last} has"
    return f"{quick} fits only the kernel machine: {listed} no effect"
