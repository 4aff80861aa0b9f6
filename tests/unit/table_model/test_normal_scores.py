"""Features made normal, by hand and as scikit-learn makes them."""

from dataclasses import replace

import numpy as np
from sklearn.preprocessing import QuantileTransformer

from graphormer_sepnorm.table_model.reference import NormalScores

NAN = np.nan


def test_they_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    features = np.stack([random.normal(size=300), np.exp(random.normal(size=300))], axis=1).astype(np.float32)
    expected = QuantileTransformer(n_quantiles=300, output_distribution="normal").fit_transform(features)
    np.testing.assert_allclose(NormalScores.of(features)(features), expected.clip(-3, 3), atol=1e-5)


def test_the_middle_is_0_the_ends_are_3_and_what_does_not_vary_is_left_out():
    scores = NormalScores.of(np.array([[1.0, 7.0, NAN], [2.0, 7.0, NAN], [3.0, NAN, NAN]]))
    assert scores.columns.tolist() == [0]
    assert scores(np.array([[2.0, 0, 0], [1.0, 0, 0], [99.0, 0, 0], [NAN, 0, 0]]))[:, 0].tolist() == [0, -3, 3, 0]


def test_ties_are_in_the_middle_and_missing_features_do_not_count():
    column = np.array([[0.0], [1.0], [1.0], [1.0], [2.0], [NAN]])
    assert NormalScores.of(column)(np.array([[1.0]])).item() == 0


def test_without_features_or_molecules_there_is_nothing():
    assert NormalScores.of(np.full((20, 2), 5.0))(np.zeros((4, 2))).shape == (4, 0)
    assert len(NormalScores.of(np.zeros((0, 2))).columns) == 0
    assert len(NormalScores.of(np.array([[1.0]])).columns) == 0


def test_what_does_not_fit_together_is_seen():
    scores = NormalScores.of(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert scores.fits(2) and not scores.fits(1)
    assert not replace(scores, quantiles=scores.quantiles[::-1]).fits(2)
    assert not replace(scores, quantiles=scores.quantiles[:, :1]).fits(2)
    assert not replace(scores, columns=-scores.columns - 1).fits(2)
