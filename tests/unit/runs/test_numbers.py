"""Numbers as text, by hand."""

import pytest

from graphormer_sepnorm.runs.numbers import (
    counted,
    decimals_for,
    percent,
    shown,
    shown_interval,
    shown_together,
    significant,
)


def test_things_are_counted():
    assert [counted(number, "row") for number in (0, 1, 1117)] == ["0 rows", "1 row", "1,117 rows"]


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([0.612, 0.08146], 3), ([0.08146], 4), ([1.5, None, float("nan"), 0.0], 2), ([1234.5, 7.0], 0),
        ([0.612, 0.0004], 4), ([0.612, 1e-9], 3), ([99.96, -0.5], 1), ([0.0, None], 2), ([], 2),
    ],
)  # fmt: skip
def test_the_largest_number_has_three_digits_and_none_becomes_zero(values, decimals):
    assert decimals_for(values) == decimals


def test_numbers_that_are_shown_together_have_the_same_decimals():
    assert shown_together([0.0815, 2.05], 0.0815) == ["0.0815", "2.0500"], "by the leading number"
    assert shown_together([0.08146, 0.612, None]) == ["0.081", "0.612", "not defined"]
    assert shown_interval([0.123456, 2]) == "0.12 to 2.00" and shown_interval(None) == "not defined"
    assert shown_interval([-0.00001, 0.5], 3) == "0.000 to 0.500"
    assert [shown(value) for value in (1.23456, 0.0, None, float("nan"))] == ["1.23", "0.00", *["not defined"] * 2]
    assert (percent(0.8147), percent(None)) == ("81 %", "not defined")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (9.0123, "9.01"), (9.0, "9.00"), (10.0, "10.0"), (100.04, "100"), (999.6, "1,000"), (1234.0, "1,230"),
        (463_700.0, "464,000"), (1_014_000.0, "1,010,000"), (-9_999_999.0, "-10,000,000"), (1e-5, "1.00e-05"),
        (0.012, "0.0120"), (2.5e7, "2.50e+07"),
    ],
)  # fmt: skip
def test_three_significant_digits_with_their_zeros(value, text):
    assert significant(value) == text
