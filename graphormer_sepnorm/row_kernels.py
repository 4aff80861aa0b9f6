"""Fused row-wise operations on the CPU, with their gradients.

Rows are shared out among the threads in blocks. Gradients of a table or of a vector are summed in a fixed number of
chunks of the rows, and the chunks in order, so that no result depends on the number of threads.
"""

from functools import lru_cache

import numpy as np
import torch
from numba import carray, njit
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from graphormer_sepnorm import simd
from graphormer_sepnorm.simd import LANES
from graphormer_sepnorm.threads import Loop, check_tensor, claim

_ROWS_PER_ITEM = 64
_CHUNKS = 8


@lru_cache
def _embedding_forward(index_type: np.dtype) -> Loop:
    def body(arguments):
        a = carray(arguments, 1)[0]
        columns, width = a.columns, a.width
        index = carray(simd.void_pointer(a.index), (a.rows, columns), index_type)
        weight = carray(simd.pointer(a.weight), (a.rows, columns))
        table, out = simd.pointer(a.table), simd.pointer(a.out)
        while True:
            item = claim(arguments)
            if item >= a.items:
                break
            rows = range(item * _ROWS_PER_ITEM, min(a.rows, (item + 1) * _ROWS_PER_ITEM))
            for place in range(0, width, LANES):
                count = min(LANES, width - place)
                for row in rows:
                    total = simd.spread(np.float32(0))
                    for column in range(columns):
                        entry = np.int64(index[row, column])
                        if entry < 0 or entry >= a.entries:
                            carray(simd.integers(a.invalid), 1)[0] = 1
                            continue
                        vector = simd.load_first(table, entry * width + place, count)
                        if a.weight != 0:
                            vector = vector * simd.spread(weight[row, column])
                        total = total + vector
                    simd.store_first(out, row * width + place, count, total)

    names = ("index", "weight", "table", "out", "invalid", "rows", "columns", "width", "entries")
    return Loop(body, dict.fromkeys(names, "i8"))


@lru_cache
def _embedding_backward(index_type: np.dtype) -> Loop:
    def body(arguments):
        a = carray(arguments, 1)[0]
        columns, width = a.columns, a.width
        padded = (width + LANES - 1) // LANES * LANES
        index = carray(simd.void_pointer(a.index), (a.rows, columns), index_type)
        weight = carray(simd.pointer(a.weight), (a.rows, columns))
        gradient = simd.pointer(a.gradient)
        while True:
            item = claim(arguments)
            if item >= a.items:
                break
            partial = simd.shifted(simd.pointer(a.partial), item * a.entries * padded)
            rows = range(a.rows * item // a.items, a.rows * (item + 1) // a.items)
            for place in range(0, width, LANES):
                count = min(LANES, width - place)
                for row in rows:
                    vector = simd.load_first(gradient, row * width + place, count)
                    for column in range(columns):
                        share = vector
                        if a.weight != 0:
                            share = vector * simd.spread(weight[row, column])
                        entry = np.int64(index[row, column]) * padded + place
                        simd.store(partial, entry, simd.load(partial, entry) + share)

    names = ("index", "weight", "gradient", "partial", "rows", "columns", "width", "entries")
    return Loop(body, dict.fromkeys(names, "i8"))


class _EmbeddingSum(Function):
    @staticmethod
    def forward(ctx, index, table, weight):
        rows, columns = index.shape
        entries, width = table.shape
        out, invalid = table.new_empty(rows, width), np.zeros(1, np.int64)
        ctx.index_type, ctx.sizes = _numpy_type(index), (rows, columns, width, entries)
        arrays = (index, 0 if weight is None else weight, table, out, invalid.ctypes.data)
        _embedding_forward(ctx.index_type)(-(-rows // _ROWS_PER_ITEM), *arrays, *ctx.sizes)
        if invalid[0]:
            raise IndexError(f"index must lie in 0 .. {entries - 1}, the rows of table")
        ctx.save_for_backward(index, weight)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        index, weight = ctx.saved_tensors
        *_, width, entries = ctx.sizes
        partial = gradient.new_zeros(_CHUNKS, entries, -(-width // LANES) * LANES)
        arrays = (index, 0 if weight is None else weight, gradient.contiguous(), partial)
        _embedding_backward(ctx.index_type)(_CHUNKS, *arrays, *ctx.sizes)
        return None, torch.from_numpy(partial.numpy().sum(0)[:, :width]), None


def _numpy_type(index: Tensor) -> np.dtype:
    return np.dtype(str(index.dtype).removeprefix("torch."))


def embedding_sum(index: Tensor, table: Tensor, weight: Tensor | None = None) -> Tensor:
    """out[m] = sum over f of weight[m, f] * table[index[m, f]], [M, W]; gradients reach the table only.

    index [M, F] of any integer type, table [V, W], weight [M, F] or None for ones.
    """
    check_tensor("index", index, index.shape, index.dtype)
    if index.is_floating_point() or index.is_complex() or index.dtype == torch.bool:
        raise TypeError(f"index must be of an integer type, got {index.dtype}")
    if index.dim() != 2 or table.dim() != 2:
        raise ValueError(f"index and table must have 2 axes, got {index.dim()} and {table.dim()}")
    check_tensor("table", table, table.shape)
    if weight is not None:
        check_tensor("weight", weight, index.shape)
        weight = weight.detach().contiguous()
    return _EmbeddingSum.apply(index.contiguous(), table.contiguous(), weight)


@lru_cache
def _norm_forward() -> Loop:
    def body(arguments):
        a = carray(arguments, 1)[0]
        width, x, residual, out = a.width, simd.pointer(a.x), simd.pointer(a.residual), simd.pointer(a.out)
        weight, bias, statistics = simd.pointer(a.weight), simd.pointer(a.bias), carray(simd.pointer(a.statistics), (a.rows, 2))
        while True:
            item = claim(arguments)
            if item >= a.items:
                break
            for row in range(item * _ROWS_PER_ITEM, min(a.rows, (item + 1) * _ROWS_PER_ITEM)):
                start = row * width
                total = simd.spread(np.float32(0))
                for place in range(0, width, LANES):
                    total = total + _sum_at(x, residual, start + place, width - place)
                mean = simd.lane_sum(total) / np.float32(width)
                squares = simd.spread(np.float32(0))
                for place in range(0, width, LANES):
                    centred = _sum_at(x, residual, start + place, width - place) - simd.spread(mean)
                    centred = simd.first(centred, width - place)
                    squares = squares + centred * centred
                scale = np.float32(1) / np.sqrt(simd.lane_sum(squares) / np.float32(width) + a.eps)
                statistics[row, 0], statistics[row, 1] = mean, scale
                for place in range(0, width, LANES):
                    count = width - place
                    centred = _sum_at(x, residual, start + place, count) - simd.spread(mean)
                    factor = simd.load_first(weight, place, count) * simd.spread(scale)
                    simd.store_first(out, start + place, count, centred * factor + simd.load_first(bias, place, count))

    names = ("x", "residual", "weight", "bias", "out", "statistics", "rows", "width")
    return Loop(body, dict.fromkeys(names, "i8") | {"eps": "f4"})


@njit(forceinline=True)
def _sum_at(x, residual, place, count):
    return simd.load_first(x, place, count) + simd.load_first(residual, place, count)


@lru_cache
def _norm_backward() -> Loop:
    def body(arguments):
        a = carray(arguments, 1)[0]
        width, x, residual, gradient = a.width, simd.pointer(a.x), simd.pointer(a.residual), simd.pointer(a.gradient)
        out, weight, statistics = simd.pointer(a.out), simd.pointer(a.weight), carray(simd.pointer(a.statistics), (a.rows, 2))
        padded = (width + LANES - 1) // LANES * LANES
        while True:
            item = claim(arguments)
            if item >= a.items:
                break
            partial = simd.shifted(simd.pointer(a.partial), item * 2 * padded)
            for row in range(a.rows * item // a.items, a.rows * (item + 1) // a.items):
                start = row * width
                mean, scale = simd.spread(statistics[row, 0]), simd.spread(statistics[row, 1])
                total = simd.spread(np.float32(0))
                product = simd.spread(np.float32(0))
                for place in range(0, width, LANES):
                    count = width - place
                    unit = (_sum_at(x, residual, start + place, count) - mean) * scale
                    incoming = simd.load_first(gradient, start + place, count)
                    simd.store(partial, place, simd.load(partial, place) + incoming * unit)
                    simd.store(partial, padded + place, simd.load(partial, padded + place) + incoming)
                    weighted = incoming * simd.load_first(weight, place, count)
                    total = total + weighted
                    product = product + weighted * unit
                mean_total = simd.spread(simd.lane_sum(total) / np.float32(width))
                mean_product = simd.spread(simd.lane_sum(product) / np.float32(width))
                for place in range(0, width, LANES):
                    count = width - place
                    unit = (_sum_at(x, residual, start + place, count) - mean) * scale
                    weighted = simd.load_first(gradient, start + place, count) * simd.load_first(weight, place, count)
                    simd.store_first(out, start + place, count, (weighted - mean_total - unit * mean_product) * scale)

    names = ("x", "residual", "weight", "gradient", "out", "partial", "statistics", "rows", "width")
    return Loop(body, dict.fromkeys(names, "i8"))


class _AddNorm(Function):
    @staticmethod
    def forward(ctx, x, residual, weight, bias, eps):
        rows, width = x.shape
        out, statistics = torch.empty_like(x), x.new_empty(rows, 2)
        _norm_forward()(-(-rows // _ROWS_PER_ITEM), x, residual, weight, bias, out, statistics, rows, width, eps)
        ctx.save_for_backward(x, residual, weight, statistics)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        x, residual, weight, statistics = ctx.saved_tensors
        rows, width = x.shape
        out, partial = torch.empty_like(x), x.new_zeros(_CHUNKS, 2, -(-width // LANES) * LANES)
        arrays = (x, residual, weight, gradient.contiguous(), out, partial, statistics)
        _norm_backward()(_CHUNKS, *arrays, rows, width)
        weight_gradient, bias_gradient = torch.from_numpy(partial.numpy().sum(0)[:, :width])
        return out, out, weight_gradient, bias_gradient, None


def add_norm(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """LayerNorm of x + residual, both [M, D], over the last axis, with weight and bias [D]."""
    if x.dim() != 2:
        raise ValueError(f"x must have 2 axes, got {x.dim()}")
    check_tensor("x", x, x.shape)
    check_tensor("residual", residual, x.shape)
    check_tensor("weight", weight, x.shape[1:])
    check_tensor("bias", bias, x.shape[1:])
    return _AddNorm.apply(x.contiguous(), residual.contiguous(), weight.contiguous(), bias.contiguous(), eps)


@lru_cache
def _gelu_forward() -> Loop:
    def body(arguments):
        a = carray(arguments, 1)[0]
        width, x, bias, out, slope = a.width, simd.pointer(a.x), simd.pointer(a.bias), simd.pointer(a.out), simd.pointer(a.slope)
        while True:
            item = claim(arguments)
            if item >= a.items:
                break
            for row in range(item * _ROWS_PER_ITEM, min(a.rows, (item + 1) * _ROWS_PER_ITEM)):
                for place in range(0, width, LANES):
                    u = _sum_at(simd.shifted(x, row * width), bias, place, width - place)
                    density, probability = _normal(u)
                    simd.store_first(out, row * width + place, width - place, u * probability)
                    simd.store_first(slope, row * width + place, width - place, u * density + probability)

    return Loop(body, dict.fromkeys(("x", "bias", "out", "slope", "rows", "width"), "i8"))


@njit(forceinline=True)
def _normal(u):
    """Density and distribution function of the standard normal distribution.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: absolute error below 1e-7.
    """
    t = simd.inverse(simd.spread(np.float32(1)) + simd.magnitude(u) * simd.spread(np.float32(0.3275911 / 2**0.5)))
    power = simd.exp2(u * u * simd.spread(np.float32(-0.5 * 1.4426950408889634)))
    series = t * simd.spread(np.float32(1.061405429 / 2)) + simd.spread(np.float32(-1.453152027 / 2))
    series = series * t + simd.spread(np.float32(1.421413741 / 2))
    series = series * t + simd.spread(np.float32(-0.284496736 / 2))
    series = series * t + simd.spread(np.float32(0.254829592 / 2))
    tail = series * t * power
    probability = simd.where_positive(u, simd.spread(np.float32(1)) - tail, tail)
    return power * simd.spread(np.float32(0.3989422804)), probability


@lru_cache
def _gelu_backward() -> Loop:
    def body(arguments):
        a = carray(arguments, 1)[0]
        width, gradient, slope, out = a.width, simd.pointer(a.gradient), simd.pointer(a.slope), simd.pointer(a.out)
        while True:
            item = claim(arguments)
            if item >= a.items:
                break
            rows = range(a.rows * item // a.items, a.rows * (item + 1) // a.items)
            for place in range(0, width, LANES):
                count, total = width - place, simd.spread(np.float32(0))
                for row in rows:
                    start = row * width + place
                    product = simd.load_first(gradient, start, count) * simd.load_first(slope, start, count)
                    simd.store_first(out, start, count, product)
                    total = total + product
                simd.store_first(simd.pointer(a.partial), item * width + place, count, total)

    return Loop(body, dict.fromkeys(("gradient", "slope", "out", "partial", "rows", "width"), "i8"))


class _BiasGelu(Function):
    @staticmethod
    def forward(ctx, x, bias):
        rows, width = x.shape
        out, slope = torch.empty_like(x), torch.empty_like(x)
        _gelu_forward()(-(-rows // _ROWS_PER_ITEM), x, bias, out, slope, rows, width)
        ctx.save_for_backward(slope)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        (slope,) = ctx.saved_tensors
        rows, width = slope.shape
        out, partial = torch.empty_like(slope), slope.new_empty(_CHUNKS, width)
        _gelu_backward()(_CHUNKS, gradient.contiguous(), slope, out, partial, rows, width)
        return out, torch.from_numpy(partial.numpy().sum(0))


def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """GELU of x + bias with x [M, D] and bias [D], exact to about 1e-7 of x."""
    if x.dim() != 2:
        raise ValueError(f"x must have 2 axes, got {x.dim()}")
    check_tensor("x", x, x.shape)
    check_tensor("bias", bias, x.shape[1:])
    return _BiasGelu.apply(x.contiguous(), bias.contiguous())
