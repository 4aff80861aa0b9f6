"""How similar molecules are: by counts of what occurs in them, and by distances between numbers.

Axis letters: M and N molecules, P places of a fingerprint, F features.
"""

import numpy as np
from scipy.sparse import csr_array

from graphormer_sepnorm.system.compiling import compiled


@compiled
def shared_counts(indptr, places, counts, other_indptr, other_places, other_counts, size, shared):
    """Sums of the smaller of two counts, of every pair of rows of two sparse arrays of ``size`` places: [M, N]."""
    row = np.zeros(size, np.int64)
    for i in range(shared.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            row[places[k]] = counts[k]
        for j in range(shared.shape[1]):
            total = 0
            for k in range(other_indptr[j], other_indptr[j + 1]):
                total += min(row[other_places[k]], np.int64(other_counts[k]))
            shared[i, j] = total
        for k in range(indptr[i], indptr[i + 1]):
            row[places[k]] = 0


def minmax(first: csr_array, second: csr_array) -> np.ndarray:
    """The min-max similarity of counts, also called count Tanimoto: float32 [M, N] from 0 to 1.

    The sum of the smaller counts over that of the larger ones; 0 for two molecules without counts.
    Source: Ralaivola et al., "Graph kernels for chemical informatics", Neural Networks 2005.

    Args:
        first: counts [M, P].
        second: counts [N, P].
    """
    shared = np.empty((first.shape[0], second.shape[0]), np.float32)
    shared_counts(
        first.indptr, first.indices, first.data, second.indptr, second.indices, second.data, first.shape[1], shared
    )
    total = first.sum(axis=1, dtype=np.float32)[:, None] + second.sum(axis=1, dtype=np.float32)
    return shared / np.maximum(total - shared, 1)


def gaussian(first: np.ndarray, second: np.ndarray, width: float) -> np.ndarray:
    """exp(-d^2 / (2 width^2)) of Euclidean distances d: float32 [M, N]; arguments float32 [M, F] and [N, F]."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * (first @ second.T)
    return np.exp(-squares.clip(min=0) / (2 * width**2), dtype=np.float32)
