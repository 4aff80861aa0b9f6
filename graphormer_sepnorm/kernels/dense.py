"""The operations in plain PyTorch, with attention over padded views: on any device, in any precision."""

import math
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import embedding, pad, scaled_dot_product_attention

from graphormer_sepnorm.graphs import ALIGNMENT, Padding


def embedding_sum(index: Tensor, table: Tensor) -> Tensor:
    return embedding(index.long(), table).sum(dim=1)


class PaddedAttention:
    """PyTorch's attention over padded views. With a bias, it is fused only for heads of multiples of ``ALIGNMENT``."""

    def __init__(self, padding: Padding, pair_bias: Tensor, cls_bias: Tensor, pair_factor: Tensor | None = None):
        self.padding, self.heads = padding, cls_bias.shape[0]
        self.slots = [b * length for b, length in self.padding.views]
        slot = self.padding.slot
        empty = torch.ones(sum(self.slots), dtype=torch.bool, device=slot.device).index_fill(0, slot, False)
        self.biases = [
            bias.masked_fill(nothing.view(b, 1, 1, length), float("-inf"))
            for bias, nothing, (b, length) in zip(
                self.lay_out(pair_bias, cls_bias), empty.split(self.slots), self.padding.views, strict=True
            )
        ]
        self.factors = None if pair_factor is None else self.lay_out(pair_factor, torch.ones_like(cls_bias))

    def lay_out(self, pairs: Tensor, cls: Tensor) -> list[Tensor]:
        """Values of all scores, [b, H, L, L] for each view, from those of pairs [P, H] and of the CLS [H]."""
        views = self.padding.views
        scores = [b * length**2 for b, length in views]
        parts = pairs.new_zeros(sum(scores), self.heads).index_copy(0, self.padding.score, pairs).split(scores)
        return [with_cls(part.view(b, n, n, self.heads), cls) for part, (b, n) in zip(parts, views, strict=True)]

    def __call__(self, qkv: Tensor, dropout: float) -> Tensor:
        d = qkv.shape[1] // (3 * self.heads)
        with fused(qkv.device):
            read = [self.mix(view, q, k, v, d, dropout) for view, (q, k, v) in enumerate(self.spread(qkv, 3))]
        slots = torch.cat([tokens.transpose(1, 2).flatten(0, 1) for tokens in read])  # [slots, H, d or more]
        return slots.index_select(0, self.padding.slot)[..., :d].flatten(1)

    def of_cls(self, q: Tensor, kv: Tensor, dropout: float) -> Tensor:
        d = q.shape[1] // self.heads
        ordered = torch.zeros_like(q).index_copy(0, self.padding.molecule, q).view(-1, self.heads, 1, d)
        queries = pad_heads(ordered).split([b for b, _ in self.padding.views])
        pairs = enumerate(zip(queries, self.spread(kv, 2), strict=True))
        with fused(q.device):
            read = [self.mix(view, query, k, v, d, dropout) for view, (query, (k, v)) in pairs]
        return torch.cat(read).index_select(0, self.padding.molecule)[..., :d].flatten(1)

    def spread(self, rows: Tensor, kinds: int) -> list[Tensor]:
        """Packed rows [N, kinds * D] as [kinds, b, H, L, d] for each view, padded with zeros."""
        tall = pad_heads(rows.view(rows.shape[0], kinds, self.heads, -1))
        whole = tall.new_zeros(sum(self.slots), *tall.shape[1:]).index_copy(0, self.padding.slot, tall)
        parts = zip(whole.split(self.slots), self.padding.views, strict=True)
        return [part.unflatten(0, view).permute(2, 0, 3, 1, 4) for part, view in parts]

    def mix(self, view: int, q: Tensor, k: Tensor, v: Tensor, d: int, dropped: float) -> Tensor:
        """Output [b, H, n, ...] for the first n tokens of each molecule; d is the width of a head without padding."""
        bias = self.biases[view] = self.biases[view].to(q.dtype)  # converted in the first layer, for all layers
        bias, n = bias[:, :, : q.shape[2]], q.shape[2]
        if self.factors is None:
            return scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropped, scale=1 / math.sqrt(d))
        weights = (q @ k.mT / math.sqrt(d) + bias).softmax(dim=-1, dtype=torch.promote_types(q.dtype, torch.float32))
        return (torch.dropout(weights, dropped, True) * self.factors[view][:, :, :n]).to(v.dtype) @ v


def fused(device: torch.device) -> AbstractContextManager[None]:
    """Not cuDNN's, which returns NaN gradients for views of 64 tokens in PyTorch 2.11 (PyTorch issue 196678)."""
    if device.type == "cpu":
        return nullcontext()
    return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])


def pad_heads(rows: Tensor) -> Tensor:
    """Rows [..., d] padded with zeros to a multiple of ``ALIGNMENT``."""
    return pad(rows, (0, -rows.shape[-1] % ALIGNMENT))


def with_cls(atoms: Tensor, cls: Tensor) -> Tensor:
    """Values of all scores [b, H, L, L] from those between atoms [b, L, L, H] and those of pairs with the CLS [H]."""
    first = torch.arange(atoms.shape[1], device=atoms.device) == 0
    return (atoms + (first.unsqueeze(1) | first).unsqueeze(-1) * cls).permute(0, 3, 1, 2).contiguous()
