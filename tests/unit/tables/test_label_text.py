import math

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.label_text import (
    Notation,
    bounds_of,
    converted,
    is_missing,
    notation_of,
    parts_of,
    read_bound,
    read_class,
    read_number,
    read_threshold,
    unit_of_column,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 1.5 ", 1.5), ("-2e3", -2000.0), ("3,14", 3.14), ("-0,5", -0.5), (",5", 0.5), ("0,123", 0.123),
        ("1234,567", 1234.567), ("1,5E-3", 0.0015), ("\u22122.5", -2.5), ("1,234.5", 1234.5),
        ("11,748,976", 11748976.0), ("8'709.6", 8709.6), ("8\u2019709,6", 8709.6),
        ("12\u202f345\xa0678", 12345678.0),
    ],
)  # fmt: skip
def test_numbers_by_hand(text, number):
    assert read_number(text, "y") == number


def test_a_comma_before_three_digits_is_a_point_where_that_is_known():
    decimal = Notation("decimal")
    assert read_number("1,234", "y", decimal) == 1.234
    assert [read_number(text, "y", decimal) for text in ("1.234,5", "-1.234.567,25")] == [1234.5, -1234567.25]
    assert read_bound("<1.234,5", "y", decimal) == "<1234.5"
    for text in ("1.23,5", "1.2345,5", "0.123,5", "1,234.5"):
        with pytest.raises(InputError, match=f"y is '{text}', not a number"):
            read_number(text, "y", decimal)
    with pytest.raises(InputError, match=r"y is '1,234': write 1234 or 1\.234"):
        read_number("1,234", "y")


TEXTS = ["high", "inf", "-INF", "1,234,56", "1.234,5", "1,2,3", "5 mg", "<5", "1_5", "1_000", "1e1_0", "0_1.5"]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_are_no_number(text):
    """Python reads 1_5 as 15."""
    with pytest.raises(InputError, match=f"y is '{text}', not a number"):
        read_number(text, "y")
    with pytest.raises(InputError, match="not a number"):
        read_bound(f"<{text}", "y")


@pytest.mark.parametrize("text", ["", "  ", "NA", "nan", "NaN", "N/A", "null", "None", "#N/A", "<NA>", " nan "])
def test_missing_labels(text):
    assert is_missing(text) and math.isnan(read_number(text, "y")) and math.isnan(read_class(text, "y"))
    assert read_bound(text, "y") == ""


@pytest.mark.parametrize(
    ("texts", "label"), [(["0", "0.0", "False", "no", "Inactive "], 0.0), (["1", "1.0", "TRUE", "Yes", " active"], 1.0)]
)
def test_classes_by_hand(texts, label):
    assert [read_class(text, "y") for text in texts] == [label] * len(texts)


@pytest.mark.parametrize(
    ("text", "bound", "between"),
    [
        ("<5", "<5.0", (-math.inf, 5.0)), (" < 0,5 ", "<0.5", (-math.inf, 0.5)), ("<= 5", "<5.0", (-math.inf, 5.0)),
        ("\u2264-1e3", "<-1000.0", (-math.inf, -1000.0)), (">10", ">10.0", (10.0, math.inf)),
        (">=10", ">10.0", (10.0, math.inf)), ("\u226510", ">10.0", (10.0, math.inf)),
        ("5", "", (-math.inf, math.inf)),
    ],
)  # fmt: skip
def test_bounds_by_hand(text, bound, between):
    assert read_bound(text, "y") == bound and bounds_of(bound) == between
    assert read_bound(bound, "y") == bound


@pytest.mark.parametrize(
    ("column", "table", "semicolons", "notation"),
    [
        ({"1,234", "1,234.5"}, set(), False, Notation("thousands", "decimal")),
        ({"1,234", "1.5"}, set(), False, Notation("thousands", "decimal")),
        ({"1,234", "1,5"}, set(), False, Notation("decimal", "decimal")),
        ({"1.234", "1.234,5"}, set(), False, Notation("decimal", "thousands")),
        ({"1,234", "1,5", "1.5"}, set(), False, Notation("unknown", "decimal")),
        ({"1,234"}, {"1.5"}, False, Notation("unknown", "decimal")),
        ({"1,234"}, {"1,5"}, True, Notation("decimal", "unknown")),
        ({"1,234"}, {"1.5"}, True, Notation("unknown", "decimal")),
        ({"1,234"}, {"1.5", "1,5"}, True, Notation("unknown", "unknown")),
    ],
)
def test_a_column_decides_on_its_separators_as_a_whole(column, table, semicolons, notation):
    assert notation_of(column, table, semicolons) == notation


def test_a_long_text_is_no_number():
    for text in ("1" * 100_000, "1," * 50_000, "-" + "0" * 100_000 + "x"):
        with pytest.raises(InputError, match="not a number") as error:
            read_number(text, "y")
        assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("12", ("12", "")), ("12 +- 3", ("12", "")), ("1,5 \u00b1 0,2 \u00b5M", ("1,5", "uM")),
        ("12 nM +/- 3 nM", ("12", "nM")), ("~120", ("120", "")), ("ca. 120", ("120", "")), ("45%", ("45", "%")),
        ("45 %", ("45", "%")), ("1.2e-5 M", ("1.2e-5", "M")), ("5nmol/L", ("5", "nM")), ("< 5 nM", ("<5", "nM")),
        (">10 %", (">10", "%")), ("HLM", ("HLM", "")), ("5 mg", ("5 mg", "")), ("1e-5", ("1e-5", "")),
        ("12 +- x", ("12 +- x", "")), ("n.d.", ("n.d.", "")), ("", ("", "")),
    ],
)  # fmt: skip
def test_parts_of_measurements_by_hand(text, parts):
    assert parts_of(text) == parts


def test_the_unit_of_a_column_is_that_of_most_labels():
    assert unit_of_column(["5 nM", "1 uM", "7 nM", "", "8"]) == "nM"
    assert unit_of_column(["5", "1 uM", "7"]) == "" and unit_of_column([]) == ""


def test_concentrations_are_converted():
    assert converted(1.5, "uM", "nM") == 1500 and converted(5, "nM", "uM") == 0.005
    assert read_threshold("100 nM") == (100, "nM") and read_threshold("6.5") == (6.5, "")
    with pytest.raises(InputError, match="the threshold is 'potent'"):
        read_threshold("potent")
