import math

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.label_text import (
    Notation,
    bounds_of,
    converted,
    in_order,
    is_missing,
    measurement_parts,
    notation_of,
    periods,
    read_bound,
    read_class,
    read_number,
    read_threshold,
    read_times,
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
    with pytest.raises(InputError, match=r"y is '1,234', which may be 1234 or 1\.234"):
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


def test_classes_by_hand():
    assert [read_class(text, "y") for text in ("0", "0.0", "False", "no", "Inactive ")] == [0] * 5
    assert [read_class(text, "y") for text in ("1", "1.0", "TRUE", "Yes", " active")] == [1] * 5


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
        ({"1,234", "1,234.5"}, {}, False, "thousands decimal"), ({"1,234", "1.5"}, {}, False, "thousands decimal"),
        ({"1,234", "1,5"}, {}, False, "decimal thousands"), ({"1.234", "1.234,5"}, {}, False, "decimal thousands"),
        ({"1,234", "1,5", "1.5"}, {}, False, "unknown decimal"), ({"1,234"}, {"1.5"}, False, "unknown decimal"),
        ({"1,234"}, {"1,5"}, True, "decimal unknown"), ({"1,234"}, {"1.5"}, True, "unknown decimal"),
        ({"1,234"}, {"1.5", "1,5"}, True, "unknown unknown"),
    ],
)  # fmt: skip
def test_a_column_decides_on_its_separators_as_a_whole(column, table, semicolons, notation):
    assert notation_of(column, set(table), semicolons) == Notation(*notation.split())


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
    assert measurement_parts(text) == parts


def test_the_unit_of_a_column_is_that_of_most_labels():
    assert unit_of_column(["5 nM", "1 uM", "7 nM", "", "8"]) == "nM"
    assert unit_of_column(["5", "1 uM", "7"]) == "" and unit_of_column([]) == ""


def test_concentrations_are_converted():
    assert converted(1.5, "uM", "nM") == 1500 and converted(5, "nM", "uM") == 0.005
    assert read_threshold("100 nM") == (100, "nM") and read_threshold("6.5") == (6.5, "")
    with pytest.raises(InputError, match="the threshold is 'potent'"):
        read_threshold("potent")


DAY = 86400


def test_times_are_numbers_or_dates():
    assert read_times(["2001", " 1999.5"]).tolist() == [2001, 1999.5]
    assert read_times(["1500", "2010.11", "3120"]).tolist() == [1500, 2010.11, 3120]
    assert read_times(["1970-01-02", "1970-01-01T01:00", "1970-01-01T01:00+01:00"]).tolist() == [DAY, 3600, 0]


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["2 Jan 1970", "February 1970", "Jan 3, 1970", "1970-01-04"], [1, 31, 2, 3]),
        (["3/1/1970", "31/1/1970"], [2, 30]), (["1/3/1970", "1/31/1970"], [2, 30]),
        (["03.01.1970", "13.01.1970 12:00"], [2, 12.5]), (["1/1/1970", "2/2/1970"], [0, 32]),
        (["3-1-1970", "15-1-1970"], [2, 14]), (["1970/1/3", "1970-1-31 12:00", "1970.02.01"], [2, 30.5, 31]),
        (["1970/01/03", "1/3/1970", "1/31/1970"], [2, 2, 30]),
    ],
)  # fmt: skip
def test_dates_are_read_as_people_write_them(texts, days):
    assert read_times(texts).tolist() == [DAY * day for day in days]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["2001", "soon"], "'soon' is neither"), (["nan"], "'nan'"), (["2023", "2_024"], "'2_024' is neither"),
        (["2001", "2001-05-03", "2002"], "'2001-05-03' is a date"), (["1 Jan 99999999999"], "is neither"),
        (["3/4/2021", "5/5/2021"], "'3/4/2021' may begin with the day or with the month: write it as 2024-05-31"),
        (["31/4/2021", "13/4/2021"], "'31/4/2021' is neither"),
        (["13/4/2021", "4/13/2021"], "days come first in '13/4/2021' and months in '4/13/2021'"),
        (["1970/31/01"], "is neither"), (["15.1.24"], "is neither"), (["May 3"], "is neither"),
        (["12:30"], "is neither"),
        (["12.2023", "01.2024"], "'12.2023' looks like a month of a year, not like a number: write it as 2023-12"),
        (["2024.2", "2024.10"], "'2024.2' looks like a month of a year"),
        (["2020", "2020.10"], "'2020.10' looks like a month of a year"),
        (["2020", "2020.2", "2020.10"], "'2020.2' looks like a month of a year"),
    ],
)  # fmt: skip
def test_times_that_cannot_be_read_or_may_mean_two_days_are_refused(texts, message):
    with pytest.raises(InputError, match=message):
        read_times(texts)


def test_periods_are_months_years_numbers_or_groups_of_numbers():
    assert periods(["31.1.2024", "1.2.2024", "29.2.2024"]) == ["2024-01", "2024-02", "2024-02"]
    assert periods(["3.4.2024"], ["13.1.2020", *["1.1.2021"] * 25]) == ["2024-04"]
    months = [f"{2000 + month // 12}-{month % 12 + 1:02}-01" for month in range(25)]
    assert periods(months)[::12] == ["2000", "2001", "2002"]
    assert periods(["2001", "2003", "2001.5"]) == ["2001", "2003", "2001.5"] and periods([]) == []
    groups = periods([str(number) for number in range(1, 81)])
    assert groups[0] == groups[9] == "1 to 10" and groups[-1] == "71 to 80" and len(set(groups)) == 8
    assert in_order(["2024-03-01", "2024-01-01", "2024-01-02"]) == [1, 2, 0]
