"""The thread pool that PyTorch itself uses on the CPU, where compiled loops can reach it."""

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch


@cache
def pool_launcher() -> Callable[..., None] | None:
    """OpenMP's `GOMP_parallel` as PyTorch has loaded it, None where PyTorch was built without it (macOS, Windows)."""
    try:
        launch = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")).GOMP_parallel
    except (OSError, AttributeError):
        return None
    launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    launch.restype = None
    return launch
