"""Compiled functions, cached on disk if possible."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache, partial
from inspect import isfunction
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TypeVar

Function = TypeVar("Function", bound=Callable)
Compiled = TypeVar("Compiled")

PLAINLY = ContextVar("PLAINLY", default=False)


@contextlib.contextmanager
def plainly(is_little: bool) -> Iterator[None]:
    """Computes without compiled code if the work is little, because loading the compiler would take longer."""
    token = PLAINLY.set(is_little)
    try:
        yield
    finally:
        PLAINLY.reset(token)


def cached(compiler: Callable[..., Callable[[Callable], Compiled]], function: Callable) -> Compiled:
    """`compiler(cache=True)(function)`, or without a cache if none can be written.

    Numba raises RuntimeError if the folder of the function's file, the home and ``NUMBA_CACHE_DIR`` are all read-only,
    as in many containers. Each process then compiles again.
    """
    try:
        return compiler(cache=True)(function)
    except RuntimeError:
        return compiler(cache=False)(function)


@cache
def compiled(function: Function) -> Function:
    """Compiles a function with Numba, without the GIL; returns it unchanged, and slow, if Numba cannot be imported."""
    try:
        from numba import njit
    except ImportError:
        return function
    return cached(partial(njit, nogil=True), function)


def loops(module: ModuleType) -> ModuleType | SimpleNamespace:
    """The functions of a module, compiled where they call each other, too; as they are if computing ``plainly``."""
    return module if PLAINLY.get() else compiled_together(module)


@cache
def compiled_together(module: ModuleType) -> SimpleNamespace:
    space = dict(vars(module))
    own = {name: each for name, each in space.items() if isfunction(each) and each.__module__ == module.__name__}
    for name, function in own.items():
        space[name] = compiled(FunctionType(function.__code__, space, name))
    return SimpleNamespace(**{name: space[name] for name in own})
