"""Weights of members, by hand and by their properties."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.stacking import each_by_itself, make_folds, stacking_weights, weighted_mean
from tests.molecules import structures_of

NAN = np.nan
EQUAL = np.ones(2)
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
