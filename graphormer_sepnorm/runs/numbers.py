"""Scores and other numbers as text: those of one card, column or sentence have the same number of decimals."""

import math
from collections.abc import Iterable

SIGNIFICANT = 3  # digits of the leading number
LEAST_WITH_EXPONENT = 1e7
UNDEFINED = "not defined"


def decimals_for(values: Iterable[float | None], lead: float | None = None) -> int:
    """The decimals of numbers that are shown together: three significant digits of the leading one."""

    sizes = [abs(number) for number in values if number and math.isfinite(number)]
    leading = abs(lead) if lead and math.isfinite(lead) else max(sizes, default=1.0)
    decimals = max(SIGNIFICANT - 1 - math.floor(math.log10(leading)), 0)
    return decimals + any(not round(size, decimals) and round(size, decimals + 1) for size in sizes)


def shown(value: float | None, decimals: int | None = None) -> str:
    """A number with these decimals; None: those of the number itself."""
    if value is None or not math.isfinite(value):
        return UNDEFINED
    decimals = decimals_for([value]) if decimals is None else decimals
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def significant(value: float) -> str:
    """A number with three significant digits, zeros too: 9.01, 10.0, 100, 1,230, 464,000, 1.20e-05, 2.50e+07."""
    text = f"{value:#.{SIGNIFICANT}g}".rstrip(".")
    return f"{float(text):,.0f}" if "e" in text and 1 <= abs(value) < LEAST_WITH_EXPONENT else text


def counted(number: int, what: str) -> str:
    """A number of things: "1 molecule", "1,117 molecules"."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def percent(share: float | None) -> str:
    return UNDEFINED if share is None else f"{100 * share:.0f} %"


def shown_interval(ends: list[float] | None, decimals: int | None = None) -> str:
    if ends is None:
        return UNDEFINED
    return " to ".join(shown(end, decimals_for(ends) if decimals is None else decimals) for end in ends)


def shown_together(values: Iterable[float | None], lead: float | None = None) -> list[str]:
    values = list(values)
    decimals = decimals_for(values, lead)
    return [shown(value, decimals) for value in values]
