"""The operations in plain PyTorch, attention over a padded view: on any device, in any precision."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import dropout, pad, scaled_dot_product_attention

from graphormer_sepnorm.graphs import pointers, ranges

MOST_SCORES = 2**26  # of a padded view, per head


def embedding_sum(index: Tensor, table: Tensor) -> Tensor:
    return table[index.long()].sum(dim=1)


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

    def __call__(self, qkv: Tensor, dropout: float) -> Tensor:
        q, k, v = self.pad(qkv, 3)
        return self.mix(q, k, v, dropout).transpose(1, 2).flatten(0, 1)[self.slot].flatten(1)

    def of_cls(self, q: Tensor, kv: Tensor, dropout: float) -> Tensor:
        k, v = self.pad(kv, 2)
        cls = q.view(len(q), 1, self.shape[2], -1).transpose(1, 2)  # [B, H, 1, d]
        return self.mix(cls, k, v, dropout).flatten(1)

    def pad(self, rows: Tensor, kinds: int) -> Tensor:
        """From packed rows [N, kinds * D] to [kinds, B, H, L, d], with zeros for what is not there."""
        num_graphs, length, heads = self.shape
        padded = rows.new_zeros(num_graphs * length, rows.shape[1]).index_copy(0, self.slot, rows)
        return padded.view(num_graphs, length, kinds, heads, -1).permute(2, 0, 3, 1, 4)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, dropped: float) -> Tensor:
        """What the queries read [B, H, n, d], of the first n tokens of each molecule; k and v are [B, H, L, d]."""
        bias = self.bias[:, :, : q.shape[2]]
        if self.factor is None:
            return scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype), dropout_p=dropped)
        return multiplied_attention(q, k, v, bias, self.factor[:, :, : q.shape[2]], dropped)


def multiplied_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, factor: Tensor, dropped: float) -> Tensor:
    """Attention [B, H, n, d] whose weights are multiplied by ``factor`` [B, H, n, L] after the softmax."""
    exact = torch.promote_types(q.dtype, torch.float32)
    weights = (q @ k.mT / math.sqrt(q.shape[-1]) + bias).softmax(dim=-1, dtype=exact)
    return (dropout(weights, dropped) * factor).to(v.dtype) @ v


class GroupedAttention:
    """The same in groups of molecules of similar size, so that a large one does not pad all others to its size."""

    def __init__(
        self, groups: list[np.ndarray], ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor, factor: Tensor | None
    ):
        self.attend, rows = [], []
        atom_ptr, graphs = ptr.cpu().numpy(), len(ptr) - 1
        sizes = np.diff(atom_ptr)
        for molecules in groups:
            pairs = torch.from_numpy(ranges(pointers(sizes**2), molecules)).to(ptr.device)
            of_group = torch.from_numpy(pointers(sizes[molecules])).to(ptr.device)
            pair_factor = None if factor is None else factor.index_select(0, pairs)
            self.attend.append(DenseAttention(of_group, pair_bias.index_select(0, pairs), cls_bias, pair_factor))
            rows.append(np.concatenate([molecules, graphs + ranges(atom_ptr, molecules)]))
        self.rows = [torch.from_numpy(numbers).to(ptr.device) for numbers in rows]
        self.molecules = [torch.from_numpy(molecules).to(ptr.device) for molecules in groups]
        self.back, self.back_cls = torch.cat(self.rows).argsort(), torch.cat(self.molecules).argsort()

    def __call__(self, qkv: Tensor, dropout: float) -> Tensor:
        read = [attend(qkv.index_select(0, rows), dropout) for attend, rows in zip(self.attend, self.rows, strict=True)]
        return torch.cat(read).index_select(0, self.back)

    def of_cls(self, q: Tensor, kv: Tensor, dropout: float) -> Tensor:
        groups = zip(self.attend, self.molecules, self.rows, strict=True)
        read = [
            attend.of_cls(q.index_select(0, molecules), kv.index_select(0, rows), dropout)
            for attend, molecules, rows in groups
        ]
        return torch.cat(read).index_select(0, self.back_cls)


def make_attention(
    ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor, pair_factor: Tensor | None = None
) -> DenseAttention | GroupedAttention:
    """Attention in one padded view, or in groups where that would be of more than ``MOST_SCORES``."""
    if torch.compiler.is_compiling() or (len(ptr) - 1) * (int(ptr.diff().max()) + 1) ** 2 <= MOST_SCORES:
        return DenseAttention(ptr, pair_bias, cls_bias, pair_factor)
    sizes = ptr.diff().cpu().numpy()
    class_of = np.ceil(np.log2(sizes + 1)).astype(int)
    groups = [np.flatnonzero(class_of == number) for number in np.unique(class_of)]
    return GroupedAttention(groups, ptr, pair_bias, cls_bias, pair_factor)


def lay_out_densely(real: Tensor, pairs: Tensor, cls: Tensor) -> Tensor:
    """Values of all scores [B, H, L, L], 0 between an atom and padding.

    Args:
        real: [B, L - 1], where there are atoms.
        pairs: [P, H], of ordered atom pairs.
        cls: [H], of pairs with the CLS.
    """
    both = real.unsqueeze(2) & real.unsqueeze(1)
    return with_cls(pairs.new_zeros(*both.shape, len(cls)).masked_scatter(both.unsqueeze(-1), pairs), cls)


def with_cls(atoms: Tensor, cls: Tensor) -> Tensor:
    """Values of all scores [B, H, L, L] from those between atoms [B, L - 1, L - 1, H] and those of the CLS [H]."""
    length = atoms.shape[1] + 1
    row = torch.arange(length, device=atoms.device)
    of_cls = (row.unsqueeze(1) == 0) | (row == 0)
    return (pad(atoms, (0, 0, 1, 0, 1, 0)) + of_cls.unsqueeze(-1) * cls).permute(0, 3, 1, 2)
