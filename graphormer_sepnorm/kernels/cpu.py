"""Compiled CPU kernels for sums of embeddings, with their gradients. Importing it imports Numba.

The gradient of a table is summed over a fixed number of chunks of rows, then over the chunks in order, for any number
of threads.
"""

from functools import lru_cache

import numpy as np
from numba import carray
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from graphormer_sepnorm.kernels import simd
from graphormer_sepnorm.kernels.simd import LANES
from graphormer_sepnorm.kernels.threads import Loop, claim

_ROWS_PER_ITEM = 64
_CHUNKS = 8


@lru_cache
def _embedding_forward(width: int, index_type: np.dtype) -> Loop:
    def body(arguments):
        a = carray(arguments, 1)[0]
        index = carray(simd.void_pointer(a.index), (a.rows, a.columns), index_type)
        table, out = simd.pointer(a.table), simd.pointer(a.out)
        zero = simd.zeros(width)
        item = claim(arguments)
        while item < a.items:
            for row in range(item * _ROWS_PER_ITEM, min(a.rows, (item + 1) * _ROWS_PER_ITEM)):
                total = zero
                for column in range(a.columns):
                    entry = np.int64(index[row, column])
                    if entry < 0 or entry >= a.entries:
                        carray(simd.integers(a.invalid), 1)[0] = 1
                        entry = np.int64(0)
                    total = total + simd.load_span(zero, table, entry * width)
                simd.store_span(out, row * width, total)
            item = claim(arguments)

    return Loop(body, dict.fromkeys(("index", "table", "out", "invalid", "rows", "columns", "entries"), "q"))


@lru_cache
def _embedding_backward(width: int, index_type: np.dtype) -> Loop:
    padded = simd.padded(width)

    def body(arguments):
        a = carray(arguments, 1)[0]
        index = carray(simd.void_pointer(a.index), (a.rows, a.columns), index_type)
        zero = simd.zeros(width)
        item = claim(arguments)
        while item < a.items:
            partial = simd.shifted(simd.pointer(a.partial), item * a.entries * padded)
            for entry in range(a.entries):
                simd.store_rows(partial, entry * padded, LANES, zero)
            for row in range(a.rows * item // a.items, a.rows * (item + 1) // a.items):
                vectors = simd.load_span(zero, simd.pointer(a.gradient), row * width)
                for column in range(a.columns):
                    start = np.int64(index[row, column]) * padded
                    simd.store_rows(partial, start, LANES, simd.load_rows(zero, partial, start, LANES) + vectors)
            item = claim(arguments)

    return Loop(body, dict.fromkeys(("index", "gradient", "partial", "rows", "columns", "entries"), "q"))


def _numpy_type(index: Tensor) -> np.dtype:
    return np.dtype(str(index.dtype).removeprefix("torch."))


class _EmbeddingSum(Function):
    @staticmethod
    def forward(ctx, index, table):
        ctx.save_for_backward(index)
        (rows, columns), (ctx.entries, width) = index.shape, table.shape
        out, invalid = table.new_empty(rows, width), np.zeros(1, np.int64)
        arrays = (index, table, out, invalid.ctypes.data)
        _embedding_forward(width, _numpy_type(index))(-(-rows // _ROWS_PER_ITEM), *arrays, rows, columns, ctx.entries)
        if invalid[0]:
            raise IndexError(f"index must lie in 0 .. {ctx.entries - 1}, the rows of table")
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        (index,), width = ctx.saved_tensors, gradient.shape[1]
        partial = gradient.new_empty(_CHUNKS, ctx.entries, simd.padded(width))
        arrays = (index, gradient.contiguous(), partial)
        _embedding_backward(width, _numpy_type(index))(_CHUNKS, *arrays, *index.shape, ctx.entries)
        return None, partial.sum(0)[..., :width]  # over the chunks, in order


def embedding_sum(index: Tensor, table: Tensor) -> Tensor:
    """out[m] = sum over f of table[index[m, f]], [M, W]; index [M, F] of any integer type, table [V, W]."""
    return _EmbeddingSum.apply(index.contiguous(), table.contiguous())
