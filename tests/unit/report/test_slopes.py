"""Slopes by hand."""

import numpy as np
import pytest

from graphormer_sepnorm.report.slopes import LEAST_DRAWN, resampled_slope, slope_of


def calibrated(noise: float, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Labels with a slope of exactly 1 against predictions of variance 1, and of 1 / (1 + noise^2) the other way."""
    columns = np.random.default_rng(1).normal(size=(count, 2))
    predicted, rest = np.linalg.qr(columns - columns.mean(axis=0))[0].T * count**0.5
    return predicted + noise * rest, predicted


def test_a_slope_that_may_be_noise_is_no_bias():
    """With 15 molecules, the interval of a slope of 0.67 contains 1."""
    y, predicted = calibrated(1.0, 15)
    slope = resampled_slope(1.5 * predicted, y)
    assert slope.value < 0.8 < 1 < slope.high and not slope.is_biased
    assert resampled_slope(1.5 * np.tile(predicted, 40), np.tile(y, 40)).is_biased, "the same of 600 molecules"


def test_a_slope_by_hand():
    assert slope_of(np.array([0.0, 1]), np.array([0.0, 0.5])) == pytest.approx(0.5)
    assert np.isnan(slope_of(np.ones(3), np.arange(3.0))) and np.isnan(slope_of(np.empty(0), np.empty(0)))
    few = np.arange(LEAST_DRAWN - 1.0)
    assert resampled_slope(few, few) is None and resampled_slope(np.ones(20), np.arange(20.0)) is None
    assert resampled_slope(np.arange(20.0), 3 * np.arange(20.0)) == pytest.approx((3, 3, 3))
