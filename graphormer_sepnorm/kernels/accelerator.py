"""The operations on a GPU, and of batches of a fixed shape on any device, in plain PyTorch.

Nothing here waits for a value, so a step can be captured as one graph; and no gradient sorts, as those of PyTorch's
indexing do: what is moved from place to place comes back by the inverse of the move, and the gradient of a small table
is a product with the counts of its entries.

Axis letters: B molecules, T atoms, N = B + T rows (the CLS rows first), L tokens of a row of the padded view, P ordered
atom pairs, H heads, D width, d = D / H, V entries of a table of width W, M sums of F entries each.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import pad, scaled_dot_product_attention

from graphormer_sepnorm.graphs import Shape
from graphormer_sepnorm.kernels.dense import multiplied_attention, with_cls

HEAD_MULTIPLE = 16  # of the width of heads: fused attention wants 8 in bfloat16, matrix units 16
MOST_COUNTS = 2**26

# -------------------------------------------------------------------------------------------------------- embeddings


class _EmbeddingSum(Function):
    @staticmethod
    def forward(ctx, index: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.entries = table.shape[0]
        return table.index_select(0, index.flatten()).unflatten(0, index.shape).sum(dim=1)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[None, Tensor]:
        (index,) = ctx.saved_tensors
        return None, table_gradient(gradient, index, ctx.entries)


def table_gradient(gradient: Tensor, index: Tensor, entries: int) -> Tensor:
    """The gradient [V, W] of a table from that of the sums [M, W] of the entries ``index`` [M, F].

    A product with the counts of the entries, [M, V], which adds in one order; where these would be more than
    ``MOST_COUNTS`` the rows are added one by one, on a GPU in no order.
    """
    if len(index) * entries <= MOST_COUNTS:
        ones = gradient.new_ones(index.shape)
        counts = gradient.new_zeros(len(index), entries).scatter_add(1, index, ones)
        return counts.mT @ gradient
    rows = gradient.unsqueeze(1).expand(*index.shape, -1).flatten(0, 1)
    return gradient.new_zeros(entries, gradient.shape[1]).index_add(0, index.flatten(), rows)


def embedding_sum(index: Tensor, table: Tensor) -> Tensor:
    return _EmbeddingSum.apply(index.long(), table)


# ------------------------------------------------------------------------------------------------------------- places


class _Move(Function):
    @staticmethod
    def forward(ctx, rows: Tensor, there: Tensor, back: Tensor, kept: Tensor) -> Tensor:
        ctx.save_for_backward(back, kept)
        return rows.index_select(0, there)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        back, kept = ctx.saved_tensors
        return gradient.index_select(0, back).masked_fill(~kept.unsqueeze(1), 0), None, None, None


class Places(NamedTuple):
    """Where each of some packed rows lies in a padded view, and the other way round.

    Attributes:
        row: int64 [places], the row that lies at each place; anything where none does.
        filled: bool [places], where a row lies.
        place: int64 [rows], where each row lies; anything for padding.
        real: bool [rows], which are no padding.
    """

    row: Tensor
    filled: Tensor
    place: Tensor
    real: Tensor

    def spread(self, rows: Tensor) -> Tensor:
        """Rows [rows, W] at their places, [places, W]; anything where there is none."""
        return _Move.apply(rows, self.row, self.place, self.real)

    def collect(self, places: Tensor) -> Tensor:
        """What lies at the places [places, W] of the rows, [rows, W]; anything for padding."""
        return _Move.apply(places, self.place, self.row, self.filled)


def owners(ptr: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """The molecule of each of ``rows`` packed rows, and whether it has one; molecule b has ptr[b] to ptr[b + 1]."""
    row = torch.arange(rows, device=ptr.device)
    return torch.searchsorted(ptr[1:], row, right=True).clamp(max=ptr.shape[0] - 2), row < ptr[-1]


def places_of_atoms(ptr: Tensor, shape: Shape) -> Places:
    """Of the atoms [T] in a view [B, L - 1]."""
    columns = torch.arange(shape.length - 1, device=ptr.device)
    filled = columns < ptr.diff().unsqueeze(1)
    row = (ptr[:-1].unsqueeze(1) + columns).clamp(max=shape.atoms - 1)
    molecule, real = owners(ptr, shape.atoms)
    atom = torch.arange(shape.atoms, device=ptr.device)
    place = (molecule * (shape.length - 1) + atom - ptr[molecule]).where(real, 0)
    return Places(row.flatten(), filled.flatten(), place, real)


def places_of_rows(ptr: Tensor, shape: Shape) -> Places:
    """Of all rows [N] in a view [B, L], the CLS first."""
    molecules, length = shape.molecules, shape.length
    atoms = places_of_atoms(ptr, shape)
    cls = torch.arange(molecules, device=ptr.device)
    everywhere = torch.ones_like(cls, dtype=torch.bool)
    in_view = (molecules, length - 1)
    return Places(
        row=torch.cat([cls.unsqueeze(1), molecules + atoms.row.view(in_view)], dim=1).flatten(),
        filled=torch.cat([everywhere.unsqueeze(1), atoms.filled.view(in_view)], dim=1).flatten(),
        place=torch.cat([cls * length, atoms.place + atoms.place // (length - 1) + 1]),
        real=torch.cat([everywhere, atoms.real]),
    )


def places_of_pairs(ptr: Tensor, shape: Shape) -> Places:
    """Of the pairs [P] in a view [B, L - 1, L - 1]."""
    width = shape.length - 1
    sizes = ptr.diff()
    pair_ptr = pad(sizes.square().cumsum(0), (1, 0))
    columns = torch.arange(width, device=ptr.device)
    inside = columns < sizes.unsqueeze(1)
    filled = inside.unsqueeze(2) & inside.unsqueeze(1)
    row = pair_ptr[:-1, None, None] + columns.unsqueeze(1) * sizes[:, None, None] + columns
    molecule, real = owners(pair_ptr, shape.pairs)
    number = torch.arange(shape.pairs, device=ptr.device) - pair_ptr[molecule]
    size = sizes[molecule].clamp(min=1)
    place = ((molecule * width + number // size) * width + number % size).where(real, 0)
    return Places(row.clamp(max=shape.pairs - 1).flatten(), filled.flatten(), place, real)


def sum_of_molecules(atoms: Tensor, ptr: Tensor, shape: Shape) -> Tensor:
    """The sum over the atoms [T, D] of each molecule of a batch of a fixed shape, [B, D]."""
    places = places_of_atoms(ptr, shape)
    spread = places.spread(atoms).masked_fill(~places.filled.unsqueeze(1), 0)
    return spread.unflatten(0, (shape.molecules, -1)).sum(dim=1)


# ---------------------------------------------------------------------------------------------------------- attention


class FixedAttention:
    """PyTorch's fused attention over a padded view of a fixed shape, heads padded to what it wants."""

    def __init__(self, ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor, pair_factor: Tensor | None, shape: Shape):
        self.shape, self.heads = shape, cls_bias.shape[0]
        self.rows = places_of_rows(ptr, shape)
        pairs = places_of_pairs(ptr, shape)
        padding = ~self.rows.filled.view(shape.molecules, 1, 1, shape.length)
        self.bias = self.lay_out(pairs, pair_bias, cls_bias).masked_fill(padding, float("-inf"))
        self.factor = None
        if pair_factor is not None:
            self.factor = self.lay_out(pairs, pair_factor, torch.ones_like(cls_bias))

    def lay_out(self, pairs: Places, of_pairs: Tensor, of_cls: Tensor) -> Tensor:
        """Values of all scores [B, H, L, L], 0 between an atom and padding."""
        width = self.shape.length - 1
        atoms = pairs.spread(of_pairs).masked_fill(~pairs.filled.unsqueeze(1), 0)
        return with_cls(atoms.view(self.shape.molecules, width, width, self.heads), of_cls).contiguous()

    def __call__(self, qkv: Tensor, dropout: float) -> Tensor:
        q, k, v = self.spread(qkv, 3)
        out = self.mix(q, k, v, dropout)  # [B, H, L, d]
        return self.rows.collect(out.transpose(1, 2).flatten(0, 1).flatten(1))

    def of_cls(self, q: Tensor, kv: Tensor, dropout: float) -> Tensor:
        k, v = self.spread(kv, 2)
        cls = q.view(self.shape.molecules, 1, self.heads, -1).transpose(1, 2)  # [B, H, 1, d]
        return self.mix(cls, k, v, dropout).flatten(1)

    def spread(self, rows: Tensor, kinds: int) -> Tensor:
        """From packed rows [N, kinds * D] to [kinds, B, H, L, d]."""
        view = (self.shape.molecules, self.shape.length, kinds, self.heads, -1)
        return self.rows.spread(rows).view(view).permute(2, 0, 3, 1, 4)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, dropped: float) -> Tensor:
        """What the queries read [B, H, n, d], of the first n tokens of each molecule; k and v are [B, H, L, d]."""
        d = q.shape[-1]
        if self.factor is None:
            self.bias = self.bias.to(q.dtype)  # in the first layer, for all
            mask = self.bias[:, :, : q.shape[2]]
            q, k, v = (pad(x, (0, -d % HEAD_MULTIPLE)) for x in (q, k, v))
            out = scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropped, scale=1 / math.sqrt(d))
            return out[..., :d]
        n = q.shape[2]
        return multiplied_attention(q, k, v, self.bias[:, :, :n], self.factor[:, :, :n], dropped)
