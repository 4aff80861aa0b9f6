import numpy as np
import pytest
from rdkit import Chem
from scipy.sparse import csc_matrix

from tests.examples import load_example


@pytest.fixture(scope="module")
def example():
    return load_example("fingerprints")


def test_counts_of_environments(example):
    """Argon is one environment; ethane two equal carbons and, from radius 1 on, one whole molecule."""
    counts = example.FINGERPRINTS["ECFP4"]
    assert sorted(counts(Chem.MolFromSmiles("[Ar]")))[-2:] == [0, 1]
    assert sorted(counts(Chem.MolFromSmiles("CC")))[-3:] == [0, 1, 2]
    assert counts(Chem.MolFromSmiles("C" * 400)).max() == 255


def test_mean_ranks_by_hand(example):
    first, second = np.array([0.1, 0.9, 0.5]), np.array([30.0, 20.0, 10.0])
    assert example.mean_rank([first, second]).tolist() == [2.0, 2.5, 1.5]


def test_similarity_by_hand(example):
    """Counts (1, 2) and (3, 1): smaller ones 1 + 1, larger ones 3 + 2. 9 and 5 count as 3, as 3 does."""
    counts = csc_matrix(np.array([[1, 2, 0], [3, 1, 0], [0, 0, 9], [0, 0, 5], [0, 0, 0]], np.float32))
    table, rows = example.at_least(counts), np.arange(5)
    alike = [[1, 0.4, 0, 0, 0], [0.4, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0]]
    np.testing.assert_allclose(example.similarity([table], rows, rows), alike, atol=1e-6)
    presence = csc_matrix((counts.toarray() > 0).astype(np.float32)).tocsr()
    both = example.similarity([table, presence], np.array([1, 3]), np.array([0, 2]))
    np.testing.assert_allclose(both, [[0.7, 0], [0, 1]], atol=1e-6)


def test_ridge_regression_by_hand(example):
    """Labels 0 and 2 are -1 and 1 about their mean; (1 + 1, 0.5; 0.5, 1 + 1) w = (-1, 1) has w = (-2/3, 2/3)."""
    kernel = np.array([[1, 0.5], [0.5, 1]], np.float32)
    np.testing.assert_allclose(example.ridge_regression(kernel, np.array([0, 2])), [-2 / 3, 2 / 3], rtol=1e-6)
