"""The forest: equal to scikit-learn's, as arrays in a file that damage cannot turn into something else."""

import numpy as np
import pytest
import rdkit
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from graphormer_sepnorm.chem.descriptors import NAMES, descriptors
from graphormer_sepnorm.chem.fingerprints import SIZE
from graphormer_sepnorm.data.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import load_arrays, save_arrays
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training import baseline
from graphormer_sepnorm.training.baseline import (
    Forest,
    blend_weight,
    fit_forest,
    forest_features,
    load_forest,
    save_forest,
    table_features,
)

TREES = 20


@pytest.fixture(scope="module")
def smiles() -> list[str]:
    return sample_table().smiles.tolist()[:150]


@pytest.fixture(scope="module")
def features(smiles) -> np.ndarray:
    return forest_features(smiles)


@pytest.fixture(scope="module")
def logp(features) -> np.ndarray:
    return features[:, [SIZE + NAMES.index("MolLogP"), SIZE + NAMES.index("TPSA")]].astype(np.float64)


@pytest.fixture
def forest(features, logp) -> Forest:
    return fit_forest(features[:100], logp[:100], "regression", 0, TREES)


def test_features_by_hand():
    row = forest_features(["CCO", "C[C", None, "OCC"])
    assert row.shape == (4, SIZE + len(NAMES)) and row.dtype == np.float32
    assert row[0, :SIZE].sum() == 6  # three atoms, and three environments of radius 1 around them
    assert row[0, SIZE + NAMES.index("HeavyAtomCount")] == 3
    assert np.isnan(row[1:3]).all() and np.isfinite(row[0]).all()
    np.testing.assert_array_equal(row[0], row[3])


def test_values_that_a_descriptor_does_not_have_count_as_zero():
    """RDKit has no partial charges for platinum."""
    partial_charge = NAMES.index("MaxPartialCharge")
    assert np.isnan(descriptors(["C[Pt]C"])[0, partial_charge])
    assert forest_features(["C[Pt]C"])[0, SIZE + partial_charge] == 0
    assert np.isfinite(forest_features(["C[Pt]C", "[Na+]", "[H][H]"])).all()


def test_features_of_a_table_are_those_of_its_molecules(smiles, features, tmp_path):
    for _ in range(2):
        np.testing.assert_array_equal(table_features(smiles[:20], tmp_path), features[:20])


def test_regression_predicts_what_scikit_learn_predicts(features, logp, forest):
    found = forest.predict(features[100:])
    assert found.shape == (50, 2) and found.dtype == np.float32
    for target in range(2):
        theirs = RandomForestRegressor(TREES, max_features=1 / 3, random_state=0, max_samples=100)
        expected = theirs.fit(features[:100], logp[:100, target]).predict(features[100:])
        np.testing.assert_allclose(found[:, target], expected, rtol=1e-6)


def test_missing_labels_cost_their_own_target_alone(features, logp):
    y = (logp > np.median(logp, axis=0)).astype(float)
    y[:40, 1] = np.nan
    found = fit_forest(features[:100], y[:100], "classification", 3, TREES).predict(features[100:])
    for target, first in ((0, 0), (1, 40)):
        theirs = RandomForestClassifier(TREES, random_state=3, max_samples=100 - first)
        theirs.fit(features[first:100], y[first:100, target])
        expected = theirs.predict_proba(features[100:])[:, 1]
        np.testing.assert_allclose(found[:, target], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("steps", range(4))
def test_values_at_a_threshold_go_where_scikit_learn_sends_them(steps):
    """Neighbouring float32: the threshold between them is no float32."""
    low = np.float32(1000) + steps * np.spacing(np.float32(1000))
    x = np.full((40, 3), low)
    x[20:] = np.nextafter(low, np.float32(2000))
    y = np.repeat([[0.0], [1.0]], 20, axis=0)
    theirs = RandomForestRegressor(TREES, max_features=1 / 3, random_state=0).fit(x, y[:, 0])
    found = fit_forest(x, y, "regression", 0, TREES).predict(x)
    np.testing.assert_allclose(found[:, 0], theirs.predict(x), rtol=1e-6)
    assert (found[20:] > found[:20]).all()


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_class_is_predicted_for_sure(features, label):
    found = fit_forest(features, np.full((len(features), 1), label), "classification", 0, 3)
    assert np.unique(found.predict(features)).tolist() == [label]


def test_what_cannot_be_read_has_no_prediction_and_is_not_learnt_from(features, logp, forest):
    broken = np.full((1, features.shape[1]), np.nan, np.float32)
    with_it = np.concatenate([broken, features[:100]])
    other = fit_forest(with_it, np.concatenate([[[9.0, 9]], logp[:100]]), "regression", 0, TREES)
    found = other.predict(np.concatenate([features[100:], broken]))
    np.testing.assert_array_equal(found[:-1], forest.predict(features[100:]))
    assert np.isnan(found[-1]).all()


def test_a_target_without_labels_is_refused(features):
    with pytest.raises(InputError, match="no labels"):
        fit_forest(features, np.full((len(features), 1), np.nan), "regression", 0, 1)


def test_blocks_of_molecules_do_not_matter(features, forest, monkeypatch):
    expected = forest.predict(features)
    monkeypatch.setattr(baseline, "STEPS_AT_ONCE", 3 * len(forest.roots))
    np.testing.assert_array_equal(forest.predict(features), expected)


def test_the_seed_decides(features, logp, forest):
    again, other = (fit_forest(features[:100], logp[:100], "regression", seed, TREES) for seed in (0, 1))
    np.testing.assert_array_equal(again.predict(features), forest.predict(features))
    assert (other.predict(features) != forest.predict(features)).any()


def test_a_kept_forest_predicts_the_same(features, forest, tmp_path):
    save_forest(tmp_path / "a", forest)
    save_forest(tmp_path / "b", load_forest(tmp_path / "a"))
    loaded = load_forest(tmp_path / "b")
    np.testing.assert_array_equal(loaded.predict(features), forest.predict(features))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert loaded.targets == 2 and loaded.release == rdkit.__version__


def test_a_damaged_forest_is_refused(forest, tmp_path):
    path = tmp_path / "forest.safetensors"
    save_forest(path, forest)
    whole, random = path.read_bytes(), np.random.default_rng(0)
    for place in random.integers(0, len(whole), 50):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(random.integers(8))
        path.write_bytes(changed)
        with pytest.raises(InputError):
            load_forest(path)
    path.write_bytes(whole[:-1])
    with pytest.raises(InputError):
        load_forest(path)
    with pytest.raises(InputError, match="does not exist"):
        load_forest(tmp_path / "nothing")


INNER = 0  # the root of the first tree


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("right", 0),
        ("right", 1),
        ("right", -1),
        ("right", 10**9),
        ("feature", -2),
        ("feature", 10_000),
        ("number", np.nan),
        ("roots", 1),
    ],
)
def test_nodes_that_are_no_trees_are_refused_however_they_came_there(forest, tmp_path, name, value):
    path = tmp_path / "forest.safetensors"
    save_forest(path, forest)
    arrays, facts = load_arrays(path)
    arrays[name][INNER] = value
    save_arrays(path, arrays, facts)
    with pytest.raises(InputError, match="not those of trees"):
        load_forest(path)


@pytest.mark.parametrize("facts", [{"targets": 3}, {"targets": 0}, {"targets": "2"}, {"format": 2}])
def test_facts_that_do_not_fit_are_refused(forest, tmp_path, facts):
    path = tmp_path / "forest.safetensors"
    save_forest(path, forest)
    arrays, known = load_arrays(path)
    save_arrays(path, arrays, {**known, **facts})
    with pytest.raises(InputError):
        load_forest(path)


def test_the_weight_of_a_blend_by_hand():
    y = np.array([[0.0], [1.0], [2.0]])
    rmse = METRICS["rmse"]
    assert blend_weight(y, y, y + 1, rmse) == 0
    assert blend_weight(y, y + 1, y, rmse) == 1
    assert blend_weight(y, y + 1, y - 1, rmse) == 0.5
    assert blend_weight(y, y + 4, y - 1, rmse) == 0.8
    assert blend_weight(y, y + 1, y + 1, rmse) == 0.5


def test_the_weight_of_a_blend_follows_the_direction_of_the_metric():
    y = np.array([[0.0], [1.0], [0.0], [1.0]])
    good, bad = np.array([[0.1], [0.9], [0.2], [0.8]]), np.array([[0.9], [0.1], [0.8], [0.2]])
    assert blend_weight(y, good, bad, METRICS["logloss"]) == 0
    assert blend_weight(y, bad, good, METRICS["accuracy"]) > 0.5
