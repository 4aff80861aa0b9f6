"""Device and precision of a command: ``choose`` reads the options, ``computing`` applies them; compiled functions."""

import contextlib
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import torch

from graphormer_sepnorm.errors import InputError, one_of
from graphormer_sepnorm.system.signals import local_rank, num_processes

Function = TypeVar("Function", bound=Callable)
Compiled = TypeVar("Compiled")
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class Compute:
    """The device, and the precision of matrix products that need no gradients; weights and results are float32."""

    device: torch.device
    precision: Precision = "float32"

    def arithmetic(self) -> contextlib.AbstractContextManager[None]:
        return autocast(self.precision, self.device)


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[None]:
    """Context manager: matrix products use a precision of ``Compute`` or ``TrainConfig``; weights stay float32."""
    if precision in ("float32", "32-true"):
        return contextlib.nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


_CURRENT: ContextVar[Compute | None] = ContextVar("compute", default=None)


def choose(device: str = "auto", precision: Literal["auto", "float32", "bfloat16"] = "auto") -> Compute:
    """Checks the device and precision options of a command; raises InputError if they are not supported."""
    device_type = find_device(device)
    one_of("precision", precision, ("auto", "float32", "bfloat16"))
    if precision == "bfloat16" and device_type.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise InputError(f"{device_type} does not support bfloat16: choose the precision float32")
    return Compute(device_type, "float32" if precision == "auto" else precision)


def find_device(name: str = "auto") -> torch.device:
    """The device called auto, cpu, mps, cuda (a GPU per process) or cuda:1; raises InputError if it does not exist."""
    if not (isinstance(name, str) and re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", name)):
        raise InputError(f"unknown device {name!r}, choose auto, cpu, cuda, cuda:N for GPU number N, or mps")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda:") and num_processes() > 1:
        raise InputError(f"the device {name} is for one process: of several, the device cuda gives each its own GPU")
    if name.startswith("cuda"):
        number = int(name.partition(":")[2] or local_rank())
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if number >= count:
            available = f"{count} CUDA GPU{'s' if count > 1 else ''}, from cuda:0 on" if count else "no CUDA GPU"
            absent = f"there is no device cuda:{number}: PyTorch finds {available}"
            raise InputError(f"{absent}; choose another device, such as cpu")
        return torch.device("cuda", number)
    if name == "mps" and not torch.backends.mps.is_available():
        raise InputError("there is no device mps: PyTorch finds no GPU of Apple's; choose the device cpu")
    return torch.device(name)


@contextlib.contextmanager
def computing(compute: Compute) -> Iterator[None]:
    token = _CURRENT.set(compute)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Compute:
    """The value set by ``computing``, or the default."""
    return _CURRENT.get() or choose()


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
