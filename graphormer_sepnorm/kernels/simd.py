"""Vectors of float32 lanes as values in Numba code, for explicit vectorization of kernels.

A `Vector` holds LANES floats in a register; `Rows` holds a number of such vectors, fixed at compile time. Pointers are
`CPointer(float32)`; offsets and strides count floats.
"""

import inspect
import operator
import os
from collections.abc import Callable
from functools import wraps

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_jitable, register_model, type_callable

from graphormer_sepnorm.errors import InputError

LANES_VARIABLE = "GRAPHORMER_SEPNORM_LANES"


def _lanes() -> int:
    """The number of lanes: the environment variable, or that of this processor's registers."""
    named = os.environ.get(LANES_VARIABLE)
    if named is None:
        return 16 if llvmlite.binding.get_host_cpu_features().get("avx512f") else 8
    if named not in ("4", "8", "16"):
        raise InputError(f"{LANES_VARIABLE} is {named!r}: set it to 4, 8 or 16, or leave it out")
    return int(named)


LANES = _lanes()
_FLOAT, _INT = ir.FloatType(), ir.IntType(32)
_FLOATS, _INTS = ir.VectorType(_FLOAT, LANES), ir.VectorType(_INT, LANES)
_ZERO = ir.Constant(_FLOATS, None)
_FAST = ("contract", "reassoc", "nsz", "arcp")
_POWER_OF_TWO = (1.0000001, 0.69314694, 0.24022122, 0.055507425, 0.0096754599, 0.0013266971)


@register_jitable
def padded(length):
    """The length rounded up to full vectors; for kernels and for Python."""
    return (length + LANES - 1) // LANES * LANES


class Vector(types.Type):
    """LANES floats in one register."""


class Rows(types.Type):
    """`count` vectors of floats, of which the last has `tail` lanes in use."""

    def __init__(self, count: int, tail: int = LANES) -> None:
        self.count, self.tail = count, tail
        super().__init__(f"rows{count}_{tail}")


VECTOR = Vector("vector")
POINTER = types.CPointer(types.float32)


register_model(Vector)(lambda manager, kind: models.PrimitiveModel(manager, kind, _FLOATS))
register_model(Rows)(lambda manager, kind: models.PrimitiveModel(manager, kind, ir.ArrayType(_FLOATS, kind.count)))


def _simd(result: types.Type | None, *parameters: types.Type | None) -> Callable:
    """Makes `emit(builder, *values)` a function for kernels; None is the type of the `Rows` passed, or `VECTOR`."""

    def wrap(emit: Callable) -> Callable:
        def define(typingctx, *arguments):
            rows = next((argument for argument in arguments if isinstance(argument, Rows)), VECTOR)
            signature = (result or rows)(*(kind or rows for kind in parameters))
            constants = {"tail": rows.tail} if "tail" in names else {}

            def lower(context, builder, signature, values):
                return emit(builder, *values, **constants) or context.get_dummy_value()

            return signature, lower

        names = inspect.signature(emit).parameters
        visible = [names[name] for name in names if name != "tail"]
        define.__signature__ = inspect.Signature(visible)  # type: ignore[attr-defined]  # functions accept any attribute
        define.__name__, define.__doc__ = emit.__name__, emit.__doc__
        return intrinsic(define)

    return wrap


def _call(builder, name, result, *values, flags=()):
    function = ir.FunctionType(result, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), values, fastmath=flags)


def _multiply_add(builder, a, b, c):
    return _call(builder, f"llvm.fmuladd.v{LANES}f32", _FLOATS, a, b, c)


def _constant(value):
    kind, vector = (_INT, _INTS) if isinstance(value, int) else (_FLOAT, _FLOATS)
    return ir.Constant(vector, [ir.Constant(kind, value)] * LANES)


def _spread(builder, scalar):
    undefined = ir.Constant(ir.VectorType(scalar.type, LANES), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(_INTS, [0] * LANES))


def _at(builder, pointer, offset, kind):
    return builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer())


def _load(builder, pointer, offset):
    return builder.load(_at(builder, pointer, offset, _FLOATS), align=4)


def _store(builder, pointer, offset, value):
    builder.store(value, _at(builder, pointer, offset, value.type), align=4)


def _steps(builder, start, stride, count):
    return [builder.add(start, builder.mul(stride, ir.Constant(stride.type, step))) for step in range(count)]


def _split(builder, rows):
    return [builder.extract_value(rows, row) for row in range(rows.type.count)]


def _join(builder, vectors):
    rows = ir.Constant(ir.ArrayType(_FLOATS, len(vectors)), ir.Undefined)
    for row, vector in enumerate(vectors):
        rows = builder.insert_value(rows, vector, row)
    return rows


def _lanewise(emit: Callable) -> Callable:
    """Makes `emit`, a function of vectors, one for kernels of vectors or rows."""

    @wraps(emit)
    def emit_all(builder, *values):
        if values[0].type == _FLOATS:
            return emit(builder, *values)
        rows = zip(*(_split(builder, value) for value in values), strict=True)
        return _join(builder, [emit(builder, *vectors) for vectors in rows])

    return _simd(*[None] * len(inspect.signature(emit).parameters))(emit_all)


def _transposed(builder, vectors):
    """Transpose LANES vectors by exchanging blocks of 1, 2, 4, ... lanes."""
    vectors = list(vectors)
    for block in (1 << bit for bit in range(LANES.bit_length() - 1)):
        low = [lane if not lane & block else lane - block + LANES for lane in range(LANES)]
        high = [lane + block if not lane & block else lane + LANES for lane in range(LANES)]
        for first in (row for row in range(LANES) if not row & block):
            pair = vectors[first], vectors[first + block]
            vectors[first] = builder.shuffle_vector(*pair, ir.Constant(_INTS, low))
            vectors[first + block] = builder.shuffle_vector(*pair, ir.Constant(_INTS, high))
    return vectors


def _groups(count):
    """The row numbers of `count` rows, in groups of LANES."""
    return [range(first, min(first + LANES, count)) for first in range(0, count, LANES)]


def _address_as(result: types.Type, kind: ir.Type) -> Callable:
    @intrinsic
    def convert(typingctx, address):
        return result(types.int64), lambda context, builder, _, values: builder.inttoptr(values[0], kind.as_pointer())

    return convert


pointer = _address_as(POINTER, _FLOAT)
integers = _address_as(types.CPointer(types.int64), ir.IntType(64))
void_pointer = _address_as(types.voidptr, ir.IntType(8))


@intrinsic(prefer_literal=True)
def zeros(typingctx, width):
    """Rows of zeros that hold `width` floats; `width` is a compile-time constant."""
    count = -(-width.literal_value // LANES)
    rows, zero = Rows(count, width.literal_value - (count - 1) * LANES), ir.Constant(ir.ArrayType(_FLOATS, count), None)
    return rows(width), lambda context, builder, signature, values: zero


@_simd(POINTER, POINTER, types.int64)
def shifted(builder, start, offset):
    return builder.gep(start, [offset])


load = _simd(VECTOR, POINTER, types.int64)(_load)
store = _simd(types.void, POINTER, types.int64, VECTOR)(_store)
spread = _simd(VECTOR, types.float32)(_spread)


@_lanewise
def larger(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@_lanewise
def where_positive(builder, condition, a, b):
    """`a` in the lanes where `condition` is positive, `b` in the others."""
    return builder.select(builder.fcmp_ordered(">", condition, _ZERO), a, b)


@_lanewise
def inverse(builder, vector):
    return builder.fdiv(_constant(1.0), vector)


@_lanewise
def magnitude(builder, vector):
    return _call(builder, f"llvm.fabs.v{LANES}f32", _FLOATS, vector)


@_lanewise
def exp2(builder, x):
    """Two to the power of x, for x <= 0; below -126 the result stays at about 1e-38."""
    x = builder.select(builder.fcmp_ordered("<", x, _constant(-126.0)), _constant(-126.0), x)
    whole = _call(builder, f"llvm.rint.v{LANES}f32", _FLOATS, x)
    fraction = builder.fsub(x, whole)
    power = _constant(_POWER_OF_TWO[-1])
    for coefficient in reversed(_POWER_OF_TWO[:-1]):
        power = _multiply_add(builder, power, fraction, _constant(coefficient))
    exponent = builder.shl(builder.fptosi(whole, _INTS), _constant(23))
    return builder.bitcast(builder.add(builder.bitcast(power, _INTS), exponent), _FLOATS)


@_simd(VECTOR, VECTOR, types.int64, types.uint32, types.uint32, types.uint32)
def negate_random(builder, vector, position, key, salt, threshold):
    """Flip the sign of lanes whose random 32 bits, a hash of lane position, key and salt, are below threshold."""
    golden = 0x9E3779B1
    lanes = ir.Constant(_INTS, [ir.Constant(_INT, lane * golden & 0xFFFFFFFF) for lane in range(LANES)])
    start = builder.mul(builder.trunc(position, _INT), ir.Constant(_INT, golden))
    bits = builder.add(lanes, _spread(builder, builder.add(start, key)))
    for offset, factor in ((_spread(builder, salt), 0x21F0AAAD), (_constant(0), 0x735A2D97)):
        bits = builder.xor(bits, builder.lshr(bits, _constant(15)))
        bits = builder.add(builder.mul(bits, _constant(factor)), offset)
    dropped = builder.icmp_unsigned("<", bits, _spread(builder, threshold))
    return builder.select(dropped, builder.fneg(vector), vector)


@_simd(None, None, POINTER, types.int64, types.int64)
def load_rows(builder, like, source, offset, stride):
    """Load as many rows as `like` has from `source[offset + row * stride]`."""
    return _join(builder, [_load(builder, source, start) for start in _steps(builder, offset, stride, like.type.count)])


@_simd(types.void, POINTER, types.int64, types.int64, None)
def store_rows(builder, target, offset, stride, rows):
    for start, vector in zip(_steps(builder, offset, stride, rows.type.count), _split(builder, rows), strict=True):
        _store(builder, target, start, vector)


@_simd(None, None, POINTER, types.int64, types.int64)
def load_transposed(builder, like, source, offset, stride):
    """Load rows whose lane l comes from `source[offset + l * stride + row]`; the stride is a multiple of LANES."""
    vectors = []
    for group in _groups(like.type.count):
        starts = _steps(builder, builder.add(offset, ir.Constant(offset.type, group[0])), stride, LANES)
        vectors += _transposed(builder, [_load(builder, source, start) for start in starts])[: len(group)]
    return _join(builder, vectors)


@_simd(types.void, POINTER, types.int64, types.int64, None)
def store_transposed(builder, target, offset, stride, rows):
    """Store lane l of every row to `target[offset + l * stride + row]`; the stride is a multiple of LANES."""
    vectors = _split(builder, rows)
    for group in _groups(len(vectors)):
        starts = _steps(builder, builder.add(offset, ir.Constant(offset.type, group[0])), stride, LANES)
        columns = _transposed(builder, [vectors[row] for row in group] + [_ZERO] * (LANES - len(group)))
        for start, column in zip(starts, columns, strict=True):
            _store(builder, target, start, column)


@_simd(VECTOR, None, None)
def column_sums(builder, a, b):
    """The sum over rows of a * b, lane by lane."""
    total = _ZERO
    for left, right in zip(_split(builder, a), _split(builder, b), strict=True):
        total = _multiply_add(builder, left, right, total)
    return total


@_simd(VECTOR, VECTOR, POINTER, types.int64, types.int64, None)
def dot(builder, start, source, offset, stride, rows):
    """`start` plus the sum over rows of the scalar `source[offset + row * stride]` times the row."""
    sums = [start, _ZERO]
    offsets = _steps(builder, offset, stride, rows.type.count)
    for row, (place, vector) in enumerate(zip(offsets, _split(builder, rows), strict=True)):
        scalar = builder.load(_at(builder, source, place, _FLOAT))
        sums[row % 2] = _multiply_add(builder, _spread(builder, scalar), vector, sums[row % 2])
    return builder.fadd(*sums)


@_simd(None, None, POINTER, types.int64, types.int64, VECTOR)
def add_outer(builder, rows, source, offset, stride, vector):
    """Every row plus the scalar `source[offset + row * stride]` times the vector."""
    vectors = []
    for place, row in zip(_steps(builder, offset, stride, rows.type.count), _split(builder, rows), strict=True):
        scalar = builder.load(_at(builder, source, place, _FLOAT))
        vectors.append(_multiply_add(builder, _spread(builder, scalar), vector, row))
    return _join(builder, vectors)


@_simd(None, None, POINTER, types.int64)
def load_span(builder, like, source, offset, tail):
    """Load consecutive floats from `source[offset]`, as many as `like` has in use."""
    starts = _steps(builder, offset, ir.Constant(offset.type, LANES), like.type.count)
    vectors = [_load(builder, source, start) for start in starts[:-1]]
    few = builder.load(_at(builder, source, starts[-1], ir.VectorType(_FLOAT, tail)), align=4)
    lanes = ir.Constant(_INTS, [min(lane, tail) for lane in range(LANES)])
    return _join(builder, [*vectors, builder.shuffle_vector(few, ir.Constant(few.type, None), lanes)])


@_simd(types.void, POINTER, types.int64, None)
def store_span(builder, target, offset, rows, tail):
    """Store the floats in use to `target[offset]` and after; a masked store can take ten times as long."""
    starts = _steps(builder, offset, ir.Constant(offset.type, LANES), rows.type.count)
    *vectors, last = _split(builder, rows)
    for start, vector in zip(starts, vectors, strict=False):
        _store(builder, target, start, vector)
    lanes = ir.Constant(ir.VectorType(_INT, tail), [ir.Constant(_INT, lane) for lane in range(tail)])
    _store(builder, target, starts[-1], builder.shuffle_vector(last, _ZERO, lanes))


def _register_operator(symbol: Callable, name: str) -> None:
    """Define an operator for vector and vector, rows and rows, and every row with one vector or scalar."""

    @type_callable(symbol)
    def infer(context):
        def result(a, b):
            if isinstance(a, Rows) and (b == a or b in (VECTOR, types.float32)):
                return a
            return VECTOR if a == VECTOR and b in (VECTOR, types.float32) else None

        return result

    def lower(context, builder, signature, values):
        if signature.args[1] == types.float32:
            values = values[0], _spread(builder, values[1])
        operands = [
            _split(builder, value) if isinstance(kind, Rows) else [value] * getattr(signature.args[0], "count", 1)
            for kind, value in zip(signature.args, values, strict=True)
        ]
        vectors = [getattr(builder, name)(a, b, flags=_FAST) for a, b in zip(*operands, strict=True)]
        return _join(builder, vectors) if isinstance(signature.return_type, Rows) else vectors[0]

    for kinds in ((Vector, Vector), (Vector, types.Float), (Rows, Rows), (Rows, Vector), (Rows, types.Float)):
        lower_builtin(symbol, *kinds)(lower)


for _symbol, _name in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _register_operator(_symbol, _name)
