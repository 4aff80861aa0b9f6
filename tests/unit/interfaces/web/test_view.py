"""Which rows of a table are shown, by hand."""

import pytest

from graphormer_sepnorm.interfaces.web.jobs import Job
from graphormer_sepnorm.interfaces.web.schemas import Options, TableRow
from graphormer_sepnorm.interfaces.web.view import (
    NO_COLUMNS,
    View,
    chosen_columns,
    listed_columns,
    offered_columns,
    shown_rows,
    width_names,
)
from tests.page import ADDED, PretendedService

ROWS = [TableRow([text, name], text, "") for text, name in zip(["CCC", "X", "CXe", "C", "OOOO"], "abcde", strict=True)]
JOB = Job("0" * 32, None, "", columns=["smiles", "name"], rows=ROWS, added=ADDED)
JOB.answers = PretendedService().predict(ROWS, Options())


@pytest.mark.parametrize(
    ("view", "rows"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"sort": "length"}, [3, 0, 2, 4, 1]),
        ({"sort": "length_low", "order": "descending"}, [4, 0, 2, 3, 1]),
        ({"sort": "warning"}, [2, 0, 1, 3, 4]),
        ({"sort": "no column"}, [0, 1, 2, 3, 4]),
        ({"find": " c "}, [0, 2, 3]),
        ({"find": "E"}, [2, 4]),
        ({"only": "unreadable"}, [1]),
        ({"only": "warned"}, [2]),
        ({"only": "predicted", "find": "C", "sort": "length"}, [3, 0, 2]),
    ],
)
def test_rows_by_hand(view, rows):
    assert shown_rows(JOB, View(**view)) == rows


@pytest.mark.parametrize(("order", "rows"), [("ascending", [3, 2, 0, 1]), ("descending", [0, 2, 3, 1])])
def test_rows_are_sorted_by_the_width_of_their_interval(order, rows):
    job = Job("0" * 32, None, "", columns=["smiles", "name"], rows=ROWS[:4], added=ADDED)
    job.answers = PretendedService().predict(job.rows, Options())
    for row, high in ((0, 9), (2, 5), (3, 2)):  # from 2, 2 and 0 on
        job.answers[row].predictions["length"].high = high
    (name,) = width_names(job)
    assert name == "interval width of length" and shown_rows(job, View(sort=name, order=order)) == rows


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ([], ["length", "Nearest training molecule"]),
        (["name", "length", "name", "not there"], ["name", "length"]),
        (["not there"], ["length", "Nearest training molecule"]),
        ([NO_COLUMNS], []),
        (["name", NO_COLUMNS], ["name"]),
    ],
)
def test_columns_are_those_that_are_chosen(asked, shown):
    job = Job("0" * 32, None, "", Options(domain=True), ["smiles", "name"], ROWS, "smiles", ADDED)
    offered = offered_columns(PretendedService().facts(), job)
    assert list(offered) == ["length", "Nearest training molecule", "SMILES", "name"]
    assert chosen_columns(offered, View(columns=asked)) == shown
    listed = listed_columns(offered, shown)
    assert sorted(listed) == sorted(offered) and [name for name in listed if name in shown] == shown
    assert View(columns=["a b", "c"]).address(page=2) == "page=2&columns=a+b&columns=c"


def test_columns_keep_their_place_when_their_tick_changes():
    offered = ["a", "b", "c", "d"]
    for order in (offered, ["b", "a", "c", "d"], ["d", "a", "b", "c"]):
        assert listed_columns(offered, order) == order
    for chosen in (["b", "d"], ["c"], []):
        assert listed_columns(offered, chosen) == offered
    assert listed_columns(offered, ["d", "b"]) == ["a", "d", "b", "c"]
