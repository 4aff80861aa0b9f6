"""Measurements with a unit, an uncertainty or a sign of approximation, such as "~12 +- 3 nM"."""

from collections import Counter
from collections.abc import Iterable

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.label_text import BOUND, LONGEST, as_float, is_missing, is_number
from graphormer_sepnorm.tasks.scales import DECADES, in_ascii

UNITS = ("%", *sorted(DECADES, key=len, reverse=True))
ABOUT = ("~", "\u2248", "ca.", "ca ")  # in front of a number
PLUS_MINUS = ("\u00b1", "+/-", "+-")  # between a number and its uncertainty


def parts_of(text: str) -> tuple[str, str]:
    """The number or bound of a measurement and its unit, of "~12 +- 3 nM" 12 and nM; else the text and ""."""
    text = text.strip()
    if len(text) > LONGEST or is_number(text):
        return text, ""
    bound = BOUND.fullmatch(text)
    sign, number = (bound[1], bound[2]) if bound else ("", text)
    for about in ABOUT:
        number = number.removeprefix(about).lstrip()
    number, unit = without_unit(number)
    for plus_minus in PLUS_MINUS:
        value, found, uncertainty = number.partition(plus_minus)
        if found and is_number(uncertainty.strip().replace(",", ".")):
            number, own = without_unit(value.strip())
            unit = own or unit
    return f"{sign}{number}", unit


def without_unit(text: str) -> tuple[str, str]:
    plain = in_ascii(text).replace("mol/l", "M").replace("mol/L", "M").strip()
    unit = next((unit for unit in UNITS if plain.endswith(unit)), "")
    number = plain.removesuffix(unit).rstrip()
    return (number, unit) if unit and number[-1:].isdecimal() else (text, "")


def unit_of_column(texts: Iterable[str]) -> str:
    counts = Counter(parts_of(text)[1] for text in texts if not is_missing(text))
    return max(counts, key=counts.__getitem__, default="")


def converted(value: float, unit: str, into: str) -> float:
    decades = DECADES[into] - DECADES[unit]
    return value * 10**decades if decades >= 0 else value / 10**-decades


def read_threshold(text: str) -> tuple[float, str]:
    """A threshold such as "100 nM" or "6.5", and its unit; raises InputError for any other text."""
    number, unit = parts_of(text)
    try:
        return as_float(number), unit
    except ValueError:
        raise InputError(f"the threshold is {text!r}: give a number, such as 6.5 or '100 nM'") from None
