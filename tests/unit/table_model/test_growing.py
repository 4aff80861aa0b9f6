"""Forests: equal to scikit-learn's."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.table_model.growing import SHARE, fit_forest
from tests.forests import TREES


def test_regression_predicts_what_scikit_learn_predicts(features, logp, forest):
    found = forest.predict(features[100:])
    assert found.shape == (50, 2) and found.dtype == np.float32
    for target in range(2):
        columns = (features[:100] != 0).sum(axis=0) >= 3
        theirs = ExtraTreesRegressor(TREES, max_features=SHARE, random_state=0)
        expected = theirs.fit(features[:100, columns], logp[:100, target]).predict(features[100:, columns])
        np.testing.assert_allclose(found[:, target], expected, rtol=1e-6)


def test_missing_labels_cost_their_own_target_alone(features, logp):
    y = (logp > np.median(logp, axis=0)).astype(float)
    y[:40, 1] = np.nan
    found = fit_forest(features[:100], y[:100], "classification", 3, TREES).predict(features[100:])
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
    found = fit_forest(x, y, "regression", 0, TREES).predict(x)
    np.testing.assert_allclose(found[:, 0], theirs.predict(x), rtol=1e-6)
    assert (found[20:] > found[:20]).all()


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_class_is_predicted_for_sure(features, label):
    found = fit_forest(features, np.full((len(features), 1), label), "classification", 0, 3)
    assert np.unique(found.predict(features)).tolist() == [label]


def test_a_target_without_labels_is_refused(features):
    with pytest.raises(InputError, match="no exact labels"):
        fit_forest(features, np.full((len(features), 1), np.nan), "regression", 0, 1)


def test_trees_look_at_what_several_molecules_have():
    """Of the features the first is that of one molecule, the others of half of them."""
    x = np.zeros((40, 3), np.float32)
    x[0, 0], x[:20, 1], x[10:30, 2] = 9, 1, 1
    found = fit_forest(x, x[:, :2].sum(axis=1, keepdims=True), "regression", 0, TREES)
    assert set(found.feature.tolist()) == {-1, 1, 2}
    alone = fit_forest(x[:2], np.array([[0.0], [1.0]]), "regression", 0, TREES)
    assert np.isfinite(alone.predict(x)).all()


def test_the_seed_decides(features, logp, forest):
    again, other = (fit_forest(features[:100], logp[:100], "regression", seed, TREES) for seed in (0, 1))
    np.testing.assert_array_equal(again.predict(features), forest.predict(features))
    assert (other.predict(features) != forest.predict(features)).any()
