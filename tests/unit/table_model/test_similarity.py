"""Similarities by hand, and as slow and plain code has them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from graphormer_sepnorm.table_model.similarity import gaussian, minmax


def test_minmax_by_hand():
    first = csr_array(np.array([[1, 0, 3], [0, 0, 0]], np.uint16))
    second = csr_array(np.array([[2, 1, 1], [1, 0, 3], [0, 0, 0]], np.uint16))
    np.testing.assert_allclose(minmax(first, second), [[2 / 6, 1, 0], [0, 0, 0]], rtol=1e-6)


@given(st.integers(0, 1000))
def test_minmax_is_what_it_says(seed):
    random = np.random.default_rng(seed)
    first, second = (random.poisson(0.5, (rows, 20)).astype(np.uint16) for rows in (4, 6))
    low = np.minimum(first[:, None], second).sum(axis=2)
    high = np.maximum(first[:, None], second).sum(axis=2)
    found = minmax(csr_array(first), csr_array(second))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, low / np.maximum(high, 1), rtol=1e-6)


def test_large_counts_do_not_overflow():
    largest = csr_array(np.full((1, 300), 65535, np.uint16))
    assert minmax(largest, largest).item() == 1


def test_gaussian_by_hand():
    points = np.array([[0.0, 0.0], [3.0, 4.0]], np.float32)
    np.testing.assert_allclose(gaussian(points, points, 5.0), [[1, np.exp(-0.5)], [np.exp(-0.5), 1]], rtol=1e-6)
    assert gaussian(points, points, 5.0).dtype == np.float32


def test_gaussian_of_nothing_known_is_not_known():
    assert np.isnan(gaussian(np.array([[np.nan]], np.float32), np.ones((2, 1), np.float32), 1.0)).all()
