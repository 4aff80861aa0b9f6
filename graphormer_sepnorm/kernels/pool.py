"""Access for compiled loops to the thread pool that PyTorch uses on the CPU."""

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch


@cache
def pool_launcher() -> Callable[..., None] | None:
    """`GOMP_parallel` of the OpenMP library that PyTorch has loaded; None for other builds (macOS, Windows)."""
    try:
        launch = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")).GOMP_parallel
    except (OSError, AttributeError):
        return None
    launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    launch.restype = None
    return launch
