"""Calibrated probabilities and conformal sets of classes, by hand and by what they promise."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.classes import (
    ClassSets,
    brier_score,
    calibration_error,
    fit_calibration,
    fit_class_sets,
)
from tests.unit.predict.test_intervals import column


def overconfident(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and probabilities whose logits are three times too large and one too high."""
    random = np.random.default_rng(seed)
    true = random.normal(size=(count, 1))
    return (random.random((count, 1)) < expit(true)).astype(float), expit(3 * true + 1)


def test_probabilities_are_stretched_and_shifted_back():
    y, probability = overconfident(20_000, 0)
    found = fit_calibration(y, probability)
    assert found.slope[0] == pytest.approx(1 / 3, abs=0.02)
    assert found.intercept[0] == pytest.approx(-1 / 3, abs=0.04)
    y, probability = overconfident(2_000, 1)
    assert log_loss(y[:, 0], found(probability)[:, 0]) < log_loss(y[:, 0], probability[:, 0]) - 0.1
    assert roc_auc_score(y[:, 0], found(probability)[:, 0]) == roc_auc_score(y[:, 0], probability[:, 0])


def test_calibration_error_and_brier_score_by_hand():
    """Two bins: one with 0.1 and 0.15 of which one is of class 1, one with 0.9 and 1.0, both of class 1."""
    y = np.array([[1.0, np.nan], [0, np.nan], [1, np.nan], [1, np.nan], [np.nan, np.nan]])
    probability = np.tile(column(0.1, 0.15, 0.9, 1.0, 0.5), 2)
    np.testing.assert_allclose(calibration_error(y, probability), [(0.75 + 0.1) / 4, np.nan])
    np.testing.assert_allclose(brier_score(y, probability), [(0.81 + 0.0225 + 0.01 + 0) / 4, np.nan])


def test_classes_that_are_parted_perfectly_do_not_become_certain():
    found = fit_calibration(column(0, 0, 1, 1), column(0.0, 0.1, 0.9, 1.0))
    calibrated = found(column(0.0, 0.5, 1.0))[:, 0]
    assert 0.01 < calibrated[0] < 0.3 and calibrated[1] == pytest.approx(0.5) and 0.7 < calibrated[2] < 0.99


def test_a_target_ranked_against_its_labels_is_shifted_to_their_mean():
    """Platt's targets are 2/3 for one label of 1, and 1/5 for three labels of 0."""
    probability = column(0.5, 0.9, 0.9, 0.9)
    found = fit_calibration(column(1, 0, 0, 0), probability)
    assert found.slope.tolist() == [1]
    assert found(probability).mean() == pytest.approx((2 / 3 + 3 / 5) / 4)


@pytest.mark.parametrize("y", [column(1, 1, 1), column(0, 0, 0), column(np.nan, np.nan, np.nan)], ids=str)
def test_targets_that_cannot_be_calibrated_stay_as_they_are(y):
    """Of one class, without labels."""
    found = fit_calibration(y, column(0.1, 0.5, 0.9))
    assert (found.slope.tolist(), found.intercept.tolist()) == ([1], [0])
    np.testing.assert_allclose(found(column(0.25)), column(0.25))


def test_a_class_is_in_a_set_unless_it_is_less_probable_than_of_its_own_molecules():
    """Of class 1: four molecules, so four of five places are at or below 0.6, one at or below 0.1."""
    y, probability = column(1, 1, 1, 1, 0, 0, 0, 0), column(0.2, 0.4, 0.6, 0.8, 0.1, 0.1, 0.1, 0.1)
    sets = fit_class_sets(y, probability, exclude_each_other=False)
    held = sets.holds(column(0.6, 0.1, 0.95), 0.6)[:, 0]
    np.testing.assert_array_equal(held[:, 1], [True, False, True])  # 4 / 5, 1 / 5 and 5 / 5, against 0.4
    np.testing.assert_array_equal(held[:, 0], [False, True, False])  # 1 / 5, 5 / 5 and 1 / 5
    assert sets.texts(0, column(0.1, 0.95, np.nan), 0.6, ("no", "yes")) == ["no", "yes", ""]


@pytest.mark.parametrize(
    ("ones", "zeros", "probability", "confidence", "said"),
    [
        (1, 3, 0.001, 0.5, "0"),  # 1 / 2 is not above 0.5
        (1, 3, 0.001, 0.9, "0; 1"),  # as a class of few molecules is in every set
        (9, 1, 0.01, 0.9, "0"),  # one of ten is not above 1 - 0.9, a little less than 0.1 in floating-point numbers
    ],
)
def test_a_class_of_few_molecules(ones, zeros, probability, confidence, said):
    y, known = column(*[1] * ones, *[0] * zeros), column(*[0.9] * ones, *[0.1] * zeros)
    sets = fit_class_sets(y, known, exclude_each_other=False)
    assert sets.texts(0, column(probability), confidence, ("0", "1")) == [said]


def test_the_most_probable_class_is_in_every_set():
    """Of class 1 one of 11 places is at or below 0.4, of class 0 one of 51 at or below 0.6; then one and all."""
    y, probability = column(*[0] * 50, *[1] * 10), column(*[0.01] * 50, *[0.99] * 10)
    sets = fit_class_sets(y, probability, exclude_each_other=False)
    np.testing.assert_array_equal(sets.holds(column(0.4), 0.5)[0, 0], [True, False])
    rare = fit_class_sets(y, np.where(y == 1, 0.05, probability), exclude_each_other=False)
    np.testing.assert_array_equal(rare.holds(column(0.05), 0.5)[0, 0], [True, True])


def test_classes_of_one_column_are_one_group():
    y, probability = np.eye(3)[[0, 1, 2] * 20], np.tile([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]], (20, 1))
    sets = fit_class_sets(y, probability, exclude_each_other=True)
    assert sets.scores.shape == (60, 1, 3) and sets.fits(3) and not sets.fits(2)
    asked = np.array([[0.05, 0.15, 0.8], [0.7, 0.7, 0.1]])
    assert sets.texts(0, asked, 0.9, ("a", "b", "c")) == ["c", "a; b"]


def test_sets_hold_the_class_as_often_as_they_promise():
    """Of molecules of each class, though one of ten is of class 1."""
    rng = np.random.default_rng(0)
    y = (rng.random((4000, 1)) < 0.1).astype(float)
    probability = 1 / (1 + np.exp(-(rng.normal(size=y.shape) + 2 * y - 2)))
    sets = fit_class_sets(y[:2000], probability[:2000], exclude_each_other=False)
    held = sets.holds(probability[2000:], 0.8)[:, 0]
    for label in (0, 1):
        asked = y[2000:, 0] == label
        assert held[asked, label].mean() > 0.8 - 3 * np.sqrt(0.16 / asked.sum()) - 0.04
    assert held.all(axis=1).mean() < 0.3, "sets of both classes say nothing"


@pytest.mark.parametrize("confidence", [0, 1, -0.1, np.nan])
def test_a_confidence_that_is_none(confidence):
    with pytest.raises(InputError, match="choose one between 0 and 1"):
        ClassSets(np.full((1, 1, 2), 0.5)).holds(column(0.5), confidence)
