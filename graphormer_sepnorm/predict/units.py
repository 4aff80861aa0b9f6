"""Predictions of logarithms in words, in the unit of the measurements."""

import numpy as np

from graphormer_sepnorm.config import Scale
from graphormer_sepnorm.runs.numbers import significant
from graphormer_sepnorm.tasks.scales import falls, measured, unit_of

UNKNOWN = "in the unit of the table"  # in place of a unit that is not known


def measured_unit(scale: Scale, description: str) -> str:
    """The unit of the values behind a logarithm.

    Args:
        scale: the scale of the target.
        description: what a card says of the target, with the unit after the last comma; empty: nothing.

    Returns:
        the unit; empty for a number without a unit, such as a ratio; ``UNKNOWN`` without scale and description.
    """
    if falls(scale):
        return unit_of(scale)
    before, _, unit = description.rpartition(", ")
    return unit if before else "" if description else UNKNOWN


def measured_words(value: float, scale: Scale, unit: str, low: float | None = None, high: float | None = None) -> str:
    """A prediction of a logarithm as the value itself: "= 9.01 mL/min/kg (2.10 to 38.6)".

    Args:
        value: on its scale.
        scale: of the target.
        unit: as ``measured_unit``.
        low, high: the ends of its interval on the same scale; None: no interval.
    """

    def back(number: float) -> float:
        return float(measured(np.array([[number]]), [scale])[0, 0])

    words = f"= {significant(back(value))} {unit}".rstrip()
    if low is None or high is None:
        return words
    first, last = sorted((back(low), back(high)))
    return f"{words} ({significant(first)} to {significant(last)})"
