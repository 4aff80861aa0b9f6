"""Texts of numbers and names of molecules, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.predict.intervals import Intervals
from graphormer_sepnorm.table_model.labels import Folds
from graphormer_sepnorm.tables.labels import LabelledRow, LabelledTable
from graphormer_sepnorm.tables.splits import Duplicate
from tests.unit.report.conftest import fitted, reported, table


def test_values_have_the_decimals_of_the_labels():
    """A difference is that of the numbers shown: 6.854 and 8.636 differ by 1.78, which 6.85 and 8.64 do not."""
    page = reported(targets=("a", "b"), fitted=fitted([[1.5, 100], [2.25, 200]]))
    assert (page.rounded(3.14159, 0), page.predicted(3.14159, 1)) == ("3.14", "3")
    assert page.predicted(-0.001, 0) == "0.00", "no negative zero"
    assert page.difference(6.854, 8.636, 0) == page.difference(8.636, 6.854, 0) == "1.79"


def test_classes_have_their_names():
    page = reported(kind="classification", targets=("a", "b"), class_names=(("No", "Yes"), ("0", "1")))
    row = LabelledRow(1, "C", [1.0, 0.0], "test")
    assert [page.label_text(row, place) for place in (0, 1)] == ["Yes", "0"]
    assert page.predicted(0.75, 0) == "Yes (probability of Yes: 0.750)"
    assert page.predicted(0.5, 0) == "Yes (probability of Yes: 0.500)", "as predict"
    assert page.predicted(0.25, 1) == "0 (probability of 1: 0.250)"


def test_the_ends_of_the_intervals():
    intervals = Intervals(np.arange(1.0, 10)[:, None], np.zeros(1))
    model = fitted([[1.0]], trust={"intervals": intervals})
    test = {"spread": np.zeros((2, 1)), "prediction": np.array([[1.0], [20]])}
    result = {"trust": {"coverage": {"0.9": {"a": 1.0}}}}
    page = reported(result, fitted=model, test=test, targets=("a",))
    np.testing.assert_array_equal(page.interval_ends, [[[-8, 10]], [[11, 29]]])
    page.test.task = replace(page.task, limits=((0.0, 25.0),))
    limited = replace(page)
    assert [limited.interval(row, 0) for row in (0, 1)] == ["0 to 10", "11 to 25"]
    assert reported({"trust": {}}, fitted=model, test=test).interval(0, 0) is None


@pytest.mark.parametrize(
    ("text", "label", "words"), [("<5.0", 7.25, "<5.00"), (">10.0", 7.0, ">10"), ("<0.5", 7.0, "<0.5")]
)
def test_a_bound_has_the_decimals_of_the_labels_or_its_own(text, label, words):
    assert reported(fitted=fitted([[label, label]])).bound(text, 0) == words


def test_a_label_says_of_how_many_rows_it_is_the_mean():
    """Of the three rows of methane, two are for training; the second target has one label of them."""
    nan = float("nan")
    measured = table(("train", "C", [0.35, nan]), ("train", "C", [-0.2, 1]), ("test", "C", [9.0, 9])).rows
    mean = LabelledRow(1, "C", [0.075, 1.0], "train")
    kept = LabelledTable([mean, measured[2]], duplicates=[Duplicate("methane", (0, 1, 2), ())], measured=measured)
    page = reported(labelled=kept, fitted=fitted([[0.25, 1]]))
    assert [page.label_of(mean, place) for place in (0, 1)] == ["0.07 (mean of 2 rows)", "1"]
    assert page.label_of(measured[2], 0) == "9.00"
    censored = LabelledRow(4, "CC", [nan, nan], "train", bounds={0: "<5.123"})
    assert [page.label_of(censored, place) for place in (0, 1)] == ["<5.123", "not measured"]


def test_the_pairs_with_more_labels_of_the_rarer_class():
    """The test molecules have one of each class; out of fold there are two, unless all rows are the test rows."""
    test = {"y": np.array([[0.0], [1]]), "prediction": np.array([[0.2], [0.9]])}
    y = np.array([[0.0], [0], [1], [1]])
    for count, results, where in ((4, {}, 4), (3, {}, 0), (4, {"fold-0": {}}, 0)):
        page = reported(kind="classification", targets=("a",), y=y[:count], folds=Folds(np.arange(count)), test=test)
        labels, _, said = replace(page, results=results).most_labelled(0)
        assert len(labels) == (where or 2) and said.startswith("out of fold") == bool(where)
