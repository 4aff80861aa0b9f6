"""Norms of the encoder blocks, in their published form [n, l, d] and on packed rows.

Axis letters: n sequences, l tokens, d width; packed: N = B + T rows, the CLS rows of B molecules before T atom rows.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn

NormLayer = Callable[[int], nn.Module]


def normalize_rows(norm: nn.Module, x: Tensor, mask: Tensor | None) -> Tensor:
    """Applies ``norm`` to the last axis of x [..., d], to the positions where ``mask`` [...] is True alone.

    Positions outside the mask keep their values, so a norm with batch statistics never sees padding.
    """
    if mask is None:
        return norm(x.reshape(-1, x.shape[-1])).view(x.shape)
    return x.masked_scatter(mask.unsqueeze(-1), norm(x[mask]))


class SumOverProcesses(torch.autograd.Function):
    """The sum of a tensor over all processes; so is its gradient."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        total = gradient.clone()
        dist.all_reduce(total)
        return total


class SyncedBatchNorm(nn.BatchNorm1d):
    """BatchNorm whose statistics in training are those of the rows of all processes, on any device.

    A module of this class and a ``BatchNorm1d`` have the same parameters and buffers.
    """

    @classmethod
    def like(cls, norm: nn.BatchNorm1d) -> "SyncedBatchNorm":
        """A synchronized copy of a BatchNorm."""
        copy = cls(norm.num_features, norm.eps, norm.momentum)
        copy.load_state_dict(norm.state_dict())
        return copy

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Variance and mean [d], the former without Bessel's correction, of the rows x [n, d] of all processes."""
        count = self.count(x)
        mean = SumOverProcesses.apply(x.sum(dim=0)) / count
        return SumOverProcesses.apply((x - mean).square().sum(dim=0)) / count, mean

    def count(self, x: Tensor) -> Tensor:
        """The number of rows of all processes."""
        return SumOverProcesses.apply(x.new_tensor(len(x)))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        variance, mean = self.statistics(x)
        with torch.no_grad():
            count = self.count(x)
            self.num_batches_tracked += 1
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * count / (count - 1), self.momentum)
        return (x - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias


def batch_statistics(norm: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """The variance and the mean [d] that a BatchNorm divides by and subtracts in training, for rows x [n, d]."""
    if isinstance(norm, SyncedBatchNorm):
        return norm.statistics(x)
    return torch.var_mean(x, dim=0, correction=0)


def forbid_single_row(norm: nn.Module, rows: int) -> None:
    """Raises ValueError if ``norm`` would take batch statistics of one row in training.

    Over several processes a row need not be alone: training sees to it that it is not.
    """
    alone = isinstance(norm, nn.modules.batchnorm._BatchNorm) and not isinstance(norm, SyncedBatchNorm)
    if rows < 2 and norm.training and alone:
        raise ValueError(
            "BatchNorm on the CLS needs at least 2 molecules in a training batch, got 1: "
            "use a larger batch, drop the last incomplete one, or choose LayerNorm for the CLS"
        )


class SepNorm(nn.Module):
    """Separate normalization: the CLS token and the other tokens have norms of their own.

    Source: Chen et al., "On Separate Normalization in Self-supervised Transformers", NeurIPS 2023, section 3.

    Args:
        hidden_size: width d.
        cls_norm: makes the norm of the CLS rows from the width; BatchNorm1d in the paper.
        tok_norm: makes the norm of the other rows from the width; LayerNorm in the paper.
    """

    def __init__(self, hidden_size: int, cls_norm: NormLayer = nn.BatchNorm1d, tok_norm: NormLayer = nn.LayerNorm):
        super().__init__()
        self.cls_norm_layer = cls_norm(hidden_size)
        self.tok_norm_layer = tok_norm(hidden_size)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalizes x [n, l, d] with the CLS at position 0.

        Args:
            x: tokens [n, l, d].
            mask: [n, l], True at real tokens; needed where the token norm keeps batch statistics and x is padded.

        Raises:
            ValueError: one sequence in training with a BatchNorm on the CLS.
        """
        forbid_single_row(self.cls_norm_layer, x.shape[0])
        cls = self.cls_norm_layer(x[:, 0])
        tok = normalize_rows(self.tok_norm_layer, x[:, 1:], None if mask is None else mask[:, 1:])
        return torch.cat([cls.unsqueeze(1), tok], dim=1)

    def packed(self, x: Tensor, num_cls: int) -> Tensor:
        """Normalizes packed rows x [N, d] whose first ``num_cls`` rows are the CLS tokens; raises as ``forward``."""
        forbid_single_row(self.cls_norm_layer, num_cls)
        cls, tok = x.split([num_cls, len(x) - num_cls])
        return torch.cat([self.cls_norm_layer(cls), self.tok_norm_layer(tok)])


class ShareNorm(nn.Module):
    """One norm for all tokens, the CLS among them: what transformers do, and the baseline of SepNorm."""

    def __init__(self, hidden_size: int, norm: NormLayer = nn.LayerNorm):
        super().__init__()
        self.norm_layer = norm(hidden_size)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalizes x [n, l, d]; ``mask`` [n, l] is True at real tokens."""
        return normalize_rows(self.norm_layer, x, mask)

    def packed(self, x: Tensor, num_cls: int) -> Tensor:
        """Normalizes packed rows x [N, d]; ``num_cls`` is not needed, there is one norm for all."""
        return self.norm_layer(x)


NORMS: dict[str, NormLayer] = {
    "sepnorm": SepNorm,
    "sepnorm-layernorm": partial(SepNorm, cls_norm=nn.LayerNorm),
    "sepnorm-batchnorm": partial(SepNorm, tok_norm=nn.BatchNorm1d),
    "sepnorm-layernorm-batchnorm": partial(SepNorm, cls_norm=nn.LayerNorm, tok_norm=nn.BatchNorm1d),
    "sharenorm": ShareNorm,
    "sharenorm-batchnorm": partial(ShareNorm, norm=nn.BatchNorm1d),
}
