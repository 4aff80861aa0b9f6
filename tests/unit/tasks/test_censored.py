"""Censored labels by hand; values of the normal distribution are those of printed tables."""

import numpy as np
import pytest

from graphormer_sepnorm.tasks.censored import (
    Censored,
    TopScores,
    bound_scores,
    error_deviation,
    is_bounded,
    log_likelihoods,
    top_scores,
)

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("bounds", "mean", "deviation", "expected", "squared", "absolute", "likelihood"),
    [
        ((0, INF), 0, 1, 0.797885, 1, 0.797885, -0.693147),
        ((1, INF), 0, 1, 1.525135, 2.525135, 1.525135, -1.841022),
        ((-INF, 1), 0, 1, -0.287600, 0.712400, 0.660744, -0.172753),
        ((-INF, 3), 5, 2, 5 - 2 * 1.525135, 4 * 2.525135, 2 * 1.525135, -1.841022),
        ((30, INF), 0, 1, 30.033260, 901.997791, 30.033260, -454.321244),
        ((-INF, INF), 4, 1, 4, 0, 0, 0),
    ],
)
def test_expectations_by_hand(bounds, mean, deviation, expected, squared, absolute, likelihood):
    found = Censored(np.array(bounds), np.array(float(mean)), deviation)
    assert found.expected == pytest.approx(expected, rel=1e-5)
    assert found.squared_error == pytest.approx(squared, rel=1e-5)
    assert found.absolute_error == pytest.approx(absolute, rel=1e-5)
    assert found.log_likelihood == pytest.approx(likelihood, rel=1e-5)


def test_the_deviation_of_errors_is_found_behind_bounds():
    """Of 20,000 errors of deviation 2, those of labels above 1 are known only as such."""
    y = 2 * np.random.default_rng(0).normal(size=(20_000, 1))
    bounds = np.stack([np.where(y > 1, 1, -INF), np.full_like(y, INF)], axis=2)
    known = np.where(y > 1, NAN, y)
    assert error_deviation(known, bounds, np.zeros_like(y))[0] == pytest.approx(2, abs=0.05)
    assert is_bounded(known, bounds).mean() == (y > 1).mean()


def test_scores_with_bounds_by_hand():
    """Certain orders are 1 < 2, 1 < >2, 2 < >2, and <1 below all: 2 of 6 are predicted the other way round."""
    y = np.array([1.0, 2.0, NAN, NAN, NAN])
    bounds = np.array([(-INF, INF), (-INF, INF), (2, INF), (-INF, 1), (-INF, INF)])
    found = bound_scores(y, bounds, np.array([1.0, 3.0, 2.0, 1.5, 9.0]))
    assert (found.bounds, found.right_side, found.concordance) == (2, 0.5, 4 / 6)
    assert bound_scores(y, bounds, np.ones(5)).concordance == 0.5
    assert bound_scores(y[:2], bounds[:2], np.ones(2)) is None


def test_likelihoods_grow_with_agreement():
    y, bounds = np.array([0.0, 2.0, NAN]), np.array([(-INF, INF), (-INF, INF), (0.5, INF)])
    near, far = (bound_scores(y, bounds, np.array([1.0, 1.0, last])).log_likelihood for last in (2.0, -2.0))
    assert near > far
    alone = log_likelihoods(y[:2], bounds[:2], np.ones(2))
    np.testing.assert_allclose(alone, -0.5 - 0.5 * np.log(2 * np.pi))


def test_the_largest_labels_are_found_among_the_largest_predictions():
    """Of 0 to 30 the largest are 28 to 30. With 27 as >28 four are; <29 may be one; <5 is none."""
    y, bounds = np.arange(31.0), np.full((31, 2), [-np.inf, np.inf])
    prediction = np.where(y == 30, 0, y)
    assert top_scores(y, None, prediction) == TopScores(3, 3, 2, 9 / 31)
    assert top_scores(y[:29], None, prediction[:29]) is None
    y[[27, 26, 3]], bounds[27, 0], bounds[[26, 3], 1] = np.nan, 28, (29, 5)
    assert top_scores(y, bounds, prediction) == TopScores(3, 4, 3, 3 * 4 / 30)
