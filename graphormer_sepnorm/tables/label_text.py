"""Parsing of label texts: numbers, bounds, classes and missing labels."""

import math
import re
from dataclasses import dataclass
from typing import Literal

from graphormer_sepnorm.errors import InputError

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
Role = Literal["decimal", "thousands", "unknown"]


@dataclass(frozen=True)
class Notation:
    """The roles of separators in the numbers of a column.

    A number such as "1,234" or "1.234" is refused where the role is unknown. Other numbers show it themselves:
    "1,5" has a decimal comma, and "1,234.5" and "1,234,567" have thousands.
    """

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
    """Raises InputError for a text that was read from bytes that are not UTF-8."""
    if any("\udc80" <= character <= "\udcff" for character in text):
        raise InputError(f"{name} has bytes that are not UTF-8: save the table as UTF-8")


def is_class(text: str) -> bool:
    """Whether a text is one of two classes."""
    return same_label(text) in CLASSES


def read_class(text: str, target: str) -> float:
    """0 or 1, NaN if the label is missing; raises InputError for any other text."""
    if is_missing(text):
        return math.nan
    if not is_class(text):
        raise InputError(
            f"{target} is {text.strip().lower()!r}, not 0 or 1, true or false, yes or no, active or inactive, "
            "or another pair such as soluble and insoluble"
        )
    return CLASSES[same_label(text)]


def read_number(text: str, target: str, notation: Notation = UNDECIDED) -> float:
    """A number, NaN if the label is missing.

    Args:
        text: text of the label.
        target: name of the target, for the message.
        notation: of the column.

    Raises:
        InputError: the text is not a finite number, or its separator is ambiguous.
    """
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
    """A text for a message, without what follows its first characters if it is long."""
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
    """The form of a number, or of a bound, with a comma or a point: an example of it, or "".

    "1,5" can only have a decimal comma and "1.5" only a decimal point; "1,234" and "1.234" may have a separator of
    thousands; "1,234.5" has one, and so have "1,234,567" and "1.234.567", which are of the forms "1,234.5" and
    "1.234,5".
    """
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
    """The notation of a column."""
    commas, points = bool(column & {"1,5", "1.234,5"}), bool(column & {"1.5", "1,234.5"})
    thousands_by_comma = "1,234.5" in column or ("1.5" in column and not semicolons)
    comma: Role = (
        "thousands" if thousands_by_comma and not commas else "decimal" if commas and not points else "unknown"
    )
    point: Role = "thousands" if "1.234,5" in column and not points else "decimal"
    if not semicolons or {comma, point} & {"thousands"}:
        return Notation("decimal" if point == "thousands" and comma == "unknown" else comma, point)
    if not (commas or points):
        commas, points = "1,5" in table, "1.5" in table
        if (commas and points) or (not commas and not points and {"1.234", "1,234"} <= table):
            return Notation("unknown", "unknown")
    return Notation("decimal" if commas or not points else "unknown", "unknown" if commas and not points else "decimal")


def without_sign(text: str) -> str:
    """The number of a bound such as "<5", or the text itself."""
    found = BOUND.fullmatch(text.strip())
    return (found[2] if found else text).strip()


def is_undecided(text: str, notation: Notation) -> bool:
    """Whether it is a number such as "1,234" or "1.234" whose separator is unknown."""
    return {"1,234": notation.comma, "1.234": notation.point}.get(form_of(text)) == "unknown"


def refuse_undecided(text: str, name: str, notation: Notation) -> None:
    """Raises InputError for a number or bound that ``is_undecided``."""
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
    """Whether a text is a finite number."""
    try:
        return math.isfinite(as_float(text))
    except ValueError:
        return False


def read_bound(text: str, target: str, notation: Notation = UNDECIDED) -> str:
    """A censored label such as "<5", "> 10" or "≥10" as "<5.0" or ">10.0"; "" for any other label.

    Raises:
        InputError: the sign is not followed by a number.
    """
    found = None if is_missing(text) else BOUND.fullmatch(text.strip())
    if found is None:
        return ""
    number = read_number(found[2], target, notation)
    if math.isnan(number):
        raise InputError(f"{target} is {text.strip()!r}, a bound without a number")
    return f"{'<' if found[1] in ('<', '<=', '≤') else '>'}{number!r}"


def bounds_of(text: str) -> tuple[float, float]:
    """Bounds of a censored label, as ``read_bound`` returns it; infinite where unbounded."""
    if not text:
        return -math.inf, math.inf
    number = float(text[1:])
    return (-math.inf, number) if text[0] == "<" else (number, math.inf)
