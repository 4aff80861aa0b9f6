import math

import pytest

from graphormer_sepnorm.training.sweep import paired_difference, spread


def test_the_spread_is_that_of_a_sample():
    assert spread([1.0, 3.0]) == pytest.approx(math.sqrt(2))
    assert spread([1.0]) is None


def test_two_norms_are_compared_seed_by_seed():
    """Differences 1, 2, 3: mean 2, standard error 1 / sqrt(3), Student's t with two degrees of freedom 4.302653."""
    difference = paired_difference({"norm": "a", "test": [2.0, 4.0, 6.0]}, {"norm": "b", "test": [1.0, 2.0, 3.0]})
    assert (difference["norm"], difference["minus"], difference["mean"]) == ("a", "b", 2.0)
    assert difference["low"] == pytest.approx(2 - 4.302653 / math.sqrt(3), abs=1e-6)
    assert difference["high"] == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-6)
    assert {type(difference[name]) for name in ("mean", "low", "high")} == {float}  # of NumPy, it is printed otherwise


def test_one_seed_has_no_interval():
    difference = paired_difference({"norm": "a", "test": [2.0]}, {"norm": "b", "test": [1.0]})
    assert (difference["mean"], difference["low"], difference["high"]) == (1.0, None, None)
