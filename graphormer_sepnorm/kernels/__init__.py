"""The operations that have a fast path: attention over packed molecules, and a few that work row by row.

On the CPU in float32 they run in the compiled kernels of ``kernels`` and ``row_kernels``; on other devices and in other
precisions in plain PyTorch. Both paths compute the same function.

Axis letters: B molecules, T atoms, N = B + T rows (the CLS rows first), L tokens of the largest molecule, P ordered
atom pairs, H heads, D width.
"""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import gelu

from graphormer_sepnorm.kernels import cpu_attention, cpu_rows
from graphormer_sepnorm.kernels.dense import DenseAttention


def runs_compiled(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")


def embedding_sum(index: Tensor, table: Tensor) -> Tensor:
    """Sum of the rows of ``table`` [V, W] that each row of ``index`` [M, F] names: [M, W]."""
    if runs_compiled(table):
        return cpu_rows.embedding_sum(index, table)
    return table[index.long()].sum(dim=1)


def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """GELU of x + bias, with x [N, D] and bias [D]."""
    if runs_compiled(x):
        return cpu_rows.bias_gelu(x, bias)
    return gelu(x + bias)


class Attention(Protocol):
    """Attention within each molecule of a batch, with the bias that all layers share already laid out."""

    def __call__(self, qkv_t: Tensor, dropout: float) -> Tensor:
        """factor * softmax(q k^T / sqrt(d) + bias) v for each head.

        Args:
            qkv_t: [3 D, N] queries, keys and values of the rows.
            dropout: probability that an attention weight is dropped.

        Returns:
            [D, N].
        """


class FusedAttention:
    """Compiled attention over packed rows, on the CPU in float32."""

    def __init__(self, ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor, pair_factor: Tensor | None = None):
        self.layout = cpu_attention.Layout.from_ptr(ptr, len(cls_bias))
        self.bias = cpu_attention.lay_out(pair_bias, cls_bias, self.layout)
        self.factor = None
        if pair_factor is not None:
            self.factor = cpu_attention.lay_out(pair_factor, torch.ones_like(cls_bias), self.layout)

    def __call__(self, qkv_t: Tensor, dropout: float) -> Tensor:
        return cpu_attention.attention(qkv_t, self.bias, self.layout, dropout, self.factor)


def make_attention(ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor, pair_factor: Tensor | None = None) -> Attention:
    """Prepares the attention of one batch.

    Args:
        ptr: int64 [B + 1] atom offsets.
        pair_bias: [P, H] bias of ordered atom pairs.
        cls_bias: [H] bias of pairs with the CLS.
        pair_factor: [P, H] what multiplies the attention weights of ordered atom pairs; None: nothing.
    """
    kind = FusedAttention if runs_compiled(pair_bias) else DenseAttention
    return kind(ptr, pair_bias, cls_bias, pair_factor)
