"""Runs compiled loops on PyTorch's own thread pool; Numba's would compete with it for the cores."""

import ctypes
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import llvmlite.binding
import numpy as np
import torch
from llvmlite import ir
from numba import cfunc, from_dtype, types
from numba.extending import intrinsic
from torch import Tensor

from graphormer_sepnorm.kernels.simd import LANES
from graphormer_sepnorm.kernels.switch import pool_launcher
from graphormer_sepnorm.system.device import cached

_HELPERS = (Path(__file__), Path(__file__).with_name("simd.py"))
_PROCESSOR = f"{llvmlite.binding.get_host_cpu_name()} {llvmlite.binding.get_host_cpu_features().flatten()}"
# A checksum of further inputs of compiled bodies: their helpers, the lanes and the processor.
_CACHE_KEY = zlib.crc32(b"".join(path.read_bytes() for path in _HELPERS) + f"{LANES} {_PROCESSOR}".encode())


@intrinsic
def claim(typingctx, arguments):
    """Take the next unclaimed item number of a running `Loop`; its threads share one counter."""

    def emit(context, builder, signature, values):
        counter = builder.bitcast(values[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", counter, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(arguments), emit


class Loop:
    """A compiled loop over numbered items, distributed among the threads of PyTorch's pool, and cached on disk.

    `body(arguments)` gets a C pointer to one record, a counter, `items` and `fields` with their format characters of
    `struct`, and calls `claim(arguments)` for item numbers. The key in the first name makes Numba compile again.
    """

    def __init__(self, body: Callable, fields: dict[str, str]) -> None:
        fields = {f"next_{_CACHE_KEY}": "q", "items": "q", **fields}
        record = from_dtype(np.dtype(list(fields.items()), align=True))
        self._pack = struct.Struct("".join(fields.values())).pack
        self._compiled = cached(partial(cfunc, types.void(types.CPointer(record))), body)
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._compiled.address)

    def __call__(self, items: int, *values: Tensor | float | None) -> None:
        addresses = [value.data_ptr() if isinstance(value, Tensor) else value or 0 for value in values]
        arguments = ctypes.create_string_buffer(self._pack(0, items, *addresses))
        threads = min(items, torch.get_num_threads())
        launch = pool_launcher()
        if threads <= 1 or launch is None:
            self._call(arguments)
        else:
            launch(self._compiled.address, arguments, threads, 0)


def check_tensor(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if not tensor.is_cpu or tensor.dtype != torch.float32:
        raise TypeError(f"{name} must be a torch.float32 CPU tensor, got {tensor.dtype} on {tensor.device}")
    if tensor.shape != shape:
        raise ValueError(f"{name} must have the shape {list(shape)}, got {list(tensor.shape)}")
