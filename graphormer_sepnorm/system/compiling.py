"""Compiled functions, cached on disk if possible."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

Function = TypeVar("Function", bound=Callable)
Compiled = TypeVar("Compiled")


def cached(compiler: Callable[..., Callable[[Callable], Compiled]], function: Callable) -> Compiled:
    """`compiler(cache=True)(function)`; without a cache where Numba finds no folder to write, as in many containers."""
    try:
        return compiler(cache=True)(function)
    except RuntimeError:
        return compiler(cache=False)(function)


def compiled(function: Function) -> Function:
    """Compiles a function with Numba, without the GIL; returns it unchanged, and slow, if Numba cannot be imported."""
    try:
        from numba import njit
    except ImportError:
        return function
    return cached(partial(njit, nogil=True), function)
