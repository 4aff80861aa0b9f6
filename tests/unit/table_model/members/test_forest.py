"""The forest: what scikit-learn predicts, and a file that damage cannot turn into something else."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from graphormer_sepnorm.chem.descriptors import fast_descriptors
from graphormer_sepnorm.chem.fingerprints import SIZE, morgan_counts
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import load_arrays, save_arrays
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import foundation_config
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members import forest as forests
from graphormer_sepnorm.table_model.members.base import Fitted, ToFit
from graphormer_sepnorm.table_model.members.forest import FEATURES, SHARE, ForestMember, forest_features
from tests.forests import TREES, grown


@pytest.mark.slow
def test_regression_predicts_what_scikit_learn_predicts(features, logp, forest):
    found = forest.of_features(features[100:])
    assert found.shape == (50, 2) and found.dtype == np.float32
    for target in range(2):
        columns = (features[:100] != 0).sum(axis=0) >= 3
        theirs = ExtraTreesRegressor(TREES, max_features=SHARE, random_state=0)
        expected = theirs.fit(features[:100, columns], logp[:100, target]).predict(features[100:, columns])
        np.testing.assert_allclose(found[:, target], expected, rtol=1e-6)


@pytest.mark.slow
def test_missing_labels_cost_their_own_target_only(features, logp):
    y = (logp > np.median(logp, axis=0)).astype(float)
    y[:40, 1] = np.nan
    found = grown(features[:100], y[:100], "classification", 3).of_features(features[100:])
    for target, first in ((0, 0), (1, 40)):
        columns = (features[first:100] != 0).sum(axis=0) >= 3
        theirs = ExtraTreesClassifier(TREES, max_features=SHARE, random_state=3)
        theirs.fit(features[first:100, columns], y[first:100, target])
        expected = theirs.predict_proba(features[100:, columns])[:, 1]
        np.testing.assert_allclose(found[:, target], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("steps", range(4))
def test_values_at_a_threshold_go_where_scikit_learn_sends_them(steps):
    """Neighbouring float32: the threshold between them is no float32."""
    low = np.float32(1000) + steps * np.spacing(np.float32(1000))
    x = np.full((40, 3), low)
    x[20:] = np.nextafter(low, np.float32(2000))
    y = np.repeat([[0.0], [1.0]], 20, axis=0)
    theirs = ExtraTreesRegressor(TREES, max_features=SHARE, random_state=0).fit(x, y[:, 0])
    found = grown(x, y).of_features(x)
    np.testing.assert_allclose(found[:, 0], theirs.predict(x), rtol=1e-6)
    assert (found[20:] > found[:20]).all()


@pytest.mark.slow
def test_a_target_without_labels_is_refused(features):
    with pytest.raises(InputError, match="no exact labels"):
        grown(features, np.full((len(features), 1), np.nan))


def test_trees_look_at_what_several_molecules_have():
    """Of the features the first is that of one molecule, the others of half of them."""
    x = np.zeros((40, 3), np.float32)
    x[0, 0], x[:20, 1], x[10:30, 2] = 9, 1, 1
    assert set(grown(x, x[:, :2].sum(axis=1, keepdims=True)).feature.tolist()) == {-1, 1, 2}
    assert np.isfinite(grown(x[:2], np.array([[0.0], [1.0]])).of_features(x)).all()


def test_blocks_of_molecules_do_not_matter_and_nan_has_no_prediction(features, forest, monkeypatch):
    broken = np.full((1, features.shape[1]), np.nan, np.float32)
    expected = forest.of_features(features)
    monkeypatch.setattr(forests, "STEPS_AT_ONCE", 3 * len(forest.roots))
    found = forest.of_features(np.concatenate([features, broken]))
    np.testing.assert_array_equal(found[:-1], expected)
    assert np.isnan(found[-1]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("right", 0), ("right", 1), ("right", -1), ("right", 10**9), ("feature", -2), ("feature", 30_000),
        ("number", np.nan), ("roots", 1),
        ("targets", 3), ("targets", 0), ("targets", "2"), ("format", 2), ("kinds", ["torsions 2"]),
        ("descriptors", ["descriptors 9"]),
    ],
)  # fmt: skip
def test_nodes_and_facts_that_are_no_trees_are_refused(forest, tmp_path, name, value):
    forest.save(tmp_path)
    (path,) = ForestMember.files(tmp_path)
    arrays, facts = load_arrays(path)
    if name in arrays:
        arrays[name][0] = value  # of the root of the first tree
    else:
        facts[name] = value
    save_arrays(path, arrays, facts)
    with pytest.raises(InputError):
        ForestMember.load(tmp_path, {})


def test_a_fold_that_leaves_only_bounds_has_no_forest(to_fit):
    labels = Labels(TaskConfig("regression", "rmse", ("a",)), np.array([[1.0], [2], [np.nan], [np.nan]]))
    molecules = MoleculeFeatures(["CCO", "CCN", "CCC", "CCCC"])
    table = replace(to_fit, molecules=molecules, labels=labels, folds=Folds(np.array([0, 0, 1, 1])))
    found = ForestMember.fit(table)
    assert np.isnan(found.out_of_fold[:, 0]).tolist() == [True, True, False, False]


def test_features_are_counts_and_descriptors():
    found = forest_features(MoleculeFeatures(["CCO", "C[Pt]C"]))
    assert found.shape == (2, FEATURES) and found.dtype == np.float32 and np.isfinite(found).all()
    np.testing.assert_array_equal(found[0, :SIZE], morgan_counts(read_smiles("CCO")))
    np.testing.assert_array_equal(found[0, SIZE:], fast_descriptors(["CCO"])[0])


@pytest.mark.slow
def test_completed_labels_are_learnt():
    """A fold learns the values that the kernel gave to its bounds, and all rows those of all rows."""
    molecules = MoleculeFeatures(["C" * count for count in range(1, 13)])
    y = np.arange(12.0)[:, None]
    labels = Labels(TaskConfig("regression", "rmse", ("a",)), np.where(y > 5, np.nan, y))
    known = replace(labels, y=y)
    plain = ToFit(molecules, labels, Folds(np.arange(12) % 2), foundation_config(labels.task))
    kernel = Fitted(None, y, completed=(known, known, known))
    tables = replace(plain, fitted={"kernel": kernel}), replace(plain, labels=known), plain
    found, exact, without = map(ForestMember.fit, tables)
    np.testing.assert_array_equal(found.out_of_fold, exact.out_of_fold)
    np.testing.assert_array_equal(found.member.predict(molecules), exact.member.predict(molecules))
    assert found.member.predict(molecules).max() > 10 > 5 >= without.member.predict(molecules).max()
