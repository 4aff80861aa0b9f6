"""Calibrated probabilities, by hand and by what they promise."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

from graphormer_sepnorm.predict.classes import brier_score, calibration_error, fit_calibration


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float64)[:, None]


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
