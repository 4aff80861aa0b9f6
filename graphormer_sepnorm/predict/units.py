"""Predictions of logarithms in words, in the unit of the measurements."""

import re

import numpy as np

from graphormer_sepnorm.config import Scale
from graphormer_sepnorm.runs.numbers import significant
from graphormer_sepnorm.tasks.scales import falls, measured, unit_of

UNKNOWN = "in the unit of the table"  # in place of a unit that is not known


def measured_unit(scale: Scale, description: str) -> str:
    """The unit behind a logarithm, from a card's description: "" for a ratio, ``UNKNOWN`` without a description."""
    if falls(scale):
        return unit_of(scale)
    before, _, unit = description.rpartition(", ")
    return unit if before else "" if description else UNKNOWN


def shown_unit(scale: Scale, description: str) -> str:
    """As ``measured_unit``, for people: of a percentage, it says whether it is the bound or the unbound fraction."""
    unit, fraction = measured_unit(scale, description), re.search(r"\b(un)?bound\b", description)
    return f"% {fraction.group()}" if unit == "%" and fraction else unit


def measured_words(value: float, scale: Scale, unit: str, low: float | None = None, high: float | None = None) -> str:
    """A prediction of a logarithm as the value itself, with its interval: "= 9.01 mL/min/kg (2.10 to 38.6)"."""

    def back(number: float) -> float:
        return float(measured(np.array([[number]]), [scale])[0, 0])

    words = f"= {significant(back(value))} {unit}".rstrip()
    if low is None or high is None:
        return words
    first, last = sorted((back(low), back(high)))
    return f"{words} ({significant(first)} to {significant(last)})"
