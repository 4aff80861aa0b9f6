"""GELU for packed rows, whose number differs from batch to batch."""

from torch import Tensor
from torch.nn import functional


def gelu(x: Tensor) -> Tensor:
    """GELU without oneDNN, which for a contiguous tensor compiles a program per shape, and so fragments the memory."""
    return functional.gelu(x.mT).mT
