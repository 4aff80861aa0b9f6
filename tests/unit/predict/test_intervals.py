"""Intervals by hand, and by what they promise."""

import numpy as np
import pytest
from scipy.stats import binom

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.intervals import coverage, error_correlation, fit_intervals, spread_of_models


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float64)[:, None]


def test_half_widths_by_hand():
    """Errors of 1 to 9: of 10 places, the new molecule's is at most the 9th with probability 0.9."""
    found = fit_intervals(column(3, -1, 2, -4, 9, 8, -7, 6, 5), column(*[0] * 9), column(*[0] * 9))
    half_widths = {0.9: 9, 0.89: 9, 0.8: 8, 0.5: 5, 0.51: 6, 0.1: 1, 1e-12: 1}
    for confidence, expected in half_widths.items():
        assert found.half_widths(confidence, column(0, 0)).tolist() == [[expected], [expected]]


@pytest.mark.parametrize("confidence", [0.0, 1.0, 0.91, 90.0, -1.0, np.nan])
def test_confidences_that_cannot_be(confidence):
    found = fit_intervals(column(*range(9)), column(*[0] * 9), column(*[0] * 9))
    with pytest.raises(InputError, match="of at most 0.9" if confidence == 0.91 else "between 0 and 1"):
        found.half_widths(confidence, column(0))


def test_intervals_are_wider_where_models_disagree():
    """Errors 1, 2, 6 at spreads 1, 0, 2, whose mean is 1, are scores 1/2, 2, 2."""
    found = fit_intervals(column(1, 2, 6), column(0, 0, 0), column(1, 0, 2))
    assert found.scores.tolist() == [[0.5], [2], [2]] and found.offset.tolist() == [1]
    assert found.half_widths(0.5, column(0, 1, 3, np.nan)).tolist()[:3] == [[2], [4], [8]]
    assert np.isnan(found.half_widths(0.5, column(np.nan))).all()
    assert np.isnan(fit_intervals(column(1), column(0), column(0)).half_widths(0.5, column(np.nan))).all()
    by_model = np.array([[[1e-25]], [[3e-25]]], np.float32)
    assert spread_of_models(by_model)[0, 0] == pytest.approx(1e-25, rel=1e-6, abs=0), "however small it is"


def test_missing_labels_are_not_counted():
    y = np.array([[1.0, np.nan], [2, 5], [3, 7], [4, np.nan]])
    found = fit_intervals(y, np.zeros((4, 2)), np.zeros((4, 2)))
    assert found.half_widths(0.6, np.zeros((1, 2))).tolist() == [[3, 7]]
    with pytest.raises(InputError, match="the 2 that this model"):
        found.half_widths(0.7, np.zeros((1, 2)))
    with pytest.raises(InputError, match="no labels"):
        fit_intervals(y[[0, 3]], np.zeros((2, 2)), np.zeros((2, 2)))


def test_ends_stay_within_the_limits_of_the_target():
    found = fit_intervals(column(*range(1, 10)), column(*[0] * 9), column(*[0] * 9))
    low, high = found.ends(0.5, column(1, 8), column(0, 0), ((0, 10),))
    assert (low.tolist(), high.tolist()) == ([[0], [3]], [[6], [10]])
    low, high = found.ends(0.5, column(1), column(0), ())
    assert (low.tolist(), high.tolist()) == ([[-4]], [[6]])


@pytest.mark.slow
@pytest.mark.parametrize(("confidence", "spread"), [(0.51, 1.0), (0.83, 0.0), (0.93, 1.0)])
def test_what_is_promised_holds_on_average(confidence, spread):
    """2,000 times, one new molecule after 39 of calibration with errors of heavy tails: a binomial count."""
    random, inside = np.random.default_rng(0), 0
    for _ in range(2000):
        disagreement = spread * random.exponential(size=(40, 1))
        y = random.standard_t(2, (40, 1)) * (1 + disagreement)
        found = fit_intervals(y[:39], np.zeros((39, 1)), disagreement[:39])
        inside += int(np.abs(y[39, 0]) <= found.half_widths(confidence, disagreement[39:])[0, 0])
    promised = np.ceil(40 * confidence) / 40
    least, most = binom.interval(0.9999, 2000, promised)
    assert least <= inside <= most


def test_coverage_by_hand():
    y = np.array([[1.0, np.nan, np.nan], [2, 2, np.nan], [3, np.nan, np.nan]])
    half_widths = np.array([[1.0, 0, 0], [1, 3, 0], [3, 9, 0]])
    found = coverage(y, -half_widths, half_widths)
    np.testing.assert_array_equal(found, [2 / 3, 1, np.nan])


def test_censored_scores_by_hand():
    """Errors 1, -2, 3 and one that is above 1.5, or below -4."""
    y = column(1, -2, 3, np.nan)
    bounds = np.tile([-np.inf, np.inf], (4, 1, 1))
    bounds[3, 0, 0] = 1.5
    zeros = np.zeros((4, 1))
    scores = fit_intervals(y, zeros, zeros, bounds=bounds).scores[:, 0]
    assert scores.tolist() == [1, 2, 3, 3], "an error above 1.5 can only be 3, as -2 is below it"
    bounds[3, 0] = -np.inf, -4
    scores = fit_intervals(y, zeros, zeros, bounds=bounds).scores[:, 0]
    assert scores[:3].tolist() == [1, 2, 3] and 4 < scores[3] < 6, "beyond all exact errors"


def test_intervals_of_censored_labels_hold_what_they_promise():
    """Errors of a heavy tail, of which those above a limit that differs by molecule are known only as such."""
    random = np.random.default_rng(0)
    prediction, error = random.normal(size=(4000, 1)), random.standard_t(4, size=(4000, 1))
    y, limit = prediction + error, random.normal(0.5, 1, size=(4000, 1))
    bounds = np.stack([np.where(y > limit, limit, -np.inf), np.full_like(y, np.inf)], axis=2)
    known, zeros = np.where(y > limit, np.nan, y), np.zeros_like(y)
    for confidence in (0.5, 0.8, 0.9):
        half, plain = (
            fit_intervals(known, prediction, zeros, bounds=each).half_widths(confidence, zeros)
            for each in (bounds, None)
        )
        assert (np.abs(error) <= half).mean() == pytest.approx(confidence, abs=0.03)
        assert np.abs((np.abs(error) <= plain).mean() - confidence) > 0.005


def test_correlations_are_those_of_ranks_of_common_molecules():
    """Of two targets in the same order, one with outliers, and a third with too few common molecules."""
    errors = np.arange(40.0)[:, None] * [1, 1, -1]
    errors[35:, 1] **= 5
    errors[20:, 2] = np.nan
    found = error_correlation(errors)
    assert found == pytest.approx(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]]), abs=2e-3)
    assert np.linalg.eigvalsh(found).min() > 0 and error_correlation(errors[:, :1]).tolist() == [[1]]
