"""Whether the operations may run compiled, given the user's choice and the machine."""

import importlib
import os
import warnings
from functools import cache
from typing import Literal, get_args

import torch

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.kernels.pool import pool_launcher

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
    return mode == "auto" and _loops_share_threads() and _numba_works()


# As torch.compiler.assume_constant_result does, which also imports a compiler and takes two seconds.
kernels_run._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _check(mode: str, name: str) -> None:
    if mode not in get_args(Mode):
        raise InputError(f"{name} is {mode!r}: set it to auto or off")


def _loops_share_threads() -> bool:
    return torch.get_num_threads() == 1 or pool_launcher() is not None


@cache
def _numba_works() -> bool:
    try:
        importlib.import_module("numba")
    except ImportError as error:
        warnings.warn(
            f"computing in plain PyTorch, several times slower: numba cannot be imported ({error})", stacklevel=2
        )
        return False
    return True
