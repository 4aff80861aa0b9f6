"""Objectives: what the loop trains a network for. A new one for pre-training is a file and a line in ``OBJECTIVES``."""

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.training.objectives.base import Pretraining
from graphormer_sepnorm.training.objectives.descriptors import Descriptors

OBJECTIVES: dict[str, Pretraining] = {"descriptors": Descriptors()}


def find_objective(name: str) -> Pretraining:
    """The entry of ``OBJECTIVES``; raises InputError if there is none of that name."""
    if name not in OBJECTIVES:
        raise InputError(f"unknown objective {name!r}, choose one of {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name]
