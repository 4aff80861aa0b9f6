"""The training molecules as others are compared with them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import QuantileTransformer

from graphormer_sepnorm.chem.count_fingerprints import KINDS, count_fingerprints
from graphormer_sepnorm.chem.fingerprints import SIZE
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.reference import (
    BODY,
    SHARES,
    NormalScores,
    Reference,
    body_named,
    median_distance,
)


@pytest.fixture(scope="module")
def reference(molecules) -> Reference:
    return Reference.of(molecules, body_named(BODY))


def test_a_training_molecule_is_like_itself_and_less_like_others(reference, molecules):
    found = reference.similarities(molecules)
    assert found.shape == (len(molecules), 3, len(molecules))
    assert found.min() >= 0 and found.max() <= 1 + 1e-6
    for group in found.swapaxes(0, 1):
        np.testing.assert_allclose(np.diag(group), 1, atol=1e-4)
        np.testing.assert_allclose(group, group.T, atol=1e-5)
    np.testing.assert_allclose(reference.similarity(molecules), np.einsum("mgn,g->mn", found, SHARES), rtol=1e-5)


def test_they_are_the_formulas(reference, molecules):
    found = reference.similarities(molecules)
    logs = np.log1p(count_fingerprints(molecules.molecules).toarray().reshape(len(molecules), len(KINDS), SIZE))
    logs[:, -1] = np.expm1(logs[:, -1])
    first, second = logs[3], logs[8]
    expected = np.mean(np.minimum(first, second).sum(axis=1) / np.maximum(first, second).sum(axis=1))
    assert found[3, 0, 8] == pytest.approx(expected, rel=1e-4)
    squares = ((reference.embeddings[:, None] - reference.embeddings) ** 2).sum(axis=2)
    median = np.median(squares[np.triu_indices(len(molecules), 1)])
    np.testing.assert_allclose(found[:, 2], np.exp(-squares / (2 * 0.7**2 * median)), atol=0.01)


def test_molecules_that_are_all_the_same_can_be_compared():
    """No descriptor varies, and no distance gives a width."""
    same = MoleculeFeatures(["NCC(=O)Nc1ccc(O)cc1"] * 3)
    reference = Reference.of(same, body_named(BODY))
    assert reference.described.shape == (3, 0)
    np.testing.assert_allclose(reference.similarities(same), 1, atol=1e-5)
    assert np.isfinite(reference.similarities(MoleculeFeatures(["c1ccccc1"]))).all()


def test_the_median_distance_by_hand():
    assert median_distance(np.array([[0.0], [1.0], [5.0]])) == 4
    assert median_distance(np.zeros((3, 2))) == 1
    assert median_distance(np.zeros((3, 0))) == 1


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
