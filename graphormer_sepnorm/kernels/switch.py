"""Whether the operations may run compiled: what the user wants, and what the machine has."""

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
    """Chooses how this process, and those that it starts from now on, compute on the CPU in float32.

    Args:
        mode: ``"auto"``, in compiled kernels where the machine can; ``"off"``, in plain PyTorch.

    Raises:
        InputError: another mode.
    """
    _check(mode, "mode")
    os.environ[KERNELS_VARIABLE] = mode


def kernels_run() -> bool:
    """Whether operations on float32 tensors of the CPU run compiled; imports Numba to find out, unless switched off.

    They do not where the user switched them off, where Numba cannot be imported, or where compiled loops would use one
    thread and PyTorch uses several.

    Raises:
        InputError: the environment names neither ``auto`` nor ``off``.
    """
    mode = os.environ.get(KERNELS_VARIABLE, "auto")
    _check(mode, KERNELS_VARIABLE)
    return mode == "auto" and _loops_share_threads() and _numba_works()


# All that torch.compiler.assume_constant_result does, which also imports a compiler of two seconds.
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
