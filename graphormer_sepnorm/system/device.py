"""Where a command computes and how precisely: one policy for all of them.

``choose`` reads what was asked for, and within ``computing`` everything that computes follows it.
"""

import contextlib
import re
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

import torch

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.torchrun import local_rank, num_processes

Precision = Literal["float32", "bfloat16"]
# By the names of ``Compute`` and of ``TrainConfig``.
NUMBERS = {
    "float32": torch.float32,
    "32-true": torch.float32,
    "bfloat16": torch.bfloat16,
    "bf16-mixed": torch.bfloat16,
}
NAMES = re.compile(r"auto|cpu|mps|cuda(:\d+)?")


@dataclass(frozen=True)
class Compute:
    """Where to compute, and in which precision to multiply matrices where no gradients are needed.

    Weights, batches and results are float32 in both.
    """

    device: torch.device
    precision: Precision = "float32"

    def arithmetic(self) -> contextlib.AbstractContextManager[None]:
        """Within it, PyTorch multiplies matrices in the precision."""
        return autocast(self.precision, self.device)


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[None]:
    """Within it, PyTorch multiplies matrices in a precision named in ``NUMBERS``; weights stay float32."""
    if NUMBERS[precision] is torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, NUMBERS[precision])


_CURRENT: ContextVar[Compute | None] = ContextVar("compute", default=None)


def choose(device: str = "auto", precision: Literal["auto", "float32", "bfloat16"] = "auto") -> Compute:
    """What a command was asked for.

    Args:
        device: as ``find_device``.
        precision: "auto" is float32.

    Raises:
        InputError: as ``find_device``, or the device has no bfloat16.
    """
    found = find_device(device)
    if precision == "bfloat16" and found.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise InputError(f"{found} does not compute in bfloat16: leave --precision out")
    return Compute(found, "float32" if precision == "auto" else precision)


def find_device(name: str = "auto") -> torch.device:
    """The device of that name.

    Args:
        name: "cpu"; "cuda", which of several processes on a machine gives each its own GPU; "cuda:1"; "mps", Apple's
            GPUs; or "auto", "cuda" where there is a GPU of that kind and otherwise "cpu".

    Raises:
        InputError: another name, or a device that is not there.
    """
    if not NAMES.fullmatch(name):
        raise InputError(f"unknown device {name!r}, choose auto, cpu, cuda, cuda:N for GPU number N, or mps")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda:") and num_processes() > 1:
        raise InputError(f"--device {name} is for one process: of several, --device cuda gives each its own GPU")
    if name.startswith("cuda"):
        return find_gpu(int(name.partition(":")[2] or local_rank()))
    if name == "mps" and not torch.backends.mps.is_available():
        raise InputError("there is no device mps: PyTorch finds no GPU of Apple's; choose --device cpu")
    return torch.device(name)


def find_gpu(number: int) -> torch.device:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if number >= count:
        found = f"{count} CUDA GPU{'s' if count > 1 else ''}, from cuda:0 on" if count else "no CUDA GPU"
        raise InputError(
            f"there is no device cuda:{number}: PyTorch finds {found}; choose another --device, such as cpu"
        )
    return torch.device("cuda", number)


@contextlib.contextmanager
def computing(compute: Compute) -> Iterator[None]:
    """Within it, ``current`` is ``compute``."""
    token = _CURRENT.set(compute)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Compute:
    """What ``computing`` set, or the choice that is made of itself."""
    return _CURRENT.get() or choose()
