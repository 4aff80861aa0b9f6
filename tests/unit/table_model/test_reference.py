"""The training molecules as others are compared with them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.preprocessing import QuantileTransformer

from graphormer_sepnorm.chem.fingerprints import KINDS, SIZE, count_fingerprints
from graphormer_sepnorm.table_model import features
from graphormer_sepnorm.table_model import reference as module
from graphormer_sepnorm.table_model.features import Counts, GraphsOf, MoleculeFeatures, descriptor_values, looks
from graphormer_sepnorm.table_model.reference import (
    BODY,
    SHARES,
    CountIndex,
    Encoder,
    NormalScores,
    Reference,
    gaussian,
    median_distance,
)


@pytest.fixture(scope="module")
def reference(molecules) -> Reference:
    return Reference.of(molecules, Encoder.named(BODY))


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
    squares = ((reference.space.embeddings[:, None] - reference.space.embeddings) ** 2).sum(axis=2)
    median = np.median(squares[np.triu_indices(len(molecules), 1)])
    np.testing.assert_allclose(found[:, 2], np.exp(-squares / (2 * 0.7**2 * median)), atol=0.01)


def test_molecules_that_are_all_the_same_can_be_compared():
    """No descriptor varies, and no distance gives a width."""
    same = MoleculeFeatures(["NCC(=O)Nc1ccc(O)cc1"] * 3)
    reference = Reference.of(same, Encoder.named(BODY))
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


def test_what_does_not_fit_together_is_seen():
    scores = NormalScores.of(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert scores.fits(2) and not scores.fits(1)
    assert not replace(scores, quantiles=scores.quantiles[::-1]).fits(2)
    assert not replace(scores, quantiles=scores.quantiles[:, :1]).fits(2)
    assert not replace(scores, columns=-scores.columns - 1).fits(2)


def counts(*rows: list[float]) -> csr_array:
    return csr_array(np.array(rows, np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("crowded", [0.0, 0.5, 1.0])
@given(seed=st.integers(0, 1000))
def test_minmax_is_what_it_says(crowded, seed):
    """Of places that few or many have, kept apart or not."""
    random = np.random.default_rng(seed)
    first, second = (np.log1p(random.poisson(0.5, (rows, 3, 20))).astype(np.float32) for rows in (4, 6))
    low = np.minimum(first[:, None], second).sum(axis=3)
    high = np.maximum(first[:, None], second).sum(axis=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CROWDED", crowded)
        patch.setattr(module, "ROWS_AT_ONCE", 3)
        found = CountIndex.of(csr_array(second.reshape(6, 60)), 3).similarity(csr_array(first.reshape(4, 60)))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, (low / np.maximum(high, 1e-6)).mean(axis=2), rtol=1e-5)


def test_gaussian_by_hand():
    points = np.array([[0.0, 0.0], [3.0, 4.0]], np.float32)
    np.testing.assert_allclose(gaussian(points, points, 5.0), [[1, np.exp(-0.5)], [np.exp(-0.5), 1]], rtol=1e-6)
    assert gaussian(points, points, 5.0).dtype == np.float32


@pytest.mark.slow
def test_a_table_is_read_alike_in_one_process_and_in_several(smiles, monkeypatch):
    whole = MoleculeFeatures(smiles[:40])
    whole.read("mol-without-salts")
    monkeypatch.setattr(features, "CHUNK", 10)
    parts = MoleculeFeatures(smiles[:40])
    parts.read("mol")
    graphs = GraphsOf("mol")
    for found in (parts, MoleculeFeatures(smiles[:40])):
        np.testing.assert_array_equal(found.of(Counts()).toarray(), whole.of(Counts()).toarray())
        np.testing.assert_array_equal(found.of(descriptor_values), whole.of(descriptor_values))
        np.testing.assert_array_equal(found.of(graphs).x, whole.of(graphs).x)
        np.testing.assert_array_equal(found.of(graphs).edge_index, whole.of(graphs).edge_index)
        assert [look.traits for look in found.of(looks)] == [look.traits for look in whole.of(looks)]
    some = whole.take(np.array([3, 1]))
    assert len(some.of(graphs)) == 2 and some.of(looks)[1].traits == whole.of(looks)[1].traits
