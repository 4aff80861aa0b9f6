"""Fused row-wise operations on the CPU, with their gradients.

Rows are shared out among the threads in blocks. Gradients of a table or of a vector are summed in a fixed number of
chunks of the rows, and the chunks in order, so that no result depends on the number of threads.
"""

import math
from functools import lru_cache

import numpy as np
import torch
from numba import carray, njit
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from graphormer_sepnorm.kernels import simd
from graphormer_sepnorm.kernels.simd import LANES
from graphormer_sepnorm.kernels.threads import Loop, check_tensor, claim

_ROWS_PER_ITEM = 64
_CHUNKS = 8


def _chunk_sum(partial: Tensor, width: int) -> Tensor:
    """Sum over the chunks of partial [chunks, ..., padded width], chunk after chunk: [..., width]."""
    return partial.sum(0)[..., :width]


@lru_cache
def _embedding_forward(width: int, index_type: np.dtype) -> Loop:
    def body(arguments):
        a = carray(arguments, 1)[0]
        index = carray(simd.void_pointer(a.index), (a.rows, a.columns), index_type)
        table, out = simd.pointer(a.table), simd.pointer(a.out)
        zero = simd.zero_span(width)
        while True:
            item = claim(arguments)
            if item >= a.items:
                break
            for row in range(item * _ROWS_PER_ITEM, min(a.rows, (item + 1) * _ROWS_PER_ITEM)):
                total = zero
                for column in range(a.columns):
                    entry = np.int64(index[row, column])
                    if entry < 0 or entry >= a.entries:
                        carray(simd.integers(a.invalid), 1)[0] = 1
                        entry = np.int64(0)
                    total = total + simd.load_span(zero, table, entry * width)
                simd.store_span(out, row * width, total)

    return Loop(body, dict.fromkeys(("index", "table", "out", "invalid", "rows", "columns", "entries"), "q"))


@lru_cache
def _embedding_backward(width: int, index_type: np.dtype) -> Loop:
    padded = simd.padded(width)

    def body(arguments):
        a = carray(arguments, 1)[0]
        index = carray(simd.void_pointer(a.index), (a.rows, a.columns), index_type)
        zero = simd.zero_span(width)
        while True:
            item = claim(arguments)
            if item >= a.items:
                break
            partial = simd.shifted(simd.pointer(a.partial), item * a.entries * padded)
            for entry in range(a.entries):
                simd.store_rows(partial, entry * padded, LANES, zero)
            for row in range(a.rows * item // a.items, a.rows * (item + 1) // a.items):
                vectors = simd.load_span(zero, simd.pointer(a.gradient), row * width)
                for column in range(a.columns):
                    start = np.int64(index[row, column]) * padded
                    simd.store_rows(partial, start, LANES, simd.load_rows(zero, partial, start, LANES) + vectors)

    return Loop(body, dict.fromkeys(("index", "gradient", "partial", "rows", "columns", "entries"), "q"))


def embedding_forward(index: Tensor, table: Tensor) -> Tensor:
    """What `embedding_sum` returns."""
    check_tensor("index", index, index.shape, index.dtype)
    if index.is_floating_point() or index.is_complex() or index.dtype == torch.bool:
        raise TypeError(f"index must be of an integer type, got {index.dtype}")
    if index.dim() != 2 or table.dim() != 2:
        raise ValueError(f"index and table must have 2 axes, got {index.dim()} and {table.dim()}")
    check_tensor("table", table, table.shape)
    rows, columns = index.shape
    entries, width = table.shape
    out, invalid = table.new_empty(rows, width), np.zeros(1, np.int64)
    arrays = (index, table, out, invalid.ctypes.data)
    items = -(-rows // _ROWS_PER_ITEM)
    _embedding_forward(width, _numpy_type(index))(items, *arrays, rows, columns, entries)
    if invalid[0]:
        raise IndexError(f"index must lie in 0 .. {entries - 1}, the rows of table")
    return out


def embedding_backward(gradient: Tensor, index: Tensor, entries: int) -> Tensor:
    """The gradient of a table of `entries` rows from that of the sums [M, W]."""
    width = gradient.shape[1]
    partial = gradient.new_empty(_CHUNKS, entries, simd.padded(width))
    arrays = (index, gradient.contiguous(), partial)
    _embedding_backward(width, _numpy_type(index))(_CHUNKS, *arrays, *index.shape, entries)
    return _chunk_sum(partial, width)


def _numpy_type(index: Tensor) -> np.dtype:
    return np.dtype(str(index.dtype).removeprefix("torch."))


class _EmbeddingSum(Function):
    @staticmethod
    def forward(ctx, index, table):
        ctx.save_for_backward(index)
        ctx.entries = len(table)
        return embedding_forward(index, table)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        (index,) = ctx.saved_tensors
        return None, embedding_backward(gradient, index, ctx.entries)


def embedding_sum(index: Tensor, table: Tensor) -> Tensor:
    """out[m] = sum over f of table[index[m, f]], [M, W]; index [M, F] of any integer type, table [V, W]."""
    return _EmbeddingSum.apply(index.contiguous(), table.contiguous())


@lru_cache
def _gelu_forward(width: int) -> Loop:
    def body(arguments):
        a = carray(arguments, 1)[0]
        zero = simd.zero_span(width)
        bias = simd.load_span(zero, simd.pointer(a.bias), 0)
        while True:
            item = claim(arguments)
            if item >= a.items:
                break
            for row in range(item * _ROWS_PER_ITEM, min(a.rows, (item + 1) * _ROWS_PER_ITEM)):
                x = simd.load_span(zero, simd.pointer(a.x), row * width) + bias
                density, probability = _normal(x)
                simd.store_span(simd.pointer(a.out), row * width, x * probability)
                simd.store_span(simd.pointer(a.slope), row * width, x * density + probability)

    return Loop(body, dict.fromkeys(("x", "bias", "out", "slope", "rows"), "q"))


@njit(forceinline=True)
def _normal(u):
    """Density and distribution function of the standard normal distribution.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: absolute error below 1e-7.
    """
    t = simd.inverse(simd.magnitude(u) * np.float32(0.3275911 / 2**0.5) + np.float32(1))
    power = simd.exp2(u * u * np.float32(-0.5 / math.log(2)))
    series = t * np.float32(1.061405429 / 2) + np.float32(-1.453152027 / 2)
    series = series * t + np.float32(1.421413741 / 2)
    series = series * t + np.float32(-0.284496736 / 2)
    series = series * t + np.float32(0.254829592 / 2)
    tail = series * t * power
    probability = simd.where_positive(u, tail * np.float32(-1) + np.float32(1), tail)
    return power * np.float32(1 / math.sqrt(2 * math.pi)), probability


@lru_cache
def _gelu_backward(width: int) -> Loop:
    padded = simd.padded(width)

    def body(arguments):
        a = carray(arguments, 1)[0]
        zero = simd.zero_span(width)
        while True:
            item = claim(arguments)
            if item >= a.items:
                break
            total = zero
            for row in range(a.rows * item // a.items, a.rows * (item + 1) // a.items):
                gradient = simd.load_span(zero, simd.pointer(a.gradient), row * width)
                product = gradient * simd.load_span(zero, simd.pointer(a.slope), row * width)
                simd.store_span(simd.pointer(a.out), row * width, product)
                total = total + product
            simd.store_rows(simd.pointer(a.partial), item * padded, LANES, total)

    return Loop(body, dict.fromkeys(("gradient", "slope", "out", "partial", "rows"), "q"))


def gelu_forward(x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """What `bias_gelu` returns, and its slope at every x."""
    if x.dim() != 2:
        raise ValueError(f"x must have 2 axes, got {x.dim()}")
    check_tensor("x", x, x.shape)
    check_tensor("bias", bias, x.shape[1:])
    rows, width = x.shape
    out, slope = torch.empty_like(x), torch.empty_like(x)
    _gelu_forward(width)(-(-rows // _ROWS_PER_ITEM), x, bias, out, slope, rows)
    return out, slope


def gelu_backward(gradient: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of x and of the bias."""
    rows, width = slope.shape
    out, partial = torch.empty_like(slope), slope.new_empty(_CHUNKS, simd.padded(width))
    _gelu_backward(width)(_CHUNKS, gradient.contiguous(), slope, out, partial, rows)
    return out, _chunk_sum(partial, width)


class _BiasGelu(Function):
    @staticmethod
    def forward(ctx, x, bias):
        out, slope = gelu_forward(x, bias)
        ctx.save_for_backward(slope)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        (slope,) = ctx.saved_tensors
        return gelu_backward(gradient, slope)


def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """GELU of x + bias with x [M, D] and bias [D], exact to about 1e-7 of x."""
    return _BiasGelu.apply(x.contiguous(), bias.contiguous())
