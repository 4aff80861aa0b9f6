"""BatchNorm over several processes, and recomputation of its statistics before an evaluation."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.distributed import all_reduce, gather, num_processes

Batch = TypeVar("Batch")


def synchronize_batch_norms(model: nn.Module) -> None:
    """Replaces the BatchNorms of a model, in place, by ones whose statistics are over all processes."""
    if num_processes() > 1:
        for module in model.modules():
            if type(module) is nn.BatchNorm1d:
                module.__class__ = SyncedBatchNorm  # which keeps nothing more


def statistics(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Number [], mean [d] and variance [d] of the rows x [n, d] of all processes (Chan, Golub and LeVeque, 1983)."""
    variance, mean = torch.var_mean(x, dim=0, correction=0)
    each = gather(torch.cat([x.new_full((1,), x.shape[0]), mean, variance]))  # [processes, 1 + 2 d]
    counts, means, variances = each.split([1, x.shape[1], x.shape[1]], dim=1)
    count = counts.sum()
    mean = (counts * means).sum(dim=0) / count
    variance = (counts * (variances + (means - mean).square())).sum(dim=0) / count
    return count, mean, variance


class Normalize(torch.autograd.Function):
    """Standardizes the rows x [n, d], given the statistics over all processes."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, count: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
        normal = (x - mean).mul_(scale)
        ctx.save_for_backward(normal, count, scale)
        return normal

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        normal, count, scale = ctx.saved_tensors
        sums = torch.stack([gradient.sum(dim=0), (gradient * normal).sum(dim=0)])  # [2, d]
        all_reduce(sums)
        constant, slope = sums / count
        return (gradient - constant).addcmul_(normal, slope, value=-1).mul_(scale), None, None, None


class SyncedBatchNorm(nn.BatchNorm1d):
    """BatchNorm whose training statistics are over the rows of all processes, on any device."""

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor
    momentum: float

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        x = x.to(self.running_mean.dtype)  # bfloat16 cannot count the rows
        with torch.no_grad():
            count, mean, variance = statistics(x)
            self.num_batches_tracked += 1
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * count / (count - 1), self.momentum)
        return torch.addcmul(self.bias, Normalize.apply(x, count, mean, (variance + self.eps).rsqrt()), self.weight)


def batch_statistics(norm: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """The variance and mean [d] with which a BatchNorm normalizes rows x [n, d], or x [n, d, ...], in training."""
    if isinstance(norm, SyncedBatchNorm | nn.SyncBatchNorm):
        _, mean, variance = statistics(x.movedim(1, -1).flatten(0, -2))
        return variance, mean
    return torch.var_mean(x, dim=[0, *range(2, x.dim())], correction=0)


def freeze_statistics(model: nn.Module) -> None:
    """Makes the BatchNorms of a model in training, in place, use their running statistics and keep them."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.eval()


@torch.no_grad()
def reestimate_batch_norm(model: nn.Module, encode: Callable[[Batch], object], batches: Iterable[Batch]) -> None:
    """Replaces the running statistics of BatchNorms by averages over ``batches`` with the current weights.

    The model is in evaluation mode afterwards.

    Args:
        model: the model that contains the norms, of this package or another one.
        encode: passes a batch through the norms: ``model`` itself, or a method such as ``Network.encode``. Norms that
            it does not reach keep their statistics.
        batches: of training examples, in the form that ``encode`` reads.

    The CLS starts as one constant vector, so in early layers small changes of the weights shift its statistics by many
    standard deviations, and running averages from before those changes are wrong for the evaluation. The variance is
    the one used in training, without the factor n / (n - 1) of PyTorch's running variance: with the few CLS rows of a
    batch and two norms per layer, that factor accumulates. Dropout is off, as it is when the statistics are used;
    otherwise its noise would count as variance of the examples. ``torch.optim.swa_utils.update_bn`` differs in both.

    Raises:
        InputError: no batch passed through any of the norms, or ``encode`` is not a function.
    """
    if not callable(encode):
        wanted = "the second argument must pass a batch through the norms, as the model itself does"
        kind = type(encode).__name__
        raise InputError(f"{wanted}, it is {kind}: call reestimate_batch_norm(model, model, batches)")
    norms = (module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm))
    seen: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {norm: [] for norm in norms if norm.running_mean is not None}
    model.eval()
    if not seen:
        return

    def record(norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen[norm].append(batch_statistics(norm, inputs[0].to(torch.promote_types(inputs[0].dtype, torch.float32))))

    hooks = [norm.train().register_forward_pre_hook(record) for norm in seen]
    try:
        for batch in batches:
            encode(batch)
    finally:
        for hook in hooks:
            hook.remove()
        model.eval()
    if not any(seen.values()):
        advice = "give at least one batch, in a list or a DataLoader, since an iterator that was read before is empty"
        raise InputError(f"no batch passed through the BatchNorms, so they keep their statistics: {advice}")
    for module, recorded in seen.items():
        if recorded:
            variances, means = zip(*recorded, strict=True)
            module.get_buffer("running_var").copy_(torch.stack(variances).mean(0))
            module.get_buffer("running_mean").copy_(torch.stack(means).mean(0))
