import math

import numpy as np
import pytest

from graphormer_sepnorm.tables.labels import averaged, pooled_deviation
from graphormer_sepnorm.tables.rows import LabelledRow

NAN = math.nan


def test_rows_with_one_key_become_their_mean():
    rows = [
        LabelledRow(1, "C", [1.0, NAN], bounds={1: "<5.0"}),
        LabelledRow(2, "CC", [7.0, 1.0]),
        LabelledRow(3, "C", [3.0, NAN], bounds={1: "<9.0"}),
        LabelledRow(4, "C", [NAN, NAN]),
    ]
    found, places = averaged(rows, ["a", "b", "a", "a"])
    assert places == [0, 1] and found[1] is rows[1]
    assert (found[0].number, found[0].labels[0]) == (1, 2.0)
    assert math.isnan(found[0].labels[1]) and found[0].bounds == {1: "<5.0"}


def test_an_exact_label_takes_the_place_of_bounds():
    rows = [LabelledRow(1, "C", [NAN], bounds={0: "<5.0"}), LabelledRow(2, "C", [4.0])]
    ((found,), _) = averaged(rows, ["a", "a"])
    assert found.labels == [4.0] and found.bounds == {}


@pytest.mark.parametrize(
    ("bounds", "kept"), [((">50.0", ">100.0"), ">100.0"), (("<5.0", "<2.0"), "<2.0"), ((">5.0", "<2.0"), ">5.0")]
)
def test_the_tightest_bound_is_kept(bounds, kept):
    rows = [LabelledRow(number, "C", [NAN], bounds={0: text}) for number, text in enumerate(bounds)]
    assert averaged(rows, ["a", "a"])[0][0].bounds == {0: kept}


def test_means_are_weighted():
    rows = [LabelledRow(1, "C", [1.0], weight=3.0), LabelledRow(2, "C", [5.0], weight=1.0)]
    ((found,), _) = averaged(rows, ["a", "a"])
    assert (found.labels, found.weight) == ([2.0], 2.0)


def test_the_pooled_deviation_by_hand():
    """Of 1, 3 and of 0, 0, 3: squares 2 and 6, degrees of freedom 1 and 2."""
    y = np.array([[1.0, NAN], [3.0, 2.0], [0.0, NAN], [0.0, NAN], [3.0, NAN], [9.0, NAN]])
    found = pooled_deviation(y, ["a", "a", "b", "b", "b", "c"])
    assert found[0] == pytest.approx((8 / 3) ** 0.5) and math.isnan(found[1])
