import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.times import in_order, periods, read_times

DAY = 86400


def test_times_are_numbers_or_dates():
    assert read_times(["2001", " 1999.5"]).tolist() == [2001, 1999.5]
    assert read_times(["1500", "2010.11", "3120"]).tolist() == [1500, 2010.11, 3120]
    assert read_times(["1970-01-02", "1970-01-01T01:00", "1970-01-01T01:00+01:00"]).tolist() == [DAY, 3600, 0]


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["2 Jan 1970", "February 1970", "Jan 3, 1970", "1970-01-04"], [1, 31, 2, 3]),
        (["3/1/1970", "31/1/1970"], [2, 30]),
        (["1/3/1970", "1/31/1970"], [2, 30]),
        (["03.01.1970", "13.01.1970 12:00"], [2, 12.5]),
        (["1/1/1970", "2/2/1970"], [0, 32]),
        (["3-1-1970", "15-1-1970"], [2, 14]),
        (["1970/01/03", "1970/01/31"], [2, 30]),
        (["1970/1/3", "1970-1-31 12:00", "1970.02.01"], [2, 30.5, 31]),
        (["1970/01/03", "1/3/1970", "1/31/1970"], [2, 2, 30]),
    ],
)
def test_dates_are_read_as_people_write_them(texts, days):
    assert read_times(texts).tolist() == [DAY * day for day in days]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["2001", "soon"], "'soon' is neither"),
        (["2001", "2001-05-03"], "numbers and dates"),
        (["nan"], "'nan'"),
        (["2023", "2_024"], "the time '2_024' is neither"),
        (["3/4/2021", "5/5/2021"], "'3/4/2021' may begin with the day or with the month: write it as 2024-05-31"),
        (["31/4/2021", "13/4/2021"], "'31/4/2021' is neither"),
        (["13/4/2021", "4/13/2021"], "days come first in '13/4/2021' and months in '4/13/2021'"),
        (["1970/31/01"], "'1970/31/01' is neither"),
        (["15.1.24"], "'15.1.24' is neither"),
        (["May 3"], "'May 3' is neither"),
        (["12:30"], "'12:30' is neither"),
        (["12.2023", "01.2024"], "'12.2023' looks like a month of a year, not like a number: write it as 2023-12"),
        (["2024.2", "2024.10"], "'2024.2' looks like a month of a year"),
        (["2020", "2020.10"], "'2020.10' looks like a month of a year"),
        (["2020", "2020.2", "2020.10"], "'2020.2' looks like a month of a year"),
        (["1 Jan 99999999999"], "is neither"),
    ],
)
def test_times_that_cannot_be_read_or_may_mean_two_days_are_refused(texts, message):
    with pytest.raises(InputError, match=message):
        read_times(texts)


def test_periods_are_months_years_numbers_or_groups_of_numbers():
    assert periods(["31.1.2024", "1.2.2024", "29.2.2024"]) == ["2024-01", "2024-02", "2024-02"]
    months = [f"{2000 + month // 12}-{month % 12 + 1:02}-01" for month in range(25)]
    assert periods(months)[::12] == ["2000", "2001", "2002"]
    assert periods(["2001", "2003", "2001.5"]) == ["2001", "2003", "2001.5"] and periods([]) == []
    groups = periods([str(number) for number in range(1, 81)])
    assert groups[0] == groups[9] == "1 to 10" and groups[-1] == "71 to 80" and len(set(groups)) == 8
    assert in_order(["2024-03-01", "2024-01-01", "2024-01-02"]) == [1, 2, 0]
