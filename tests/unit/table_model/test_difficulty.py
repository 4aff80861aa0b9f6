"""How large errors are expected to be."""

from dataclasses import replace

import numpy as np

from graphormer_sepnorm.table_model.difficulty import (
    BACKGROUND,
    CALIBRATED,
    DEVIATION,
    Difficulty,
    disagreement,
    fit_difficulty,
    of_other_folds,
)
from graphormer_sepnorm.table_model.labels import Folds


def test_disagreement_by_hand():
    predictions = np.array([[[1.0]], [[5.0]], [[np.nan]]])
    found = disagreement(predictions, np.array([[0.75], [0.25], [0.0]]), np.array([[2.0]]))
    np.testing.assert_allclose(found, [[np.sqrt(0.75 * 1 + 0.25 * 9)]])


def test_the_expected_error_by_hand():
    """Of the neighbours one with similarity 1 decides, as its eighth power does."""
    difficulty = Difficulty(
        np.array([[np.log(2.0)], [1.0], [0.5], [1.0]]), np.array([[0.5], [np.nan], [1.5]]), np.array([[0.0], [np.inf]])
    )
    similarity = np.array([[1.0, 1.0, 0.0], [0.0, 0.9, 0.9]])
    near = [(0.5 + BACKGROUND) / (1 + BACKGROUND), (0.9**8 * 1.5 + BACKGROUND) / (0.9**8 + BACKGROUND)]
    expected = 2 * np.array([3.03, 1.03]) * np.sqrt([0.001, 0.101]) * (np.array(near) + 0.03)
    found = difficulty(np.array([[3.0], [1.0]]), similarity)
    np.testing.assert_allclose(found[:, 0], DEVIATION * expected, rtol=1e-6)
    np.testing.assert_allclose(difficulty(np.array([[3.0]]), np.zeros((1, 0))), [[DEVIATION * 2 * 3.03]])


def test_what_tells_errors_is_found():
    """Errors are normal with a deviation that follows the disagreement."""
    random = np.random.default_rng(0)
    spread = random.uniform(0.5, 2, (4000, 1))
    error = random.normal(size=(4000, 1)) * 3 * spread
    difficulty = fit_difficulty(error, spread, np.zeros((4000, 0)), np.arange(4000))
    np.testing.assert_allclose(difficulty.coefficients[1:, 0], [1, 0, 0], atol=0.1)
    expected = 3 * spread.clip(*np.quantile(spread, CALIBRATED))
    np.testing.assert_allclose(difficulty(spread, np.zeros((4000, 0))), expected, rtol=0.1)


def test_without_signs_the_mean_error_is_expected_and_without_labels_none():
    error = np.array([[1.0, np.nan], [np.nan, np.nan], [2.0, np.nan], [3.0, np.nan]])
    found = fit_difficulty(error, np.zeros((4, 2)), np.zeros((4, 0)), np.arange(4))
    expected = found(np.zeros((5, 2)), np.zeros((5, 0)))
    np.testing.assert_allclose(expected, np.tile([2 * DEVIATION, 0], (5, 1)), atol=1e-9)


def test_no_expected_error_is_outside_the_range_that_they_had_out_of_fold():
    """The quantiles of the molecules with a label; the second target has few."""
    random = np.random.default_rng(0)
    spread, unknown = random.uniform(0.1, 2, (300, 2)), np.zeros((2, 0))
    error = random.normal(size=(300, 2)) * [1, 5] * spread
    error[100:, 1] = np.nan
    limited = fit_difficulty(error, spread, np.zeros((300, 0)), np.arange(300))
    free = replace(limited, limits=np.array([[0.0, 0], [np.inf, np.inf]]))
    calibrated = free(spread, np.zeros((300, 0)))
    for target, count in enumerate([300, 100]):
        expected = np.quantile(calibrated[:count, target], CALIBRATED)
        np.testing.assert_allclose(limited.limits[:, target], expected)
    asked = np.array([[0.0, 0.0], [100.0, 100.0]])
    assert (free(asked, unknown)[0] < limited.limits[0]).all() and (free(asked, unknown)[1] > limited.limits[1]).all()
    np.testing.assert_array_equal(limited(asked, unknown), limited.limits)


def test_molecules_of_its_own_fold_tell_nothing_of_a_molecule():
    folds = Folds(np.array([0, 0, 1]))
    assert of_other_folds(np.ones((3, 3)), folds, np.arange(3)).tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    assert of_other_folds(np.ones((3, 2)), folds, np.array([0, 2])).tolist() == [[0, 1], [0, 1], [1, 0]]
    assert of_other_folds(np.ones((3, 0)), folds, np.arange(3)).shape == (3, 0)
