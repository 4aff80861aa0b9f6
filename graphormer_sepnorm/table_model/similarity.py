"""How similar molecules are: by counts of what occurs in them, and by distances between numbers.

Axis letters: M and N molecules, K kinds of fingerprints, P places of all of them, C crowded ones, F features.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array, csr_array

from graphormer_sepnorm.system.compiling import compiled

CROWDED = 1 / 16  # of the molecules have a value at a place whose values are kept for all of them
ROWS_AT_ONCE = 64
LEAST = np.float32(1e-6)  # in place of nothing that is divided by


@compiled
def add_shared(indptr, places, values, indptr_t, molecules, others, where, crowded, size, shared):
    """Adds the sums of the smaller of two values, of rows and of the molecules of an index, to ``shared`` [M, K, N].

    Args:
        indptr, places, values: of rows [M, P].
        indptr_t, molecules, others: of the ``columns`` of a ``CountIndex``.
        where, crowded: as in a ``CountIndex``.
        size: places of each kind.
        shared: float32.
    """
    for i in range(shared.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            place, value = places[k], values[k]
            row = shared[i, place // size]
            if where[place] >= 0:
                column = crowded[where[place]]
                for j in range(len(row)):
                    row[j] += column[j] if column[j] < value else value
            else:
                for entry in range(indptr_t[place], indptr_t[place + 1]):
                    row[molecules[entry]] += min(value, others[entry])


@dataclass(frozen=True)
class CountIndex:
    """Molecules by their values at the places of several kinds of fingerprints, to compare others with.

    Attributes:
        columns: float32 [N, P].
        totals: float32 [K, N], the sums over the places of a kind.
        where: int64 [P], the row in ``crowded`` of a place that many molecules have, -1 of others.
        crowded: float32 [C, N], the values at these places.
    """

    columns: csc_array
    totals: np.ndarray
    where: np.ndarray
    crowded: np.ndarray

    @classmethod
    def of(cls, values: csr_array, kinds: int) -> "CountIndex":
        """The index of values [N, P], of which each kind has as many places."""
        columns, size = csc_array(values), values.shape[1] // kinds
        parts = [columns[:, kind * size : (kind + 1) * size].sum(axis=1, dtype=np.float32) for kind in range(kinds)]
        many = np.flatnonzero(np.diff(columns.indptr) > CROWDED * values.shape[0])
        where = np.full(values.shape[1], -1)
        where[many] = np.arange(len(many))
        return cls(columns, np.stack(parts), where, np.ascontiguousarray(columns[:, many].toarray().T))

    def similarity(self, values: csr_array) -> np.ndarray:
        """The mean over kinds of the min-max similarity, also called count Tanimoto: float32 [M, N] from 0 to 1.

        The sum of the smaller values over that of the larger ones; 0 for two molecules without any.
        Source: Ralaivola et al., "Graph kernels for chemical informatics", Neural Networks 2005.

        Args:
            values: float32 [M, P], at least 0.
        """
        found = np.empty((values.shape[0], self.columns.shape[0]), np.float32)
        for start in range(0, len(found), ROWS_AT_ONCE):
            found[start : start + ROWS_AT_ONCE] = self.of_some(csr_array(values[start : start + ROWS_AT_ONCE]))
        return found

    def of_some(self, values: csr_array) -> np.ndarray:
        """As ``similarity``, of a few rows."""
        kinds, size = len(self.totals), values.shape[1] // len(self.totals)
        shared = np.zeros((values.shape[0], *self.totals.shape), np.float32)
        rows, columns = (values.indptr, values.indices, values.data), self.columns
        known = (columns.indptr, columns.indices, columns.data, self.where, self.crowded)
        add_shared(*rows, *known, size, shared)
        parts = [values[:, kind * size : (kind + 1) * size].sum(axis=1, dtype=np.float32) for kind in range(kinds)]
        union = np.stack(parts, axis=1)[:, :, None] + self.totals - shared
        return (shared / np.maximum(union, LEAST)).mean(axis=1)


def gaussian(first: np.ndarray, second: np.ndarray, width: float) -> np.ndarray:
    """exp(-d^2 / (2 width^2)) of Euclidean distances d: float32 [M, N]; arguments float32 [M, F] and [N, F]."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * (first @ second.T)
    return np.exp(-squares.clip(min=0) / (2 * width**2), dtype=np.float32)
