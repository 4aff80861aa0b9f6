"""Scales that numbers are learnt on: as measured, by their logarithm, or as -log10 of a concentration in M."""

import math
import re
from collections.abc import Sequence

import numpy as np

from graphormer_sepnorm.config import Scale
from graphormer_sepnorm.errors import InputError

DECADES = {"M": 0, "mM": 3, "uM": 6, "nM": 9, "pM": 12}  # of a concentration in this unit below one in M
MOLAR = "-log10 "
NO_LOGARITHM = "which has no logarithm"  # ends the reason why a row is skipped
# At the end of a column's name, such as IC50_nM, IC50 (nM) or IC50nM, but not HLM.
WITH_UNIT = re.compile(rf"(?:(?<![ _])[ _]++[\[(]?|[\[(]|(?<=\d))({'|'.join(DECADES)})[\])]?$")
# In the name of a column, but not pIC50.
POTENCY = re.compile(r"(?<![A-Za-z])([AEI]C50|CC50|DC50|GI50|K[di])(?![A-Za-z0-9])")
MASS = re.compile(r"(?<![a-z])[kmunp]?g/(k?g|[mud]?l|ha)(?![a-z])", re.IGNORECASE)  # in the name of a column
WIDE, WIDE_CONCENTRATIONS = 1e3, 10  # factors between labels above which a logarithm is better to learn
SKEWED_SPAN, SKEW = 100, 1.5  # or above this one, if the mean is so many times the median


def better_scale(column: str, labels: np.ndarray, unit: str = "") -> Scale:
    """A logarithm, if labels [M] are better learned on it as none is negative and they span decades; else ""."""
    unit = named_unit(column) or (unit if unit in DECADES else "")
    factor = WIDE_CONCENTRATIONS if unit or POTENCY.search(column) else WIDE
    positive = labels[labels > 0]
    if (labels < 0).any() or not len(positive):
        return ""
    span = positive.max() / positive.min()
    if span <= factor and (span <= SKEWED_SPAN or positive.mean() <= SKEW * np.median(positive)):
        return ""
    return molar_scale(unit) if unit else "log10"


def molar_scale(unit: str) -> Scale:
    plain = in_ascii(unit.strip())
    if plain not in DECADES:
        raise InputError(f"{unit!r} is no unit of a concentration: give one of {', '.join(DECADES)}")
    return f"{MOLAR}{plain}"  # type: ignore[return-value]  # one of the texts of Scale


def mass_unit(column: str) -> str:
    """The unit in a column's name that is a mass per mass, volume or area, such as mg/L; "" without one."""
    found = MASS.search(in_ascii(column))
    return found[0] if found else ""


def in_ascii(text: str) -> str:
    return text.replace("\N{MICRO SIGN}", "u").replace("\N{GREEK SMALL LETTER MU}", "u")


def named_unit(column: str) -> str:
    """The unit of a concentration that the name of a column ends with, such as that of "IC50 [uM]"; "" without one."""
    return match[1] if (match := WITH_UNIT.search(in_ascii(column.strip()))) else ""


def unit_of(scale: Scale) -> str:
    return scale.removeprefix(MOLAR)


def modelled(value: float, scale: Scale, name: str) -> float:
    if not scale:
        return value
    if not value > 0:
        raise InputError(f"{name} is {value:g}, {NO_LOGARITHM}")
    return DECADES[unit_of(scale)] - math.log10(value) if falls(scale) else math.log10(value)


def measured(values: np.ndarray, scales: Sequence[Scale]) -> np.ndarray:
    """Predictions [M, T] as they would be measured, float64; ``scales`` has T, or none where all are as measured."""
    numbers = np.array(values, np.float64)
    for target, scale in enumerate(scales):
        if scale == "log10":
            numbers[:, target] = 10 ** numbers[:, target]
        elif scale:
            numbers[:, target] = 10 ** (DECADES[unit_of(scale)] - numbers[:, target])
    return numbers


def falls(scale: Scale) -> bool:
    """Whether larger measured numbers are smaller on the scale."""
    return scale.startswith(MOLAR)


def measured_name(target: str, scale: Scale) -> str:
    return f"{target}_in_{unit_of(scale)}" if falls(scale) else f"{target}_unlogged"


def modelled_name(column: str, scale: Scale) -> str:
    """The name of a column on the scale that it is learnt on: IC50_nM is pIC50, Solubility is log10(Solubility)."""
    if not scale:
        return column
    if not falls(scale):
        return f"log10({column})"
    plain = in_ascii(column.strip())
    if named_unit(column) == unit_of(scale):
        plain = WITH_UNIT.sub("", plain)
    return f"p{plain}" if re.fullmatch(r"[A-Z][A-Za-z]?[A-Za-z]?[0-9]*", plain) else f"-log10({plain or column})"


def limited(values: np.ndarray, limits: Sequence[tuple[float | None, float | None]]) -> np.ndarray:
    """Values [M, T] within the ``limits`` of a ``TaskConfig``, rounded to float32 as predictions are; NaN stays NaN."""
    if not limits:
        return values
    low = np.array([-np.inf if low is None else low for low, _ in limits], np.float32)
    high = np.array([np.inf if high is None else high for _, high in limits], np.float32)
    return np.clip(values, low, high)
