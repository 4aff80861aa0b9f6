"""Operations that have a fast implementation: attention over packed molecules, and sums of embeddings; see README.md.

Axis letters: B molecules, T atoms, N = B + T rows (the CLS rows first), P ordered atom pairs, H heads, D width.
"""

from typing import Protocol

import torch
from torch import Tensor

from graphormer_sepnorm.graphs import Padding
from graphormer_sepnorm.kernels import dense
from graphormer_sepnorm.kernels.switch import KERNELS_VARIABLE, kernels_run, use_kernels

__all__ = ["KERNELS_VARIABLE", "Attention", "embedding_sum", "make_attention", "runs_compiled", "use_kernels"]


class Attention(Protocol):
    """Attention within each molecule of a batch, with a precomputed bias shared by all layers."""

    def __call__(self, qkv: Tensor, dropout: float) -> Tensor:
        """factor * softmax(q k^T / sqrt(d) + bias) v for each head: [N, D] from qkv [N, 3 D]."""

    def of_cls(self, q: Tensor, kv: Tensor, dropout: float) -> Tensor:
        """The same for the CLS rows: [B, D] from q [B, D] and the kv [N, 2 D] of all rows."""


def runs_compiled(tensor: Tensor) -> bool:
    """Whether operations on this tensor run in compiled kernels, which a trace cannot contain."""
    on_cpu = tensor.device.type == "cpu" and tensor.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return on_cpu and not torch.compiler.is_compiling() and kernels_run()


def embedding_sum(index: Tensor, table: Tensor) -> Tensor:
    """Sum of the rows of ``table`` [V, W] selected by each row of ``index`` [M, F]: [M, W]."""
    if index.is_cpu and runs_compiled(table):
        from graphormer_sepnorm.kernels import cpu  # imports Numba

        return cpu.embedding_sum(index, table)
    return dense.embedding_sum(index, table)


def make_attention(
    ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor, pair_factor: Tensor | None = None, padding: Padding | None = None
) -> Attention:
    """Of one batch: biases of ordered atom pairs [P, H] and of pairs with the CLS [H], and factors [P, H]."""
    if runs_compiled(pair_bias):
        from graphormer_sepnorm.kernels.cpu_attention import FusedAttention  # imports Numba

        return FusedAttention(ptr, pair_bias, cls_bias, pair_factor)
    if padding is None:
        padding = Padding.of_any(ptr, pair_bias.shape[0]) if torch.compiler.is_compiling() else Padding.of(ptr)
    return dense.PaddedAttention(padding, pair_bias, cls_bias, pair_factor)
