"""The training molecules as others are compared with them."""

import numpy as np
import pytest

from graphormer_sepnorm.chem.count_fingerprints import KINDS, count_fingerprints
from graphormer_sepnorm.chem.fingerprints import SIZE
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.reference import (
    BODY,
    SHARES,
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
