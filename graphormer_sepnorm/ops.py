"""The operations that have a fast path: attention over packed molecules, and a few that work row by row.

On the CPU in float32 they run in the compiled kernels of ``kernels`` and ``row_kernels``; on other devices and in other
precisions in plain PyTorch. Both paths compute the same function.

Axis letters: B molecules, T atoms, N = B + T rows (the CLS rows first), L tokens of the largest molecule, P ordered
atom pairs, H heads, D width.
"""

import math
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import dropout, gelu, pad, scaled_dot_product_attention

from graphormer_sepnorm import kernels, row_kernels


def runs_compiled(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")


def embedding_sum(index: Tensor, table: Tensor) -> Tensor:
    """Sum of the rows of ``table`` [V, W] that each row of ``index`` [M, F] names: [M, W]."""
    if runs_compiled(table):
        return row_kernels.embedding_sum(index, table)
    return table[index.long()].sum(dim=1)


def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """GELU of x + bias, with x [N, D] and bias [D]."""
    if runs_compiled(x):
        return row_kernels.bias_gelu(x, bias)
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
        self.layout = kernels.Layout.from_ptr(ptr, len(cls_bias))
        self.bias = kernels.lay_out(pair_bias, cls_bias, self.layout)
        self.factor = None
        if pair_factor is not None:
            self.factor = kernels.lay_out(pair_factor, torch.ones_like(cls_bias), self.layout)

    def __call__(self, qkv_t: Tensor, dropout: float) -> Tensor:
        return kernels.attention(qkv_t, self.bias, self.layout, dropout, self.factor)


class DenseAttention:
    """PyTorch's attention over a padded view, on any device in any precision."""

    def __init__(self, ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor, pair_factor: Tensor | None = None):
        num_graphs, heads = len(ptr) - 1, len(cls_bias)
        sizes = ptr.diff()
        length = int(sizes.max()) + 1
        atom = torch.arange(int(ptr[-1]), device=ptr.device)
        graph = torch.repeat_interleave(torch.arange(num_graphs, device=ptr.device), sizes)
        position = graph * length + 1 + atom - ptr[graph]
        self.shape = (num_graphs, length, heads)
        self.slot = torch.cat([torch.arange(num_graphs, device=ptr.device) * length, position])
        real = torch.arange(length - 1, device=ptr.device) < sizes.unsqueeze(1)
        padding = ~pad(real, (1, 0), value=True)
        self.bias = lay_out_densely(real, pair_bias, cls_bias).masked_fill(padding[:, None, None, :], float("-inf"))
        self.factor = None
        if pair_factor is not None:
            self.factor = lay_out_densely(real, pair_factor, torch.ones_like(cls_bias))

    def __call__(self, qkv_t: Tensor, dropout: float) -> Tensor:
        num_graphs, length, heads = self.shape
        padded = qkv_t.new_zeros(num_graphs * length, len(qkv_t)).index_copy(0, self.slot, qkv_t.t())
        q, k, v = padded.view(num_graphs, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
        out = self.mix(q, k, v, dropout)
        return out.transpose(1, 2).reshape(num_graphs * length, -1)[self.slot].t()

    def mix(self, q: Tensor, k: Tensor, v: Tensor, dropped: float) -> Tensor:
        """What the queries read, [B, H, L, d] as all arguments."""
        bias = self.bias.to(q.dtype)
        if self.factor is None:
            return scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropped)
        weights = (q @ k.mT / math.sqrt(q.shape[-1]) + bias).softmax(dim=-1)
        return (dropout(weights, dropped) * self.factor.to(q.dtype)) @ v


def lay_out_densely(real: Tensor, pairs: Tensor, cls: Tensor) -> Tensor:
    """Values of all scores [B, H, L, L], 0 between an atom and padding.

    Args:
        real: [B, L - 1], where there are atoms.
        pairs: [P, H], of ordered atom pairs.
        cls: [H], of pairs with the CLS.
    """
    both = real.unsqueeze(2) & real.unsqueeze(1)
    atoms = pairs.new_zeros(*both.shape, len(cls)).masked_scatter(both.unsqueeze(-1), pairs)
    length = both.shape[1] + 1
    with_cls = torch.ones(length, length, dtype=torch.bool, device=real.device)
    with_cls[1:, 1:] = False
    return (pad(atoms, (0, 0, 1, 0, 1, 0)) + with_cls.unsqueeze(-1) * cls).permute(0, 3, 1, 2)


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
