"""The operations that have a fast path: attention over packed molecules, and a few that work row by row.

On the CPU in float32 they run in the compiled kernels of ``kernels`` and ``row_kernels``; on other devices and in other
precisions in plain PyTorch. Both paths compute the same function.

Axis letters: B molecules, T atoms, N = B + T rows (the CLS rows first), L tokens of the largest molecule, P ordered
atom pairs, H heads, D width.
"""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import gelu, pad, scaled_dot_product_attention

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
        """softmax(q k^T / sqrt(d) + bias) v for each head.

        Args:
            qkv_t: [3 D, N] queries, keys and values of the rows.
            dropout: probability that an attention weight is dropped.

        Returns:
            [D, N].
        """


class FusedAttention:
    """Compiled attention over packed rows, on the CPU in float32."""

    def __init__(self, ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor):
        self.layout = kernels.Layout.from_ptr(ptr, len(cls_bias))
        self.bias = kernels.lay_out_bias(pair_bias, cls_bias, self.layout)

    def __call__(self, qkv_t: Tensor, dropout: float) -> Tensor:
        return kernels.attention(qkv_t, self.bias, self.layout, dropout)


class DenseAttention:
    """PyTorch's attention over a padded view, on any device in any precision."""

    def __init__(self, ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor):
        num_graphs, heads = len(ptr) - 1, len(cls_bias)
        sizes = ptr.diff()
        length = int(sizes.max()) + 1
        atom = torch.arange(int(ptr[-1]), device=ptr.device)
        graph = torch.repeat_interleave(torch.arange(num_graphs, device=ptr.device), sizes)
        position = graph * length + 1 + atom - ptr[graph]
        self.shape = (num_graphs, length, heads)
        self.slot = torch.cat([torch.arange(num_graphs, device=ptr.device) * length, position])
        self.bias = self.dense_bias(sizes, pair_bias, cls_bias)

    def dense_bias(self, sizes: Tensor, pair_bias: Tensor, cls_bias: Tensor) -> Tensor:
        """[B, H, L, L], -inf at keys that are padding."""
        _, length, heads = self.shape
        real = torch.arange(length - 1, device=sizes.device) < sizes.unsqueeze(1)
        pairs = real.unsqueeze(2) & real.unsqueeze(1)
        atoms = pair_bias.new_zeros(*pairs.shape, heads).masked_scatter(pairs.unsqueeze(-1), pair_bias)
        bias = pad(atoms, (0, 0, 1, 0, 1, 0))
        with_cls = torch.ones(length, length, dtype=torch.bool, device=sizes.device)
        with_cls[1:, 1:] = False
        bias = bias + with_cls.unsqueeze(-1) * cls_bias
        padding = ~pad(real, (1, 0), value=True)
        return bias.masked_fill(padding[:, None, :, None], float("-inf")).permute(0, 3, 1, 2)

    def __call__(self, qkv_t: Tensor, dropout: float) -> Tensor:
        num_graphs, length, heads = self.shape
        padded = qkv_t.new_zeros(num_graphs * length, len(qkv_t)).index_copy(0, self.slot, qkv_t.t())
        q, k, v = padded.view(num_graphs, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
        out = scaled_dot_product_attention(q, k, v, attn_mask=self.bias.to(q.dtype), dropout_p=dropout)
        return out.transpose(1, 2).reshape(num_graphs * length, -1)[self.slot].t()


def make_attention(ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor) -> Attention:
    """Prepares the attention of one batch.

    Args:
        ptr: int64 [B + 1] atom offsets.
        pair_bias: [P, H] bias of ordered atom pairs.
        cls_bias: [H] bias of pairs with the CLS.
    """
    kind = FusedAttention if runs_compiled(pair_bias) else DenseAttention
    return kind(ptr, pair_bias, cls_bias)
