"""Run compiled loops on the thread pool that PyTorch itself uses.

Numba's own threading layers would start a second pool beside PyTorch's, and the two would fight for the cores.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from llvmlite import ir
from numba import cfunc, from_dtype, types
from numba.extending import intrinsic
from torch import Tensor


def _pool_launcher() -> Callable[..., None] | None:
    """Return OpenMP's `GOMP_parallel` as PyTorch has loaded it, or None where PyTorch was built without it."""
    try:
        launch = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")).GOMP_parallel
    except (OSError, AttributeError):
        return None
    launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    launch.restype = None
    return launch


_GOMP_PARALLEL = _pool_launcher()


@intrinsic
def claim(typingctx, arguments):
    """Take the next unclaimed item number of a running `Loop`; threads share one counter."""

    def emit(context, builder, signature, values):
        counter = builder.bitcast(values[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", counter, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(arguments), emit


class Loop:
    """A compiled loop over numbered items that the threads of PyTorch's pool share out among themselves.

    `body(arguments)` gets a C pointer to one record with the fields `next`, `items` and those of `fields`; it calls
    `claim(arguments)` for item numbers until they reach `items`. Tensors and arrays travel as their addresses.
    """

    def __init__(self, body: Callable, fields: dict[str, str]) -> None:
        self._record = np.dtype([("next", "i8"), ("items", "i8"), *fields.items()], align=True)
        self._compiled = cfunc(types.void(types.CPointer(from_dtype(self._record))), cache=True)(body)

    def __call__(self, items: int, *values: Tensor | float) -> None:
        addresses = (value.data_ptr() if isinstance(value, Tensor) else value for value in values)
        arguments = np.array([(0, items, *addresses)], dtype=self._record)
        threads = min(items, torch.get_num_threads())
        if _GOMP_PARALLEL is None or threads == 1:
            self._compiled.ctypes(arguments.ctypes.data)
        else:
            _GOMP_PARALLEL(self._compiled.address, arguments.ctypes.data, threads, 0)


def check_tensor(name: str, tensor: Tensor, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> None:
    if tensor.device.type != "cpu" or tensor.dtype != dtype:
        raise TypeError(f"{name} must be a {dtype} CPU tensor, got {tensor.dtype} on {tensor.device}")
    if tensor.shape != shape:
        raise ValueError(f"{name} must have the shape {list(shape)}, got {list(tensor.shape)}")
