"""How large errors are expected to be."""

import numpy as np

from graphormer_sepnorm.table_model.difficulty import (
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
    difficulty = Difficulty(np.array([[1.0], [2.0], [4.0], [8.0]]), np.array([[0.5], [np.nan], [1.5]]))
    similarity = np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 0.5]])
    found = difficulty(np.array([[3.0], [0.0]]), similarity)
    np.testing.assert_allclose(found, [[1 + 6 + 0 + 8 * 1.0], [1 + 0 + 0 + 8 * 1.5]], rtol=1e-6)
    np.testing.assert_allclose(difficulty(np.array([[3.0]]), np.zeros((1, 0))), [[7.0]])


def test_what_tells_errors_is_found():
    """Errors are normal with a deviation that follows the disagreement."""
    random = np.random.default_rng(0)
    spread = random.uniform(0.5, 2, (4000, 1))
    error = random.normal(size=(4000, 1)) * 3 * spread
    difficulty = fit_difficulty(error, spread, np.zeros((4000, 0)), np.arange(4000))
    np.testing.assert_allclose(difficulty.coefficients[:, 0], [0, 3, 0, 0], atol=0.25)
    np.testing.assert_allclose(difficulty(spread, np.zeros((4000, 0))), 3 * spread, rtol=0.1)


def test_errors_of_neighbours_tell_where_predictions_are_wrong():
    """Two clusters, in one of which errors are ten times as large."""
    random = np.random.default_rng(0)
    wide = np.arange(200) < 100
    similarity = np.where(wide[:, None] == wide, 0.8, 0.1)
    error = (random.normal(size=200) * np.where(wide, 10.0, 1.0))[:, None]
    numbers = np.arange(0, 200, 2)
    similarity = of_other_folds(similarity[:, numbers], Folds(np.arange(200) % 4), numbers)
    found = fit_difficulty(error, np.zeros((200, 1)), similarity, numbers)(np.zeros((200, 1)), similarity)
    assert found[wide].min() > 3 * found[~wide].max()


def test_targets_without_labels_have_no_expected_error():
    error = np.array([[1.0, np.nan], [np.nan, np.nan], [1.0, np.nan], [1.0, np.nan]])
    found = fit_difficulty(error, np.zeros((4, 2)), np.zeros((4, 0)), np.arange(4))
    np.testing.assert_allclose(found.coefficients[0], [DEVIATION, 0])


def test_molecules_of_its_own_fold_tell_nothing_of_a_molecule():
    folds = Folds(np.array([0, 0, 1]))
    assert of_other_folds(np.ones((3, 3)), folds, np.arange(3)).tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    assert of_other_folds(np.ones((3, 2)), folds, np.array([0, 2])).tolist() == [[0, 1], [0, 1], [1, 0]]
    assert of_other_folds(np.ones((3, 0)), folds, np.arange(3)).shape == (3, 0)
