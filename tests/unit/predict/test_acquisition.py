"""What measurements promise."""

import numpy as np
import pytest
from scipy.stats import norm

from graphormer_sepnorm.predict.acquisition import Acquisition, expected_improvement


def test_expected_improvement_is_the_mean_of_what_is_above_nothing():
    """By an integral over the normal distribution."""
    grid = np.linspace(-12, 12, 200_001)
    for gain, deviation in ((0.0, 1.0), (0.5, 2.0), (-1.5, 0.7), (3.0, 0.1)):
        above = np.clip(gain + deviation * grid, 0, None)
        expected = np.trapezoid(above * norm.pdf(grid), grid)
        assert expected_improvement(np.array([gain]), np.array([deviation]))[0] == pytest.approx(expected, abs=1e-7)
    found = expected_improvement(np.array([2.0, -1, 0, np.nan]), np.array([0.0, 0, 0, np.nan]))
    assert found[:3].tolist() == [2, 0, 0] and np.isnan(found[3])


@pytest.mark.parametrize("minimize", [False, True])
def test_what_is_low_is_as_good_as_what_is_high(minimize):
    sign = -1 if minimize else 1
    value, deviation = sign * np.array([1.0, 2, 3]), np.array([1.0, 0.5, 0])
    improvement = Acquisition("expected-improvement", "y", minimize, best=sign * 2)
    np.testing.assert_allclose(improvement(value, deviation), [norm.pdf(1) - norm.cdf(-1), 0.5 * norm.pdf(0), 1])
    assert improvement.column == "expected_improvement" and not improvement.lowest_first
    bound = Acquisition("confidence-bound", "y", minimize, kappa=2)
    np.testing.assert_allclose(bound(value, deviation), sign * np.array([3.0, 3, 3]))
    assert bound.column == "confidence_bound" and bound.lowest_first == minimize
    plain = Acquisition("prediction", "y", minimize)
    assert plain(value, deviation).tolist() == value.tolist() and (plain.column, plain.lowest_first) == ("y", minimize)
