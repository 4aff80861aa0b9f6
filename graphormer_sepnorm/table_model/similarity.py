"""Similarities of molecules: of count fingerprints, and by distances between numeric features.

Axis letters: M and N molecules, K kinds of fingerprints, P positions of all of them, C dense positions, F features."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array, csr_array

from graphormer_sepnorm.system.compiling import compiled

CROWDED = 1 / 16  # share of molecules with a nonzero value above which a position is stored densely
ROWS_AT_ONCE = 64
LEAST = np.float32(1e-6)  # smallest divisor


@compiled
def add_shared(indptr, places, values, indptr_t, molecules, others, where, crowded, size, shared):
    """Adds sums of elementwise minima of rows and the molecules of an index to ``shared`` [M, K, N]."""
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
    """Index of reference molecules by their values in several kinds of count fingerprints."""

    columns: csc_array  # float32 [N, P], values stored by position
    totals: np.ndarray  # float32 [K, N], sums over the positions of each kind
    where: np.ndarray  # int64 [P], the row in ``crowded`` of a dense position, -1 for the others
    crowded: np.ndarray  # float32 [C, N], the values at the dense positions

    @classmethod
    def of(cls, values: csr_array, kinds: int) -> "CountIndex":
        """The index of values [N, P]; all kinds have the same number of positions."""
        columns, size = csc_array(values), values.shape[1] // kinds
        parts = [columns[:, kind * size : (kind + 1) * size].sum(axis=1, dtype=np.float32) for kind in range(kinds)]
        many = np.flatnonzero(np.diff(columns.indptr) > CROWDED * values.shape[0])
        where = np.full(values.shape[1], -1)
        where[many] = np.arange(len(many))
        return cls(columns, np.stack(parts), where, np.ascontiguousarray(columns[:, many].toarray().T))

    def similarity(self, values: csr_array) -> np.ndarray:
        """Min-max similarity (Ralaivola et al., 2005) of values [M, P], averaged over kinds: float32 [M, N]."""
        found = np.empty((values.shape[0], self.columns.shape[0]), np.float32)
        kinds, size, columns = len(self.totals), values.shape[1] // len(self.totals), self.columns
        known = (columns.indptr, columns.indices, columns.data, self.where, self.crowded)
        for start in range(0, len(found), ROWS_AT_ONCE):
            rows = csr_array(values[start : start + ROWS_AT_ONCE])
            shared = np.zeros((rows.shape[0], *self.totals.shape), np.float32)
            add_shared(rows.indptr, rows.indices, rows.data, *known, size, shared)
            parts = [rows[:, kind * size : (kind + 1) * size].sum(axis=1, dtype=np.float32) for kind in range(kinds)]
            union = np.stack(parts, axis=1)[:, :, None] + self.totals - shared
            found[start : start + ROWS_AT_ONCE] = (shared / np.maximum(union, LEAST)).mean(axis=1)
        return found


def gaussian(first: np.ndarray, second: np.ndarray, width: float) -> np.ndarray:
    """exp(-d^2 / (2 width^2)) of Euclidean distances d: float32 [M, N]; arguments float32 [M, F] and [N, F]."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * (first @ second.T)
    return np.exp(-squares.clip(min=0) / (2 * width**2), dtype=np.float32)
