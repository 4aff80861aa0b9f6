"""Weights of members, by hand and by their properties."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.table_model import labels as module
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.stacking import (
    BACKGROUND,
    CALIBRATED,
    DEVIATION,
    Difficulty,
    Stacked,
    each_by_itself,
    fit_difficulty,
    make_folds,
    of_other_folds,
    stacking_weights,
    weighted_mean,
)
from tests.molecules import structures_of

NAN, INF, EQUAL = np.nan, np.inf, np.ones(2)
SMILES = ["Cc1ccccc1", "Clc1ccccc1", "Cc1ccncc1", "CC1CCNCC1", "CC1CCOCC1", "c1ccncc1C", "CCO", "OCC"]


def labels(y: np.ndarray, kind: str = "regression") -> Labels:
    metric = "mae" if kind == "regression" else "rocauc"
    return Labels(TaskConfig(kind, metric, tuple(f"y{place}" for place in range(y.shape[1]))), y)


def noisy(y: np.ndarray, *deviations: float) -> np.ndarray:
    """What members of independent errors with these standard deviations predict: [K, M, T]."""
    random = np.random.default_rng(0)
    return np.stack([y + deviation * random.normal(size=y.shape) for deviation in deviations])


def test_members_count_by_the_precision_of_their_errors():
    y = np.random.default_rng(1).normal(size=(20_000, 1))
    np.testing.assert_allclose(stacking_weights(labels(y), noisy(y, 1.0, 0.5), EQUAL)[:, 0], [0.2, 0.8], atol=0.02)


def test_targets_have_weights_of_their_own_and_missing_labels_do_not_count():
    y = np.random.default_rng(1).normal(size=(5000, 2))
    predictions = noisy(y, 1.0, 1.0)
    predictions[0, :, 0], predictions[1, :, 1] = y[:, 0], y[:, 1]
    y[:100] = NAN
    predictions[:, :100] = 1e9
    weights = stacking_weights(labels(y), predictions, EQUAL)
    assert weights[0, 0] > 0.95 and weights[1, 1] > 0.95
    np.testing.assert_allclose(weights.sum(axis=0), 1)


def test_sample_weights_count_in_relation_to_their_mean():
    """A molecule of weight 2 is as two molecules, and one of weight 0 is not there."""
    random = np.random.default_rng(0)
    y, found, prior = random.normal(size=(40, 1)), random.normal(size=(2, 40, 1)), np.array([0.7, 0.3])
    weight = np.repeat([2.0, 0.0], 20)
    weighted = stacking_weights(replace(labels(y), weight=weight), found, prior)
    twice = np.tile(np.arange(20), 2)
    np.testing.assert_allclose(weighted, stacking_weights(labels(y[twice]), found[:, twice], prior), rtol=1e-6)
    assert abs(weighted - stacking_weights(labels(y), found, prior)).max() > 0.01


def test_bounds_decide_between_members():
    """Of labels above 0 only that is known; one member predicts 0 for them, the other what they are."""
    y = np.random.default_rng(1).normal(size=(2000, 1))
    bounds = np.stack([np.where(y > 0, 0, -np.inf), np.full_like(y, np.inf)], axis=2)
    known = Labels(labels(y).task, np.where(y > 0, NAN, y), bounds)
    predictions = noisy(y, 0.5, 0.5)
    predictions[0][y > 0] = -1
    weights = [stacking_weights(each, predictions, EQUAL)[1, 0] for each in (replace(known, bounds=None), known)]
    assert weights[0] == pytest.approx(0.5, abs=0.05) and weights[1] > 0.8


def test_without_anything_to_compare_members_weigh_as_expected():
    unlabelled, perfect = np.full((3, 1), NAN), np.zeros((3, 1))
    assert stacking_weights(labels(unlabelled), np.zeros((2, 3, 1)), EQUAL).tolist() == [[0.5], [0.5]]
    assert stacking_weights(labels(perfect), np.zeros((2, 3, 1)), np.array([6.0, 2.0])).tolist() == [[0.75], [0.25]]


def test_weights_of_few_molecules_are_near_the_prior():
    """Of four and of four thousand molecules on which members are equally good."""
    prior = np.array([0.9, 0.1])
    for count, expected in ((4, 0.9), (4000, 0.5)):
        y = np.random.default_rng(1).normal(size=(count, 1))
        found = stacking_weights(labels(y), noisy(y, 1.0, 1.0), prior)[0, 0]
        assert found == pytest.approx(expected, abs=0.1)


def test_classes_of_one_column_share_their_weights():
    y = np.eye(3)[np.random.default_rng(0).integers(0, 3, 300)]
    weights = stacking_weights(labels(y, "multiclass"), noisy(y, 0.1, 0.4), EQUAL)
    assert (weights == weights[:, :1]).all() and weights[0, 0] > weights[1, 0]


def test_others_take_the_weight_of_a_member_without_a_prediction():
    predictions = np.array([[[1.0], [NAN], [NAN]], [[3.0], [3.0], [NAN]]])
    found = weighted_mean(predictions, np.array([[0.75], [0.25]]))
    assert found[:2, 0].tolist() == [1.5, 3] and np.isnan(found[2, 0])
    assert np.isnan(weighted_mean(predictions, np.array([[1.0], [0.0]]))[1, 0])


def test_a_member_by_itself_predicts_classes_that_add_up_to_1():
    predictions = np.array([[[0.25, 0.25], [NAN, NAN]], [[0.9, 0.3], [0.5, 0.5]]])
    task = TaskConfig("multiclass", "rocauc", ("a", "b"))
    found = each_by_itself(task, predictions)
    np.testing.assert_allclose(found, [[[0.5, 0.5], [NAN, NAN]], [[0.75, 0.25], [0.5, 0.5]]])
    np.testing.assert_array_equal(each_by_itself(TaskConfig("regression", "mae", ("a", "b")), predictions), predictions)


def folds_of(smiles: list[str], split: str, y: np.ndarray | None = None, kind: str = "regression") -> list[int]:
    y = np.arange(len(smiles), dtype=float)[:, None] if y is None else y
    return make_folds(structures_of(smiles), labels(y, kind), split, 0).numbers.tolist()


def test_folds_hold_together_what_the_split_does():
    by_scaffold, by_time = folds_of(SMILES, "scaffold"), folds_of(SMILES, "time")
    assert by_scaffold[0] == by_scaffold[1] and by_scaffold[2] == by_scaffold[5]
    assert by_time[6] == by_time[7] and len(set(by_time)) == 5


def test_small_tables_have_fewer_folds():
    assert set(folds_of(["CCO", "CCN", "CCN"], "random")) == {0, 1}
    assert set(folds_of(["Cc1ccccc1", "Clc1ccccc1", "Brc1ccccc1"], "scaffold")) == {0, 1, 2}, "of one scaffold"
    with pytest.raises(InputError, match="folds cannot be made"):
        folds_of(["CCO", "OCC"], "random")


def test_folds_have_their_share_of_each_class():
    smiles = ["C" * n for n in range(1, 21)]
    y = np.repeat([[1.0], [0.0]], 10, axis=0)
    numbers = np.array(folds_of(smiles, "random", y, "classification"))
    assert [y[numbers == fold].sum() for fold in range(5)] == [2] * 5


def test_disagreement_by_hand():
    predictions = np.array([[[1.0]], [[5.0]], [[np.nan]]])
    found = Stacked.of(TaskConfig("regression", "mae", ("a",)), predictions, np.array([[0.75], [0.25], [0.0]]))
    np.testing.assert_allclose(found.spread, [[np.sqrt(0.75 * 1 + 0.25 * 9)]])


def test_the_expected_error_by_hand():
    """Of the neighbours one with similarity 1 decides, as its eighth power does."""
    coefficients, errors = np.array([[np.log(2.0)], [1.0], [0.5], [1.0]]), np.array([[0.5], [NAN], [1.5]])
    difficulty = Difficulty(coefficients, errors, np.array([[0.0], [INF]]))
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


def three_labels() -> Labels:
    y = np.array([[1.0, NAN], [NAN, NAN], [3.0, 4.0]])
    bounds = np.array([[[-INF, INF], [-INF, INF]], [[5.0, INF], [-INF, INF]], [[-INF, INF], [-INF, INF]]])
    return Labels(TaskConfig("regression", "mae", ("a", "b")), y, bounds, np.array([1.0, 2.0, 3.0]))


def test_bounds_have_expectations_and_sizes_of_errors(monkeypatch):
    """Above 5, a normal distribution around 5 of deviation 2 has its mean at 5 + 2 * 0.797885."""
    monkeypatch.setattr(module, "error_deviation", lambda y, bounds, values: np.full(2, 2.0))
    values = np.full((3, 2), 5.0)
    found, error = three_labels().expected(values), three_labels().error(values)
    np.testing.assert_allclose(found[:, 0], [1, 5 + 2 * 0.797885, 3], rtol=1e-6)
    np.testing.assert_allclose(error[:, 0], [-4, 2 * 0.797885, -2], rtol=1e-6)
    assert np.isnan(found[:2, 1]).all() and found[2, 1] == 4


def test_bounds_of_no_weight_do_not_count():
    whole = Labels(three_labels().task, three_labels().y, three_labels().bounds, np.array([1.0, 0.0, 1.0]))
    assert whole.bounded[1, 0] and not whole.counting().bounded.any()


def test_every_molecule_is_predicted_in_its_fold_and_learnt_from_in_the_others():
    folds = Folds(np.array([1, 0, 1, 2]))
    assert len(folds) == 3
    parts = [(learnt.tolist(), predicted.tolist()) for learnt, predicted in folds.parts()]
    assert parts == [([0, 2, 3], [1]), ([1, 3], [0, 2]), ([0, 1, 2], [3])]
