"""Whether the operations may run compiled, given the user's choice and the machine."""

import ctypes
import os
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import torch

from graphormer_sepnorm.errors import InputError

KERNELS_VARIABLE = "GRAPHORMER_SEPNORM_KERNELS"
Mode = Literal["auto", "off"]


def use_kernels(mode: Mode) -> None:
    """How float32 is computed on the CPU from now on: "auto", in compiled kernels if possible, or "off"."""
    _check(mode, "mode")
    os.environ[KERNELS_VARIABLE] = mode


def kernels_run() -> bool:
    """Whether float32 CPU tensors run compiled: not turned off, Numba works, and loops share PyTorch's threads."""
    mode = os.environ.get(KERNELS_VARIABLE, "auto")
    _check(mode, KERNELS_VARIABLE)
    return mode == "auto" and (torch.get_num_threads() == 1 or pool_launcher() is not None) and _numba_works()


def _check(mode: str, name: str) -> None:
    if mode not in get_args(Mode):
        raise InputError(f"{name} is {mode!r}: set it to auto or off")


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


@cache
def _numba_works() -> bool:
    try:
        import numba  # noqa: F401
    except ImportError as error:
        slow = "computing in plain PyTorch, several times slower"
        warnings.warn(f"{slow}: numba cannot be imported ({error})", stacklevel=2)
        return False
    return True
