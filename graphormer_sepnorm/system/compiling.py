"""Compiled functions, kept on disk where there is a place for them."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

Function = TypeVar("Function", bound=Callable)
Compiled = TypeVar("Compiled")


def cached(compiler: Callable[..., Callable[[Callable], Compiled]], function: Callable) -> Compiled:
    """`compiler(cache=True)(function)`, or without a cache where none can be written.

    Numba raises RuntimeError where the folder of the function's file, the home and ``NUMBA_CACHE_DIR`` are read-only,
    as in many containers. Each process compiles anew then.
    """
    try:
        return compiler(cache=True)(function)
    except RuntimeError:
        return compiler(cache=False)(function)


def compiled(function: Function) -> Function:
    """The function compiled by Numba, without holding the GIL; as it is, and slow, where Numba cannot be imported."""
    try:
        from numba import njit
    except ImportError:
        return function
    return cached(partial(njit, nogil=True), function)
