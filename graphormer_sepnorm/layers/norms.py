"""Norms of the encoder blocks, for padded sequences [n, l, d] as published and for packed rows.

Axis letters: n sequences, l tokens, d width; packed: N = B + T rows, the CLS rows of B molecules before T atom rows.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch
from torch import Tensor, nn

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers.batch_norm import SyncedBatchNorm

NormLayer = Callable[[int], nn.Module]
BY_ROW = (nn.LayerNorm, nn.RMSNorm, nn.Identity)


def normalize_rows(norm: nn.Module, x: Tensor, mask: Tensor | None) -> Tensor:
    """Applies ``norm`` to x [..., d] where ``mask`` [...] is True, so that batch statistics never see padding."""
    if mask is None:
        return norm(x.reshape(-1, x.shape[-1])).view(x.shape)
    rows = norm(x[mask])  # under autocast, of another type than x
    return x.to(rows.dtype).masked_scatter(mask.unsqueeze(-1), rows)


def check_mask(mask: Tensor | None, x: Tensor) -> None:
    """Raises InputError for a mask of x [..., d] that is not boolean or not [...]."""
    if mask is not None and mask.dtype != torch.bool:
        raise InputError(f"mask must be boolean, True at real tokens, got {mask.dtype}")
    if mask is not None and mask.shape != x.shape[:-1]:
        raise InputError(f"mask must have the shape {list(x.shape[:-1])} of the tokens, got {list(mask.shape)}")


def forbid_single_row(norm: nn.Module, rows: int, kind: str = "sequences") -> None:
    """Raises ValueError for batch statistics of one row in training, unless they are synchronized."""
    synchronized = isinstance(norm, SyncedBatchNorm | nn.SyncBatchNorm)
    if rows < 2 and norm.training and isinstance(norm, nn.modules.batchnorm._BatchNorm) and not synchronized:
        advice = "use a larger batch, drop the last incomplete one, or choose LayerNorm for the CLS"
        raise ValueError(f"BatchNorm on the CLS needs at least 2 {kind} in a training batch, got 1: {advice}")


def makes_norm(norm: object) -> bool:
    """Whether this is a class or function of the width, and not a norm that was made before, or a name."""
    return callable(norm) and not isinstance(norm, nn.Module)


def made(norm: NormLayer, width: int) -> nn.Module:
    """The norm of this width; raises InputError unless ``makes_norm``."""
    if not makes_norm(norm):
        raise InputError(f"a norm is a class or function of the width, such as nn.LayerNorm, not {norm!r}")
    return norm(width)


class TokenNorm(Protocol):
    """Interface of the norms in ``NORMS``, which are modules."""

    @property
    def cls_sees_atoms(self) -> bool: ...

    @property
    def of_atoms(self) -> nn.Module: ...

    def __call__(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalizes x [n, l, d] with the CLS at position 0; ``mask`` [n, l] is True at real tokens."""

    def packed(self, x: Tensor, num_cls: int) -> Tensor:
        """Normalizes packed rows x [n, d] whose first ``num_cls`` rows (possibly all) are CLS tokens."""

    def freeze_token_norm(self) -> None:
        """Freezes the norm of the other tokens, because this block outputs only the CLS."""


TOKEN_NORM = ("cls_sees_atoms", "of_atoms", "packed", "freeze_token_norm")  # the names in it


class SepNorm(nn.Module):
    """Separate normalization: the CLS token and the other tokens each have their own normalization layer.

    Source: Chen et al., "On Separate Normalization in Self-supervised Transformers", NeurIPS 2023, section 3.

    Args:
        hidden_size: width d.
        cls_norm: creates the norm of the CLS rows from the width; BatchNorm in the paper.
        tok_norm: creates the norm of the other rows from the width; LayerNorm in the paper.
    """

    cls_sees_atoms = False

    def __init__(self, hidden_size: int, cls_norm: NormLayer = nn.BatchNorm1d, tok_norm: NormLayer = nn.LayerNorm):
        super().__init__()
        self.hidden_size = hidden_size
        self.cls_norm_layer = made(cls_norm, hidden_size)
        self.tok_norm_layer = made(tok_norm, hidden_size)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalizes x [n, l, d] with the CLS at position 0.

        Args:
            x: tokens [n, l, d].
            mask: boolean [n, l], True at real tokens, the opposite of PyTorch's ``src_key_padding_mask``; required if
                the token norm uses batch statistics and x is padded.

        Raises:
            ValueError: x has another shape, or is one sequence in training with a BatchNorm on the CLS.
        """
        if x.dim() != 3 or x.shape[2] != self.hidden_size:
            raise ValueError(f"SepNorm needs tokens [sequences, length, {self.hidden_size}], got {list(x.shape)}")
        check_mask(mask, x)
        forbid_single_row(self.cls_norm_layer, x.shape[0])
        cls = self.cls_norm_layer(x[:, 0])
        tok = normalize_rows(self.tok_norm_layer, x[:, 1:], None if mask is None else mask[:, 1:])
        return torch.cat([cls.unsqueeze(1), tok], dim=1)

    def packed(self, x: Tensor, num_cls: int) -> Tensor:
        """Normalizes packed rows x [n, d] whose first ``num_cls`` rows (possibly all) are CLS tokens."""
        forbid_single_row(self.cls_norm_layer, num_cls, "molecules")
        if x.shape[0] == num_cls:
            return self.cls_norm_layer(x)
        cls, tok = x.split([num_cls, x.shape[0] - num_cls])
        return torch.cat([self.cls_norm_layer(cls), self.tok_norm_layer(tok)])

    @property
    def of_atoms(self) -> nn.Module:
        return self.tok_norm_layer

    def freeze_token_norm(self) -> None:
        self.tok_norm_layer.requires_grad_(False)


class ShareNorm(nn.Module):
    """One norm for all tokens including the CLS, as in standard transformers; the baseline for SepNorm."""

    def __init__(self, hidden_size: int, norm: NormLayer = nn.LayerNorm):
        super().__init__()
        self.norm_layer = made(norm, hidden_size)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalizes x [n, l, d]; ``mask`` as in ``SepNorm.forward``."""
        check_mask(mask, x)
        return normalize_rows(self.norm_layer, x, mask)

    def packed(self, x: Tensor, num_cls: int) -> Tensor:
        """Normalizes packed rows x [n, d]; ``num_cls`` is ignored."""
        return self.norm_layer(x)

    @property
    def cls_sees_atoms(self) -> bool:
        return not isinstance(self.norm_layer, BY_ROW)

    @property
    def of_atoms(self) -> nn.Module:
        return self.norm_layer

    def freeze_token_norm(self) -> None:
        """Does nothing: the CLS uses the norm of all tokens."""


NORMS: dict[str, Callable[[int], TokenNorm]] = {
    "sepnorm": SepNorm,
    "sepnorm-layernorm": partial(SepNorm, cls_norm=nn.LayerNorm),
    "sepnorm-batchnorm": partial(SepNorm, tok_norm=nn.BatchNorm1d),
    "sepnorm-layernorm-batchnorm": partial(SepNorm, cls_norm=nn.LayerNorm, tok_norm=nn.BatchNorm1d),
    "sharenorm": ShareNorm,
    "sharenorm-batchnorm": partial(ShareNorm, norm=nn.BatchNorm1d),
}
