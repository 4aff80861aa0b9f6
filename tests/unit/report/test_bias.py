"""Biased predictions, and missed extremes, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from graphormer_sepnorm.report.bias import NARROW, of_bias, of_extremes, of_test_bias
from graphormer_sepnorm.report.slopes import Slope
from graphormer_sepnorm.report.words import line
from graphormer_sepnorm.table_model.labels import Folds
from tests.unit.report.conftest import reported
from tests.unit.report.test_slopes import calibrated

NAN = float("nan")
NO_LABEL = np.full((2, 1), NAN)


def told(y: np.ndarray, predicted: np.ndarray, kind: str = "regression", words=of_bias) -> list[str]:
    """The warnings about labels and out-of-fold predictions of one target, or other words on them."""
    found = SimpleNamespace(out_of_fold=SimpleNamespace(values=predicted[:, None]))
    parts = {"fitted": found, "folds": Folds(np.arange(len(y)) % 2)}
    return list(words(reported(kind=kind, targets=("a",), y=y[:, None], **parts)))


def test_accurate_predictions_need_no_sentence():
    y, predicted = calibrated(0.3)
    assert told(y, predicted) == told(y, predicted, words=of_extremes) == []
    assert told(y, 0.4 * predicted, "classification") == []


def test_a_calibrated_model_of_low_r2_misses_extremes_but_its_values_may_be_used():
    """R2, and the slope of predicted against measured values, is 1 / (1 + 1.5) = 0.4."""
    assert told(*calibrated(1.5**0.5)) == [], "nothing to act on"
    (sentence,) = told(*calibrated(1.5**0.5), words=of_extremes)
    assert sentence.startswith("a: extremes are missed.") and "predictions are right on average" in sentence
    assert "is predicted 0.40 above it" in sentence and "is measured 1.00 above it (95 % interval" in sentence
    assert "rank" not in sentence


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.94, 1.31, "predictions are right on average"),
        (1.07, 1.5, "understate slightly"),
        (0.6, 0.93, "exaggerate slightly"),
        (-2.1, 1.4, "too few molecules to tell"),
    ],
)
def test_values_are_right_on_average_only_if_the_interval_contains_1(low, high, words):
    sentence = line("headline.extremes", target="a", spread=0.4, slope=Slope(1.12, low, high), narrow=NARROW)
    assert words in sentence and f"measured 1.12 above it (95 % interval {low:.2f} to {high:.2f}" in sentence


@pytest.mark.parametrize(("factor", "words", "slope"), [(0.5, "close to", "2.00"), (2, "far from", "0.50")])
def test_biased_values_are_good_for_ranking_only(factor, words, slope):
    y, predicted = calibrated(0.3)
    (sentence,) = told(y, factor * predicted)
    assert f"too {words} the mean" in sentence and f"is measured {slope} above it" in sentence
    assert "rank molecules, not as values" in sentence


def test_neither_values_nor_order_of_predictions_without_skill_are_reliable():
    generator = np.random.default_rng(0)
    (sentence,) = told(generator.normal(size=400), generator.normal(size=400))
    assert "too far from the mean" in sentence
    assert sentence.endswith("Rely neither on the values nor on their order.")


def test_the_same_prediction_for_all_misses_extremes():
    (sentence,) = told(np.arange(20.0), np.zeros(20), words=of_extremes)
    assert sentence.endswith("is predicted 0.00 above it on average.")
    assert told(np.ones(20), np.ones(20)) == []


def test_missing_labels_do_not_count():
    y, predicted = calibrated(1.25)
    y_more, more = np.append(y, [NAN, 100.0]), np.append(predicted, [100.0, NAN])
    assert told(y_more, more, words=of_extremes) == told(y, predicted, words=of_extremes) != []


def on_test(y: np.ndarray, predicted: np.ndarray, kind: str = "regression", words=of_test_bias) -> list[str]:
    """The sentences on the predictions for test molecules; there are too few out of fold for others."""
    test = {"y": y[:, None], "prediction": predicted[:, None].astype(np.float32)}
    found = SimpleNamespace(out_of_fold=SimpleNamespace(values=NO_LABEL))
    parts = {"y": NO_LABEL, "fitted": found, "folds": Folds(np.arange(2))}
    return list(words(reported(kind=kind, targets=("a",), test=test, **parts)))


@pytest.mark.parametrize(
    ("factor", "words", "slope", "place"),
    [
        (0.5, "close to", "2.00", of_bias),
        (2, "far from", "0.50", of_bias),
        (0.85, "close to", "1.18", of_test_bias),
        (1.1, "far from", "0.91", of_test_bias),
    ],
)
def test_a_bias_on_the_test_molecules_is_a_warning_only_if_it_is_strong(factor, words, slope, place):
    y, predicted = calibrated(0.3)
    labels, values = np.append(y, NAN), np.append(factor * predicted, 100.0)
    (sentence,) = on_test(labels, values, words=place)
    assert sentence.startswith(f"a: on the test molecules, predictions are too {words} the mean")
    assert f"is measured {slope} above it" in sentence
    (other,) = {of_bias, of_test_bias} - {place}
    assert on_test(labels, values, words=other) == [], "it is said in one place"
    assert on_test(y, predicted) == on_test(y, factor * predicted, "classification", place) == []
    assert on_test(y[:9], factor * predicted[:9], words=place) == [], "too few molecules to say"
