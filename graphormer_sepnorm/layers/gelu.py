"""GELU for packed rows, whose number differs from batch to batch."""

from torch import Tensor
from torch.nn import functional


def gelu(x: Tensor) -> Tensor:
    """GELU with PyTorch's own kernel: x Φ(x) (Hendrycks and Gimpel, 2016, equation 1).

    For a contiguous tensor, PyTorch calls oneDNN, which compiles a program for every shape and caches the last 1,024.
    Programs compiled in the middle of a training step fragment the memory: after minutes of batches of different sizes,
    ``malloc`` takes a quarter of the time. For a transposed tensor, PyTorch uses its own kernel.

    Args:
        x: [R, C].

    Returns:
        [R, C], contiguous if x is.
    """
    return functional.gelu(x.mT).mT
