"""Parsing of label texts: numbers, bounds, classes and missing labels."""

import math
import re

from graphormer_sepnorm.errors import InputError

MISSING = ("", "na", "nan", "n/a", "null", "none", "#n/a", "<na>")  # the last two are Excel's and pandas'
CLASSES = {
    "0": 0.0, "false": 0.0, "no": 0.0, "inactive": 0.0,
    "1": 1.0, "true": 1.0, "yes": 1.0, "active": 1.0,
}  # fmt: skip
BOUND = re.compile(r"(<=|>=|<|>|≤|≥)\s*(.*)", re.DOTALL)
WITH_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
WITH_POINTS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+,\d+")  # between thousands
WITH_ONLY_POINTS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")  # between thousands, or one before decimals
WITH_POINT = re.compile(r"[+-]?\d*\.\d+(e[+-]?\d+)?", re.IGNORECASE)
WITH_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


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
            f"{target} is {text.strip().lower()!r}, not 0 or 1, true or false, yes or no, active or inactive"
        )
    return CLASSES[same_label(text)]


def read_number(text: str, target: str, comma_is_point: bool = False) -> float:
    """A number, NaN if the label is missing.

    Args:
        text: text of the label.
        target: name of the target, for the message.
        comma_is_point: whether a comma before three digits, as in "1,234", is a decimal comma; other commas always are.
            If so, "1.234,5" is read too. True for tables with semicolons between columns, which are common where
            decimal commas are used.

    Raises:
        InputError: the text is not a finite number, or its comma is ambiguous.
    """
    if is_missing(text):
        return math.nan
    number = text.strip().lower().replace("\N{MINUS SIGN}", "-")
    if comma_is_point and WITH_POINTS.fullmatch(number):
        number = number.replace(".", "")
    if WITH_COMMA.fullmatch(number):
        if not comma_is_point:
            refuse_ambiguous(number, target)
        number = number.replace(",", ".")
    try:
        value = as_float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{target} is {text.strip()!r}, not a number")
    return value


def commas_are_decimal(delimiter: str) -> bool:
    """Whether each comma in the numbers of a table with this delimiter is a decimal comma, as for ``read_number``."""
    return delimiter == ";"


def form_of(text: str) -> str:
    """The form of a number, or of a bound, with a comma or a point: an example of it, or "".

    "1,5" can only have a decimal comma and "1.5" only a decimal point; "1,234" and "1.234" may have a separator of
    thousands.
    """
    number = without_sign(text)
    if WITH_THOUSANDS.fullmatch(number):
        return "1,234"
    if WITH_ONLY_POINTS.fullmatch(number):
        return "1.234"
    if WITH_COMMA.fullmatch(number) or WITH_POINTS.fullmatch(number):
        return "1,5"
    return "1.5" if WITH_POINT.fullmatch(number) else ""


def without_sign(text: str) -> str:
    """The number of a bound such as "<5", or the text itself."""
    found = BOUND.fullmatch(text.strip())
    return (found[2] if found else text).strip()


def refuse_points(text: str, name: str) -> None:
    """Raises InputError for a number such as "1.234" where others have commas."""
    if form_of(text) == "1.234":
        text = text.strip()
        whole = text.replace(".", "")
        other = f" or {text}0" if text.count(".") == 1 else ""
        raise InputError(f"{name} is {text!r}, and other numbers have commas: write {whole}{other}")


def refuse_ambiguous(text: str, name: str) -> None:
    """Raises InputError for a number such as "1,234", whose comma is a decimal comma or separates thousands."""
    if WITH_THOUSANDS.fullmatch(text):
        raise InputError(f"{name} is {text!r}: write {text.replace(',', '')} or {text.replace(',', '.')}")


def as_float(text: str) -> float:
    """The number in a text; raises ValueError for any other text, including 1_5, which Python reads as 15."""
    if "_" in text:
        raise ValueError(f"{text!r} has an underscore")
    return float(text)


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return math.isfinite(as_float(text))
    except ValueError:
        return False


def read_bound(text: str, target: str, comma_is_point: bool = False) -> str:
    """A censored label such as "<5", "> 10" or "≥10" as "<5.0" or ">10.0"; "" for any other label.

    Raises:
        InputError: the sign is not followed by a number.
    """
    found = None if is_missing(text) else BOUND.fullmatch(text.strip())
    if found is None:
        return ""
    number = read_number(found[2], target, comma_is_point)
    if math.isnan(number):
        raise InputError(f"{target} is {text.strip()!r}, a bound without a number")
    return f"{'<' if found[1] in ('<', '<=', '≤') else '>'}{number!r}"


def bounds_of(text: str) -> tuple[float, float]:
    """Bounds of a censored label, as ``read_bound`` returns it; infinite where unbounded."""
    if not text:
        return -math.inf, math.inf
    number = float(text[1:])
    return (-math.inf, number) if text[0] == "<" else (number, math.inf)
