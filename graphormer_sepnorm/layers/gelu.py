"""GELU of packed rows, of which every batch has another number."""

from torch import Tensor
from torch.nn import functional


def gelu(x: Tensor) -> Tensor:
    """GELU by PyTorch's own loops: x Φ(x) (Hendrycks and Gimpel, 2016, equation 1).

    A contiguous tensor would go to oneDNN, which compiles a program for every shape and keeps the last 1,024. Compiled
    in the middle of a training step they lie between its large blocks of memory, which cannot become one again: after
    minutes of batches of all sizes ``malloc`` takes a quarter of the time. What lies transposed stays with PyTorch.

    Args:
        x: [R, C].

    Returns:
        [R, C], contiguous if x is.
    """
    return functional.gelu(x.mT).mT
