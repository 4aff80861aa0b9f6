"""Similarities by hand, and as slow and plain code has them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from graphormer_sepnorm.table_model import similarity
from graphormer_sepnorm.table_model.similarity import CountIndex, gaussian


def counts(*rows: list[float]) -> csr_array:
    return csr_array(np.array(rows, np.float32))


def test_minmax_by_hand():
    first = counts([1, 0, 3], [0, 0, 0])
    index = CountIndex.of(counts([2, 1, 1], [1, 0, 3], [0, 0, 0]), 1)
    np.testing.assert_allclose(index.similarity(first), [[2 / 6, 1, 0], [0, 0, 0]], rtol=1e-6)


@pytest.mark.parametrize("crowded", [0.0, 0.5, 1.0])
@given(seed=st.integers(0, 1000))
def test_minmax_is_what_it_says(crowded, seed):
    """Of places that few or many have, kept apart or not."""
    random = np.random.default_rng(seed)
    first, second = (np.log1p(random.poisson(0.5, (rows, 3, 20))).astype(np.float32) for rows in (4, 6))
    low = np.minimum(first[:, None], second).sum(axis=3)
    high = np.maximum(first[:, None], second).sum(axis=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "CROWDED", crowded)
        patch.setattr(similarity, "ROWS_AT_ONCE", 3)
        found = CountIndex.of(csr_array(second.reshape(6, 60)), 3).similarity(csr_array(first.reshape(4, 60)))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, (low / np.maximum(high, 1e-6)).mean(axis=2), rtol=1e-5)


def test_gaussian_by_hand():
    points = np.array([[0.0, 0.0], [3.0, 4.0]], np.float32)
    np.testing.assert_allclose(gaussian(points, points, 5.0), [[1, np.exp(-0.5)], [np.exp(-0.5), 1]], rtol=1e-6)
    assert gaussian(points, points, 5.0).dtype == np.float32
