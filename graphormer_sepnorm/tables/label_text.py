"""Parsing of texts: labels such as "~12 +- 3 nM", "<5", classes and missing ones, and times, as numbers or dates."""

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import filterfalse
from typing import Literal

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tasks.scales import DECADES, in_ascii

MISSING = (
    "", "na", "nan", "n/a", "null", "none", "-", "?", "nd", "n.d.", "n.b.", "k.a.", "nv", "#n/a", "<na>", "#value!",
    "#ref!", "#nv", "#wert!", "#bezug!",
)  # fmt: skip
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
ABOUT = re.compile(r"^((~|\u2248|ca\.|ca )\s*)+")  # in front of a number
PLUS_MINUS = ("\u00b1", "+/-", "+-")  # between a number and its uncertainty
Role = Literal["decimal", "thousands", "unknown"]
YEAR_FIRST = re.compile(r"\s*\d{4}[./-](\d{1,2})[./-]\d{1,2}(?!\d).*", re.DOTALL)
IN_DIGITS = re.compile(r"\s*(\d{1,2})[./-](\d{1,2})[./-]\d{4}\b.*", re.DOTALL)
WHOLE_YEAR = re.compile(r"(19|20)\d\d")
# Numbers such as 12.2023 and 2023.12.
MONTH_OF_YEAR = re.compile(r"(0?[1-9]|1[0-2])\.(19|20)\d\d|(19|20)\d\d\.(0?[1-9]|1[0-2])")
YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
MOST_PERIODS = 24  # of a column of times
GROUPS = 8  # that more numbers are divided into
DEFAULTS = datetime(2000, 1, 1), datetime(2001, 2, 1)  # what a date without a year or a month is recognised by


class NumberCell(str):
    """The text of a cell of numbers in a workbook: its point is one of decimals, and tells nothing of other cells."""


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


def read_class(text: str, target: str) -> float:
    if is_missing(text):
        return math.nan
    if (label := same_label(text)) not in CLASSES:
        raise InputError(f"{target} is {text.strip().lower()!r}, not 0 or 1, yes or no, or another known pair")
    return CLASSES[label]


def read_number(text: str, target: str, notation: Notation = UNDECIDED, written: str = "") -> float:
    """A number, NaN if missing; raises InputError for other texts, infinity, and an ambiguous separator."""
    if is_missing(text):
        return math.nan
    refuse_undecided(text, target, notation)
    if not is_number(number := in_python(text, notation)):
        raise InputError(f"{target} is {shortened(written or text)!r}, not a number")
    return as_float(number)


def shortened(text: str) -> str:
    text = text.strip()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def in_python(text: str, notation: Notation) -> str:
    """A number without separators of thousands and with a decimal point, if it is written in this notation."""
    if isinstance(text, NumberCell):
        return text
    number = without_joints(text).lower().replace("\N{MINUS SIGN}", "-")
    comma, point, form = notation.comma, notation.point, form_of(number)
    if (form == "1,234.5" and comma != "decimal") or (form == "1,234" and comma == "thousands"):
        return number.replace(",", "")
    if (form == "1.234,5" and (comma == "decimal" or point != "decimal")) or (form == "1.234" and point == "thousands"):
        return number.replace(".", "").replace(",", ".")
    return number.replace(",", ".") if form in ("1,234", "1,5") and comma != "thousands" else number


def without_joints(text: str) -> str:
    whole, mark, rest = (text := text.strip()).partition("," if "," in text else ".")
    return (re.sub(f"[{JOINTS}]", "", whole) if IN_THOUSANDS[JOINTS].fullmatch(whole) else whole) + mark + rest


def form_of(text: str) -> str:
    """An example of the form of a number with a comma or point: "1,5", "1.5", "1,234", "1.234", "1,234.5"; or "".

    That of a ``NumberCell`` is "number".
    """
    if isinstance(text, NumberCell):
        return "number"
    number = without_joints(without_sign(text))
    for mark, point, single, several in ((",", ".", "1,234", "1,234.5"), (".", ",", "1.234", "1.234,5")):
        whole, fraction_point, rest = number.partition(point)
        if IN_THOUSANDS[mark].fullmatch(whole) and (not fraction_point or rest.isdecimal()):
            return several if fraction_point or whole.count(mark) > 1 else single
    return "1,5" if WITH_COMMA.fullmatch(number) else "1.5" if WITH_POINT.fullmatch(number) else ""


def notation_of(column: set[str], table: set[str], semicolons: bool) -> Notation:
    commas, points = bool(column & {"1,5", "1.234,5"}), bool(column & {"1.5", "1,234.5"})
    if "number" in column and not commas and not points:
        return Notation("unknown", "unknown")
    by_comma: Role = "thousands" if "1,234.5" in column or ("1.5" in column and not semicolons) else "unknown"
    comma: Role = by_comma if not commas else "decimal" if not points else "unknown"
    point: Role = "thousands" if commas and not points else "decimal"
    if not semicolons or {comma, point} & {"thousands"}:
        return Notation(comma, point)
    if not (commas or points):
        commas, points = "1,5" in table, "1.5" in table
        if (commas and points) or (not commas and not points and {"1.234", "1,234"} <= table):
            return Notation("unknown", "unknown")
    return Notation("decimal" if commas or not points else "unknown", "unknown" if commas and not points else "decimal")


def without_sign(text: str) -> str:
    return (match[2] if (match := BOUND.fullmatch(text.strip())) else text).strip()


def is_undecided(text: str, notation: Notation) -> bool:
    """Whether it is a number such as "1,234" or "1.234" whose separator is unknown."""
    return {"1,234": notation.comma, "1.234": notation.point}.get(form_of(text)) == "unknown"


def refuse_undecided(text: str, name: str, notation: Notation) -> None:
    if is_undecided(text, notation):
        number = without_sign(text)
        whole, other = number.replace(",", "").replace(".", ""), number.replace(",", ".")
        raise InputError(f"{name} is {number!r}, which may be {whole} or {other}")


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
    if is_missing(text) or not (match := BOUND.fullmatch(text.strip())):
        return ""
    number = read_number(match[2], target, notation, text)
    if math.isnan(number):
        raise InputError(f"{target} is {text.strip()!r}, a bound without a number")
    return f"{'<' if match[1] in ('<', '<=', '≤') else '>'}{number!r}"


def bounds_of(text: str) -> tuple[float, float]:
    """Bounds of a censored label, as ``read_bound`` returns it; infinite where unbounded."""
    number = float(text[1:]) if text else math.inf
    return (number, math.inf) if text[:1] == ">" else (-math.inf, number)


def measurement_parts(text: str) -> tuple[str, str]:
    """The number or bound of a measurement and its unit, of "~12 +- 3 nM" 12 and nM; else the text and ""."""
    if isinstance(text, NumberCell) or len(text := text.strip()) > LONGEST or is_number(text):
        return text, ""
    bound = BOUND.fullmatch(text)
    sign, number = (bound[1], bound[2]) if bound else ("", text)
    number, unit = without_unit(ABOUT.sub("", number))
    for plus_minus in PLUS_MINUS:
        value, separator, uncertainty = number.partition(plus_minus)
        if separator and is_number(uncertainty.strip().replace(",", ".")):
            number, own = without_unit(value.strip())
            unit = own or unit
    return f"{sign}{number}", unit


def without_unit(text: str) -> tuple[str, str]:
    plain = in_ascii(text).replace("mol/l", "M").replace("mol/L", "M").strip()
    unit = next((unit for unit in UNITS if plain.endswith(unit)), "")
    number = plain.removesuffix(unit).rstrip()
    return (number, unit) if unit and number[-1:].isdecimal() else (text, "")


def unit_of_column(texts: Iterable[str]) -> str:
    counts = Counter(measurement_parts(text)[1] for text in texts if not is_missing(text))
    return max(counts, key=counts.__getitem__, default="")


def converted(value: float, unit: str, into: str) -> float:
    decades = DECADES[into] - DECADES[unit]
    return value * 10**decades if decades >= 0 else value / 10**-decades


def read_threshold(text: str) -> tuple[float, str]:
    """A threshold such as "100 nM" or "6.5", and its unit; raises InputError for any other text."""
    number, unit = measurement_parts(text)
    try:
        return as_float(number), unit
    except ValueError:
        raise InputError(f"the threshold is {text!r}: give a number, such as 6.5 or '100 nM'") from None


def read_times(texts: Iterable[str], cells: Sequence[str] = ()) -> np.ndarray:
    """Times [M]: all numbers, such as years, or all dates, where one number above 12 tells days from months.

    ``cells`` says where each of them is, for messages.
    """
    texts = [text.strip() for text in texts]
    for strange in filterfalse(is_time, texts):
        raise InputError(f"the time {strange!r} is neither a number nor a date such as 2024-05-31")
    numbers = [is_number(text) for text in texts]
    if month := month_of_year(texts):
        raise InputError(f"the time {month!r} looks like a month of a year, not like a number: write it as 2023-12")
    if all(numbers):
        return np.array([as_float(text) for text in texts], np.float64)
    if any(numbers):
        place = numbers.index(2 * sum(numbers) <= len(texts))  # the first that is not as most are
        own = "a number, and others are dates" if numbers[place] else "a date, and others are numbers"
        where = f" ({cells[place]})" if cells else ""
        raise InputError(f"the time {texts[place]!r}{where} is {own}: write all of them the same way")
    day_first = days_come_first(texts)
    return np.array([as_seconds(text, day_first) for text in texts], np.float64)


def in_order(texts: Sequence[str], column: Sequence[str] = ()) -> list[int]:
    return np.argsort(read_times([*column, *texts])[len(column) :], kind="stable").tolist()


def periods(texts: Sequence[str], column: Sequence[str] = ()) -> list[str]:
    """The month of each time, or of many its year; of many numbers one of ``GROUPS``, such as "2001 to 2007".

    ``column`` has the other times that tell days from months.
    """
    times = read_times([*column, *texts])[len(column) :]
    if texts and not is_number(texts[0].strip()):
        months = [f"{datetime.fromtimestamp(time, UTC):%Y-%m}" for time in times.tolist()]
        return months if len(set(months)) <= MOST_PERIODS else [month[:4] for month in months]
    if len(np.unique(times)) <= MOST_PERIODS:
        return [f"{time:.12g}" for time in times.tolist()]
    group = np.searchsorted(np.quantile(times, np.arange(1, GROUPS) / GROUPS), times, "left")
    parts = {own: times[group == own] for own in np.unique(group).tolist()}
    names = {own: f"{part.min():.12g} to {part.max():.12g}" for own, part in parts.items()}
    return [names[own] for own in group.tolist()]


def month_of_year(texts: list[str]) -> str:
    """The first text such as 2023.12 if all texts are months of years, or else years; "" if they can be numbers."""
    months, others = list(filter(is_month, texts)), list(filterfalse(is_month, texts))
    has_month = not others or any(len(text) == len("2023.12") for text in months)
    return months[0] if months and has_month and all(map(WHOLE_YEAR.fullmatch, others)) else ""


def is_month(text: str) -> bool:
    return MONTH_OF_YEAR.fullmatch(text.strip()) is not None


def is_time(text: str) -> bool:
    if is_number(text):
        return True
    try:
        return math.isfinite(as_seconds(text))
    except (ValueError, OverflowError):
        return False


def days_come_first(texts: list[str]) -> bool:
    """Whether days come before months in dates such as 3/4/2024; True where none is written so."""
    pairs = [(int(match[1]), int(match[2]), text) for text in texts if (match := IN_DIGITS.fullmatch(text))]
    day_first = next((text for first, _, text in pairs if first > 12), None)
    month_first = next((text for _, second, text in pairs if second > 12), None)
    if day_first and month_first:
        raise InputError(f"days come first in {day_first!r} and months in {month_first!r}: write all dates one way")
    unclear = next((text for first, second, text in pairs if first != second), None)
    if unclear and not day_first and not month_first:
        raise InputError(f"the date {unclear!r} may begin with the day or with the month: write it as 2024-05-31")
    return not month_first


def as_seconds(text: str, day_first: bool = True) -> float:
    """Seconds from 1970 to a date, taken for UTC where it names no zone; raises ValueError for what is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = read_date(text, day_first)
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()


def read_date(text: str, day_first: bool) -> datetime:
    from dateutil import parser  # its import takes a while

    if len(text) > LONGEST or not YEAR.search(text):
        raise ValueError(f"{shortened(text)!r} has no year of four digits")
    if (match := YEAR_FIRST.fullmatch(text)) and int(match[1]) > 12:
        raise ValueError(f"{text!r} has the day before the month")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names of time zones that it does not know
        order = {"yearfirst": bool(match), "dayfirst": day_first and not match}
        first, second = (parser.parse(text, default=default, **order) for default in DEFAULTS)
    if (first.year, first.month) != (second.year, second.month):
        raise ValueError(f"{text!r} has no year or no month")
    return first
