"""Parsing of label texts: numbers and bounds with a unit such as "~12 +- 3 nM", classes and missing labels."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tasks.scales import DECADES, in_ascii

MISSING = ("", "na", "nan", "n/a", "null", "none", "#n/a", "<na>")  # the last two are Excel's and pandas'
PAIRS = (
    "0 1", "false true", "no yes", "inactive active", "negative positive", "low high", "insoluble soluble",
    "nontoxic toxic", "non-toxic toxic", "impermeable permeable", "unstable stable", "non-inhibitor inhibitor",
    "non-substrate substrate", "non-binder binder",
)  # fmt: skip
CLASSES = {word: float(place) for pair in PAIRS for place, word in enumerate(pair.split())}  # the second is positive
BOUND = re.compile(r"(<=|>=|<|>|≤|≥)\s*(.*)", re.DOTALL)
LONGEST = 100  # characters of a number; a longer text is none, and no pattern is tried on it
WITH_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
WITH_POINT = re.compile(r"[+-]?\d*\.\d+(e[+-]?\d+)?", re.IGNORECASE)
JOINTS = "'\u2019\xa0\u2009\u202f"  # between thousands: apostrophes, and spaces where no line ends
IN_THOUSANDS = {marks: re.compile(rf"[+-]?[1-9]\d{{0,2}}([{marks}]\d{{3}})+") for marks in (",", ".", JOINTS)}
UNITS = ("%", *sorted(DECADES, key=len, reverse=True))
ABOUT = ("~", "\u2248", "ca.", "ca ")  # in front of a number
PLUS_MINUS = ("\u00b1", "+/-", "+-")  # between a number and its uncertainty
Role = Literal["decimal", "thousands", "unknown"]


@dataclass(frozen=True)
class Notation:
    """The roles of separators in a column: "1,234" and "1.234" are refused where theirs is unknown; others show it."""

    comma: Role = "unknown"
    point: Role = "decimal"


UNDECIDED = Notation()


def is_missing(text: str) -> bool:
    return text.strip().lower() in MISSING


def same_label(text: str) -> str:
    """One normal form for all spellings of a label: lower case, and whole numbers without a decimal point."""
    text = text.strip().casefold()
    whole, _, rest = text.partition(".")
    return whole if whole.lstrip("+-").isdigit() and not rest.strip("0") else text


def refuse_other_bytes(text: str, name: str) -> None:
    if any("\udc80" <= character <= "\udcff" for character in text):
        raise InputError(f"{name} has bytes that are not UTF-8: save the table as UTF-8")


def is_class(text: str) -> bool:
    return same_label(text) in CLASSES


def read_class(text: str, target: str) -> float:
    if is_missing(text):
        return math.nan
    if not is_class(text):
        raise InputError(f"{target} is {text.strip().lower()!r}, not 0 or 1, yes or no, or another known pair")
    return CLASSES[same_label(text)]


def read_number(text: str, target: str, notation: Notation = UNDECIDED) -> float:
    """A number, NaN if missing; raises InputError for other texts, infinity, and an ambiguous separator."""
    if is_missing(text):
        return math.nan
    refuse_undecided(text, target, notation)
    try:
        value = as_float(in_python(text, notation))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{target} is {shortened(text)!r}, not a number")
    return value


def shortened(text: str) -> str:
    text = text.strip()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def in_python(text: str, notation: Notation) -> str:
    """A number without separators of thousands and with a decimal point, if it is written in this notation."""
    number = without_joints(text).lower().replace("\N{MINUS SIGN}", "-")
    form = form_of(number)
    if form in ("1,234", "1,234.5") and notation.comma != "decimal" and (notation.comma, form) != ("unknown", "1,234"):
        return number.replace(",", "")
    if form == "1.234,5" and (notation.comma == "decimal" or notation.point != "decimal"):
        return number.replace(".", "").replace(",", ".")
    if form == "1.234" and notation.point == "thousands":
        return number.replace(".", "")
    return number.replace(",", ".") if form in ("1,5", "1,234") and notation.comma != "thousands" else number


def without_joints(text: str) -> str:
    """A number without the ``JOINTS`` between its thousands; other texts as they are."""
    whole, mark, rest = (text := text.strip()).partition("," if "," in text else ".")
    if len(text) > LONGEST or not IN_THOUSANDS[JOINTS].fullmatch(whole):
        return text
    return whole.translate(dict.fromkeys(map(ord, JOINTS))) + mark + rest


def form_of(text: str) -> str:
    """An example of the form of a number with a comma or point: "1,5", "1.5", "1,234", "1.234", "1,234.5"; or ""."""
    number = without_joints(without_sign(text))
    if len(number) > LONGEST:
        return ""
    for mark, point, single, several in ((",", ".", "1,234", "1,234.5"), (".", ",", "1.234", "1.234,5")):
        whole, found, rest = number.partition(point)
        if IN_THOUSANDS[mark].fullmatch(whole) and (not found or rest.isdecimal()):
            return several if found or whole.count(mark) > 1 else single
    if WITH_COMMA.fullmatch(number):
        return "1,5"
    return "1.5" if WITH_POINT.fullmatch(number) else ""


def notation_of(column: set[str], table: set[str], semicolons: bool) -> Notation:
    commas, points = bool(column & {"1,5", "1.234,5"}), bool(column & {"1.5", "1,234.5"})
    thousands_by_comma = "1,234.5" in column or ("1.5" in column and not semicolons)
    by_text: Role = "decimal" if commas and not points else "unknown"
    comma: Role = "thousands" if thousands_by_comma and not commas else by_text
    point: Role = "thousands" if "1.234,5" in column and not points else "decimal"
    if not semicolons or {comma, point} & {"thousands"}:
        return Notation("decimal" if point == "thousands" and comma == "unknown" else comma, point)
    if not (commas or points):
        commas, points = "1,5" in table, "1.5" in table
        if (commas and points) or (not commas and not points and {"1.234", "1,234"} <= table):
            return Notation("unknown", "unknown")
    return Notation("decimal" if commas or not points else "unknown", "unknown" if commas and not points else "decimal")


def without_sign(text: str) -> str:
    found = BOUND.fullmatch(text.strip())
    return (found[2] if found else text).strip()


def is_undecided(text: str, notation: Notation) -> bool:
    """Whether it is a number such as "1,234" or "1.234" whose separator is unknown."""
    return {"1,234": notation.comma, "1.234": notation.point}.get(form_of(text)) == "unknown"


def refuse_undecided(text: str, name: str, notation: Notation) -> None:
    if is_undecided(text, notation):
        number = without_sign(text)
        whole, other = number.replace(",", "").replace(".", ""), number.replace(",", ".")
        among = "" if "," in number else ", and other numbers have commas"
        raise InputError(f"{name} is {number!r}{among}: write {whole} or {other}{'0' * ('.' in number)}")


def as_float(text: str) -> float:
    """The number in a text; raises ValueError for any other text, including 1_5, which Python reads as 15."""
    if "_" in text or len(text) > LONGEST:
        raise ValueError(f"{shortened(text)!r} has an underscore or is long")
    return float(text)


def is_number(text: str) -> bool:
    try:
        return math.isfinite(as_float(text))
    except ValueError:
        return False


def read_bound(text: str, target: str, notation: Notation = UNDECIDED) -> str:
    """A censored label such as "<5", "> 10" or "≥10" as "<5.0" or ">10.0"; "" for any other label."""
    found = None if is_missing(text) else BOUND.fullmatch(text.strip())
    if found is None:
        return ""
    number = read_number(found[2], target, notation)
    if math.isnan(number):
        raise InputError(f"{target} is {text.strip()!r}, a bound without a number")
    return f"{'<' if found[1] in ('<', '<=', '≤') else '>'}{number!r}"


def bounds_of(text: str) -> tuple[float, float]:
    """Bounds of a censored label, as ``read_bound`` returns it; infinite where unbounded."""
    number = float(text[1:]) if text else math.inf
    return (number, math.inf) if text[:1] == ">" else (-math.inf, number)


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
