"""Parsing of the times of rows: numbers, or dates in common formats."""

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import filterfalse

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.label_text import LONGEST, as_float, is_number, shortened

YEAR_FIRST = re.compile(r"\s*\d{4}[./-](\d{1,2})[./-]\d{1,2}(?!\d).*", re.DOTALL)
IN_DIGITS = re.compile(r"\s*(\d{1,2})[./-](\d{1,2})[./-]\d{4}\b.*", re.DOTALL)
WHOLE_YEAR = re.compile(r"(19|20)\d\d")
# Numbers such as 12.2023 and 2023.12.
MONTH_OF_YEAR = re.compile(r"(0?[1-9]|1[0-2])\.(19|20)\d\d|(19|20)\d\d\.(0?[1-9]|1[0-2])")
YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
MOST_PERIODS = 24  # of a column of times
GROUPS = 8  # that more numbers are divided into
DEFAULTS = datetime(2000, 1, 1), datetime(2001, 2, 1)  # what a date without a year or a month is recognised by


def read_times(texts: Iterable[str]) -> np.ndarray:
    """Times [M]: all numbers, such as years, or all dates, where one number above 12 tells days from months."""
    texts = [text.strip() for text in texts]
    strange = next((text for text in texts if not is_time(text)), None)
    if strange is not None:
        raise InputError(f"the time {strange!r} is neither a number nor a date such as 2024-05-31")
    numbers = [is_number(text) for text in texts]
    if month := month_of_year(texts):
        raise InputError(f"the time {month!r} looks like a month of a year, not like a number: write it as 2023-12")
    if all(numbers):
        return np.array([as_float(text) for text in texts], np.float64)
    if any(numbers):
        raise InputError("the column of times has numbers and dates: write all of them the same way")
    day_first = days_come_first(texts)
    return np.array([as_seconds(text, day_first) for text in texts], np.float64)


def in_order(texts: Sequence[str]) -> list[int]:
    return np.argsort(read_times(texts), kind="stable").tolist()


def periods(texts: Sequence[str]) -> list[str]:
    """The month of each time, or of many its year; of many numbers one of ``GROUPS``, such as "2001 to 2007"."""
    times = read_times(texts)
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
    has_month = any(len(text) == len("2023.12") for text in months)
    are_months = not others or (has_month and all(map(WHOLE_YEAR.fullmatch, others)))
    return months[0] if months and are_months else ""


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
    pairs = [(int(found[1]), int(found[2]), text) for text in texts if (found := IN_DIGITS.fullmatch(text))]
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
    """A date as people write it; raises ValueError or OverflowError if it is none."""
    from dateutil import parser  # its import takes a while

    if len(text) > LONGEST or not YEAR.search(text):
        raise ValueError(f"{shortened(text)!r} has no year of four digits")
    found = YEAR_FIRST.fullmatch(text)
    if found and int(found[1]) > 12:
        raise ValueError(f"{text!r} has the day before the month")
    year_first = found is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names of time zones that it does not know
        order = {"yearfirst": year_first, "dayfirst": day_first and not year_first}
        first, second = (parser.parse(text, default=default, **order) for default in DEFAULTS)
    if (first.year, first.month) != (second.year, second.month):
        raise ValueError(f"{text!r} has no year or no month")
    return first
