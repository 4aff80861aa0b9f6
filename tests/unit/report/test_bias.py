"""Biased predictions, and missed extremes, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from graphormer_sepnorm.report.headline import LEAST_DRAWN, of_bias, of_extremes, resampled_slope, slope_of
from graphormer_sepnorm.table_model.labels import Folds
from tests.unit.report.conftest import reported

NAN = float("nan")


def calibrated(noise: float, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Labels with a slope of exactly 1 against predictions of variance 1, and of 1 / (1 + noise^2) the other way."""
    columns = np.random.default_rng(1).normal(size=(count, 2))
    predicted, rest = np.linalg.qr(columns - columns.mean(axis=0))[0].T * count**0.5
    return predicted + noise * rest, predicted


def told(y: np.ndarray, predicted: np.ndarray, kind: str = "regression", words=of_bias, tested=None) -> list[str]:
    """The sentences on labels and out-of-fold predictions of one target, and on test molecules."""
    found = SimpleNamespace(out_of_fold=SimpleNamespace(values=predicted[:, None]))
    parts = {"fitted": found, "folds": Folds(np.arange(len(y)) % 2)}
    test = None if tested is None else dict(zip(("y", "prediction"), (each[:, None] for each in tested), strict=True))
    return list(words(reported(kind=kind, targets=("a",), y=y[:, None], test=test, **parts)))


def test_a_slope_by_hand():
    assert slope_of(np.array([0.0, 1]), np.array([0.0, 0.5])) == pytest.approx(0.5)
    assert np.isnan(slope_of(np.ones(3), np.arange(3.0))) and np.isnan(slope_of(np.empty(0), np.empty(0)))
    few = np.arange(LEAST_DRAWN - 1.0)
    assert resampled_slope(few, few) is None and resampled_slope(np.ones(20), np.arange(20.0)) is None
    assert resampled_slope(np.arange(20.0), 3 * np.arange(20.0)) == pytest.approx((3, 3, 3))


def test_a_slope_that_may_be_noise_is_no_bias():
    """With 15 molecules, the interval of a slope of 0.67 contains 1."""
    y, predicted = calibrated(1.0, 15)
    slope = resampled_slope(1.5 * predicted, y)
    assert slope.value < 0.8 < 1 < slope.high and not slope.is_biased
    assert resampled_slope(1.5 * np.tile(predicted, 40), np.tile(y, 40)).is_biased, "the same of 600 molecules"


def test_accurate_predictions_need_no_sentence():
    y, predicted = calibrated(0.3)
    assert told(y, predicted) == told(y, predicted, words=of_extremes) == []
    assert told(y, 0.4 * predicted, "classification") == []


def test_a_calibrated_model_of_low_r2_misses_extremes_but_its_values_may_be_used():
    """R2, and the slope of predicted against measured values, is 1 / (1 + 1.5) = 0.4."""
    y, predicted = calibrated(1.5**0.5)
    assert told(y, predicted) == [], "nothing to act on"
    (sentence,) = told(y, predicted, words=of_extremes)
    assert "is predicted 0.40 above it" in sentence and "is measured 1.00 above it" in sentence
    missing = np.append(y, [NAN, 100.0]), np.append(predicted, [100.0, NAN])
    assert told(*missing, words=of_extremes) == [sentence], "missing labels do not count"


@pytest.mark.parametrize(("factor", "words", "slope"), [(0.5, "close to", "2.00"), (2, "far from", "0.50")])
def test_biased_values_are_good_for_ranking_only(factor, words, slope):
    y, predicted = calibrated(0.3)
    (sentence,) = told(y, factor * predicted)
    assert f"out of fold, predictions are too {words} the mean" in sentence and f"measured {slope} above" in sentence
    assert "rank molecules, not as values" in sentence
    (of_test,) = told(y, predicted, tested=(np.append(y, NAN), np.append(factor * predicted, 100.0)))
    assert f"on the test molecules, predictions are too {words}" in of_test and slope in of_test
    assert told(y, predicted, tested=(y[:9], factor * predicted[:9])) == [], "too few molecules to say"


def test_predictions_without_skill_are_not_reliable():
    generator = np.random.default_rng(0)
    (sentence,) = told(generator.normal(size=400), generator.normal(size=400))
    assert sentence.endswith("Rely neither on the values nor on their order.")
    (sentence,) = told(np.arange(20.0), np.zeros(20), words=of_extremes)
    assert sentence.endswith("is predicted 0.00 above it on average.")
    assert told(np.ones(20), np.ones(20)) == []
