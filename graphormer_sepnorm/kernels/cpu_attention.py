"""Fused CPU kernels for attention over packed molecules, with their gradients; d = D / H, and L tokens of a molecule.

Attention works on one molecule and one head at a time, with LANES queries in the lanes of a vector. The L x L scores of
a head are stored as tiles of LANES queries, each with L rows of one key, as are bias, factor and their gradients.
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
from graphormer_sepnorm.system.device import compiled

_KEYS_AT_ONCE = 4
_BLOCK = _KEYS_AT_ONCE * LANES
_COLUMNS = 6
_LOG2_E = np.float32(math.log2(math.e))
_COMMON = dict.fromkeys(("molecules", "heads", "longest", "most_queries", "query_stride", "stride"), "q")
_COMMON |= {"scale": "f", "kept_scale": "f"}


class ScoreLayout:
    """Positions of the tokens, pairs and scores of a batch, and their numbers.

    Attributes:
        molecules: int64 [B + 1, 6], CLS, first atom, L, first pair, scores and queries of one head before; with a last
            row for the ends.
        scores, queries: of all heads, with queries padded to full tiles.
        longest: largest L.
    """

    def __init__(self, ptr: Tensor, heads: int):
        bounds = ptr.numpy()
        atoms = np.diff(bounds)
        if bounds[0] != 0 or atoms.size == 0 or atoms.min() < 1:
            raise ValueError("ptr must start at 0 and give every molecule at least one atom")
        lengths = atoms + 1
        queries = simd.padded(lengths)
        molecules = np.zeros((len(atoms) + 1, _COLUMNS), np.int64)
        molecules[:, 0] = np.arange(len(atoms) + 1)
        molecules[:, 1] = bounds + len(atoms)
        molecules[:-1, 2] = lengths
        np.cumsum(atoms * atoms, out=molecules[1:, 3])
        np.cumsum(queries * lengths, out=molecules[1:, 4])
        np.cumsum(queries, out=molecules[1:, 5])
        _, self.tokens, _, self.pairs, scores, tiled = molecules[-1].tolist()
        self.molecules, self.batch, self.heads, self.longest = molecules, len(atoms), heads, int(lengths.max())
        self.scores, self.queries = scores * heads, tiled * heads


# By backward pass, the gradient of the values of all scores, summed in place over its attention calls.
_GradientSum = dict[int, Tensor]


@njit(forceinline=True)
def _aligned(scratch):
    return simd.pointer((scratch.ctypes.data + 63) & ~63)


@njit(forceinline=True)
def _row(molecule, token):
    return molecule[1] - 1 + token if token else molecule[0]


@njit(forceinline=True)
def _gather(like, matrix, column, stride, molecule, count, target, width):
    """Copy columns of the first `count` tokens of a matrix to [count, width], padded with zeros to full tiles."""
    source = simd.shifted(simd.pointer(matrix), column)
    for token in range(count):
        simd.store_rows(target, token * width, LANES, simd.load_span(like, source, _row(molecule, token) * stride))
    for token in range(count, simd.padded(count)):
        simd.store_rows(target, token * width, LANES, like)


@njit(forceinline=True)
def _scatter(like, source, width, molecule, count, matrix, column, stride):
    """The inverse of `_gather`."""
    target = simd.shifted(simd.pointer(matrix), column)
    for token in range(count):
        simd.store_span(target, _row(molecule, token) * stride, simd.load_rows(like, source, token * width, LANES))


@njit(forceinline=True)
def _weigh_values(a, top, values, scores, length, like, width, position):
    """Makes scores [L, LANES] probabilities, negative where dropped; one over their sum, and the weighted values."""
    total, out = simd.spread(np.float32(0)), like
    factors = simd.shifted(simd.pointer(a.factor), position)
    for j in range(length):
        p = simd.exp2(simd.load(scores, j * LANES) - top)
        total = total + p
        if a.threshold > 0:
            p = simd.negate_random(p, position + j * LANES, a.key, a.salt, a.threshold)
        simd.store(scores, j * LANES, p)
        weight = simd.larger(p, simd.spread(np.float32(0)))
        if a.factor != 0:
            weight = weight * simd.load(factors, j * LANES)
        out = simd.add_outer(out, values, j * width, 1, weight)
    return simd.inverse(total), out


@lru_cache
def _attention_forward(d: int) -> Loop:
    width, tile = simd.padded(d), d * LANES

    def body(arguments):
        a = carray(arguments, 1)[0]
        molecules = carray(simd.integers(a.molecules), (a.items // a.heads, _COLUMNS))
        heads, room = a.heads, width * (a.longest + LANES)
        scratch = np.empty(3 * room + LANES * (a.longest + 1), np.float32)
        keys = _aligned(scratch)
        values = simd.shifted(keys, room)
        queries = simd.shifted(values, room)
        scores = simd.shifted(queries, room)
        like, span = simd.zeros(tile), simd.zeros(d)
        item = claim(arguments)
        while item < a.items:
            molecule, head = molecules[item // heads], item % heads
            length, lanes, column = molecule[2], simd.padded(molecule[2]), head * d
            count = min(length, a.most_queries)
            block = molecule[4] * heads + head * lanes * length
            _gather(span, a.keys, column, a.stride, molecule, length, keys, width)
            _gather(span, a.values, column, a.stride, molecule, length, values, width)
            _gather(span, a.queries, column, a.query_stride, molecule, count, queries, width)
            for start in range(0, count, LANES):
                position = block + start * length
                if a.scores != 0:
                    scores = simd.shifted(simd.pointer(a.scores), position)
                bias = simd.shifted(simd.pointer(a.bias), position)
                q = simd.load_transposed(like, queries, start * width, width) * (a.scale * _LOG2_E)
                top = simd.spread(np.float32(-3e38))
                for j in range(length):  # in units of log 2
                    score = simd.dot(simd.load(bias, j * LANES) * _LOG2_E, keys, j * width, 1, q)
                    simd.store(scores, j * LANES, score)
                    top = simd.larger(top, score)
                inverse, out = _weigh_values(a, top, values, scores, length, like, width, position)
                simd.store(simd.pointer(a.inverses), molecule[5] * heads + head * lanes + start, inverse)
                simd.store_transposed(queries, start * width, width, out * (inverse * a.kept_scale))
            _scatter(span, queries, width, molecule, count, a.out, column, heads * d)
            item = claim(arguments)

    fields = dict.fromkeys(("queries", "keys", "values", "bias", "factor", "scores", "inverses", "out"), "q")
    return Loop(body, fields | _COMMON | {"key": "I", "salt": "I", "threshold": "I"})


@njit(forceinline=True)
def _change_scores(a, g, mean, values, keys, kept, changes, length, like, width, position):
    """Writes value weights and score gradients [L, LANES], adds to sums; returns the gradient of the queries."""
    zero, out = simd.spread(np.float32(0)), like
    scores = simd.shifted(simd.pointer(a.scores), position)
    bias_gradient = simd.shifted(simd.pointer(a.bias_gradient), position)
    factors = simd.shifted(simd.pointer(a.factor), position)
    factor_gradient = simd.shifted(simd.pointer(a.factor_gradient), position)
    for j in range(length):
        cell = j * LANES
        p = simd.load(scores, cell)
        weight = simd.larger(p, zero)
        change = simd.where_positive(p, simd.dot(zero, values, j * width, 1, g), zero)
        if a.factor != 0:
            factor = simd.load(factors, cell)
            if a.factor_gradient != 0:
                simd.store(factor_gradient, cell, simd.load(factor_gradient, cell) + change * weight)
            change, weight = change * factor, weight * factor
        change = (change - mean) * simd.magnitude(p)
        simd.store(kept, cell, weight)
        simd.store(changes, cell, change)
        if a.bias_gradient != 0:
            simd.store(bias_gradient, cell, simd.load(bias_gradient, cell) + change)
        out = simd.add_outer(out, keys, j * width, 1, change)
    return out


@njit(forceinline=True)
def _add_key_gradients(kept, changes, outs, queries, values, keys, length, count, width):
    """Adds kept [L, LANES] times outs, and changes times queries, to the value and key gradients [L, width]."""
    like = simd.zeros(_BLOCK)
    for key in range(0, length, _KEYS_AT_ONCE):
        for column in range(0, width, LANES):
            place = key * width + column
            value_rows = simd.load_rows(like, values, place, width)
            key_rows = simd.load_rows(like, keys, place, width)
            for i in range(count):
                out, query = simd.load(outs, i * width + column), simd.load(queries, i * width + column)
                value_rows = simd.add_outer(value_rows, kept, key * LANES + i, LANES, out)
                key_rows = simd.add_outer(key_rows, changes, key * LANES + i, LANES, query)
            simd.store_rows(values, place, width, value_rows)
            simd.store_rows(keys, place, width, key_rows)


@lru_cache
def _attention_backward(d: int) -> Loop:
    width, tile = simd.padded(d), d * LANES

    def body(arguments):
        a = carray(arguments, 1)[0]
        molecules = carray(simd.integers(a.molecules), (a.items // a.heads, _COLUMNS))
        heads, room = a.heads, width * (a.longest + LANES)
        scratch = np.zeros(7 * room + 2 * LANES * (a.longest + LANES) + LANES, np.float32)
        keys = _aligned(scratch)
        values = simd.shifted(keys, room)
        queries = simd.shifted(values, room)
        outs = simd.shifted(queries, room)
        out_gradients = simd.shifted(outs, room)
        key_gradients = simd.shifted(out_gradients, room)
        value_gradients = simd.shifted(key_gradients, room)
        kept = simd.shifted(value_gradients, room)
        changes = simd.shifted(kept, LANES * (a.longest + LANES))
        like, span = simd.zeros(tile), simd.zeros(d)
        item = claim(arguments)
        while item < a.items:
            molecule, head = molecules[item // heads], item % heads
            length, lanes, column, narrow = molecule[2], simd.padded(molecule[2]), head * d, heads * d
            count = min(length, a.most_queries)
            block = molecule[4] * heads + head * lanes * length
            _gather(span, a.keys, column, a.stride, molecule, length, keys, width)
            _gather(span, a.values, column, a.stride, molecule, length, values, width)
            _gather(span, a.queries, column, a.query_stride, molecule, count, queries, width)
            _gather(span, a.out, column, narrow, molecule, count, outs, width)
            _gather(span, a.out_gradient, column, narrow, molecule, count, out_gradients, width)
            key_changes = carray(key_gradients, lanes * width)
            key_changes[:] = 0
            carray(value_gradients, lanes * width)[:] = 0
            for start in range(0, count, LANES):
                row, position = start * width, block + start * length
                inverse = simd.load(simd.pointer(a.inverses), molecule[5] * heads + head * lanes + start)
                g = simd.load_transposed(like, out_gradients, row, width) * inverse
                mean = simd.column_sums(g, simd.load_transposed(like, outs, row, width))
                g = g * a.kept_scale
                simd.store_transposed(out_gradients, row, width, g)
                change = _change_scores(a, g, mean, values, keys, kept, changes, length, like, width, position)
                simd.store_transposed(outs, row, width, change * a.scale)
                gradients, queried = simd.shifted(out_gradients, row), simd.shifted(queries, row)
                used = min(LANES, count - start)
                _add_key_gradients(
                    kept, changes, gradients, queried, value_gradients, key_gradients, length, used, width
                )
            _scatter(span, outs, width, molecule, count, a.query_gradient, column, a.query_stride)
            key_changes *= a.scale
            _scatter(span, key_gradients, width, molecule, length, a.key_gradient, column, a.stride)
            _scatter(span, value_gradients, width, molecule, length, a.value_gradient, column, a.stride)
            item = claim(arguments)

    names = ("queries", "keys", "values", "factor", "scores", "inverses", "out", "out_gradient")
    gradients = ("query_gradient", "key_gradient", "value_gradient", "bias_gradient", "factor_gradient")
    return Loop(body, dict.fromkeys((*names, *gradients), "q") | _COMMON)


def projections(rows: Tensor, cls: Tensor | None) -> tuple[Tensor, ...]:
    """Queries, keys and values, as views of `rows` [N, 3 * D], or of `cls` [B, D] and `rows` [N, 2 * D]."""
    return rows.chunk(3, dim=1) if cls is None else (cls, *rows.chunk(2, dim=1))


def _common(parts: tuple[Tensor, ...], layout: ScoreLayout, d: int, dropout: float) -> tuple[float, ...]:
    """The values of the fields in `_COMMON`."""
    queries, keys, _ = parts
    most = layout.longest if len(queries) == layout.tokens else 1
    places = (layout.molecules.ctypes.data, layout.heads, layout.longest, most, queries.stride(0), keys.stride(0))
    return (*places, 1 / math.sqrt(d), 1 / (1 - dropout))


class _Attention(Function):
    @staticmethod
    def forward(ctx, rows, cls, bias, factor, sums, layout, dropout):
        width = rows.shape[1] // (3 if cls is None else 2)
        check_tensor("rows", rows, (layout.tokens, rows.shape[1]))
        d, seed = width // layout.heads, int(torch.randint(2**63 - 1, ())) if dropout > 0 else 0
        out = rows.new_empty(layout.tokens if cls is None else layout.batch, width)
        scores = rows.new_empty(layout.scores) if any(ctx.needs_input_grad) else None  # else they stay in the cache
        inverses, parts = rows.new_empty(layout.queries), projections(rows, cls)
        tensors = (*parts, bias, factor, scores, inverses, out)
        random = (seed & 0xFFFFFFFF, seed >> 32, round(dropout * 2**32))
        _attention_forward(d)(layout.batch * layout.heads, *tensors, *_common(parts, layout, d, dropout), *random)
        ctx.save_for_backward(bias, rows, cls, factor, out, scores, inverses)
        ctx.sums, ctx.layout, ctx.dropout = sums, layout, dropout
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, out_gradient):
        bias, rows, cls, factor, out, scores, inverses = ctx.saved_tensors
        layout, d = ctx.layout, out.shape[1] // ctx.layout.heads
        sums: list[Tensor | None] = [None, None]
        this_pass = torch._C._current_graph_task_id()
        for place, (total, is_needed) in enumerate(zip(ctx.sums, ctx.needs_input_grad[2:4], strict=True)):
            if is_needed:
                total[this_pass] = sums[place] = total[this_pass] if this_pass in total else torch.zeros_like(bias)
        gradients = torch.empty_like(rows), None if cls is None else torch.empty_like(cls)
        parts = projections(rows, cls)
        tensors = (*parts, factor, scores, inverses, out, out_gradient.contiguous(), *projections(*gradients))
        _attention_backward(d)(layout.batch * layout.heads, *tensors, *sums, *_common(parts, layout, d, ctx.dropout))
        return *gradients, None, None, None, None, None


@compiled
def _write_values(molecules, lanes, pairs, cls, values):
    """Writes pairs [P, H] and cls [H] to the tiles of all scores; padded queries have zeros."""
    heads = len(cls)
    for molecule in range(len(molecules) - 1):
        length, first, place = molecules[molecule, 2], molecules[molecule, 3], molecules[molecule, 4] * heads
        of_head = molecules[molecule + 1, 4] - molecules[molecule, 4]
        for start in range(0, length, lanes):
            for key in range(length):
                for query in range(start, start + lanes):
                    pair = first + (query - 1) * (length - 1) + key - 1
                    for head in range(heads):
                        if key == 0 or query == 0:
                            values[place + head * of_head] = cls[head]
                        elif query < length:
                            values[place + head * of_head] = pairs[pair, head]
                        else:
                            values[place + head * of_head] = 0
                    place += 1


@compiled
def _add_gradients(molecules, lanes, values, pairs, cls):
    """The inverse, of gradients; those of ``cls`` [B, H, lanes] are sums over the scores of a molecule and a lane."""
    heads = pairs.shape[1]
    for molecule in range(len(molecules) - 1):
        length, first, place = molecules[molecule, 2], molecules[molecule, 3], molecules[molecule, 4] * heads
        of_head = molecules[molecule + 1, 4] - molecules[molecule, 4]
        for start in range(0, length, lanes):
            for key in range(length):
                for query in range(start, start + lanes):
                    pair = first + (query - 1) * (length - 1) + key - 1
                    for head in range(heads):
                        value = values[place + head * of_head]
                        if key == 0 or query == 0:
                            cls[molecule, head, query - start] += value
                        elif query < length:
                            pairs[pair, head] = value
                    place += 1


class _LayOut(Function):
    @staticmethod
    def forward(ctx, pairs, cls, gradient, layout):
        ctx.set_materialize_grads(False)  # they come in the sum
        ctx.gradient, ctx.layout = gradient, layout
        check_tensor("pairs", pairs, (layout.pairs, layout.heads))
        values = pairs.new_empty(layout.scores)
        _write_values(layout.molecules, LANES, pairs.numpy(), cls.numpy(), values.numpy())
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx, _):
        total, layout = ctx.gradient.pop(torch._C._current_graph_task_id(), None), ctx.layout
        if total is None:
            return None, None, None, None
        pairs = total.new_empty(layout.pairs, layout.heads)
        cls = np.zeros((layout.batch, layout.heads, LANES), np.float32)
        _add_gradients(layout.molecules, LANES, total.numpy(), pairs.numpy(), cls)
        return pairs, torch.from_numpy(cls.sum((0, 2))), None, None


def lay_out(pairs: Tensor, cls: Tensor, layout: ScoreLayout) -> tuple[Tensor, _GradientSum]:
    """The values of all scores, from pairs [P, H] between atoms and cls [H] for every pair with the CLS."""
    gradient: _GradientSum = {}
    return _LayOut.apply(pairs.contiguous(), cls.contiguous(), gradient, layout), gradient


class FusedAttention:
    """Compiled attention over packed rows, on the CPU in float32."""

    def __init__(self, ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor, pair_factor: Tensor | None = None):
        self.layout = ScoreLayout(ptr, len(cls_bias))
        self.bias, bias_sum = lay_out(pair_bias, cls_bias, self.layout)
        self.factor, factor_sum = None, None
        if pair_factor is not None:
            self.factor, factor_sum = lay_out(pair_factor, torch.ones_like(cls_bias), self.layout)
        self.sums = bias_sum, factor_sum

    def __call__(self, qkv: Tensor, dropout: float) -> Tensor:
        return _Attention.apply(qkv.contiguous(), None, self.bias, self.factor, self.sums, self.layout, dropout)

    def of_cls(self, q: Tensor, kv: Tensor, dropout: float) -> Tensor:
        rows = kv.contiguous(), q.contiguous()
        return _Attention.apply(*rows, self.bias, self.factor, self.sums, self.layout, dropout)
