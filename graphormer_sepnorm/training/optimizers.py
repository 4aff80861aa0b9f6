"""Optimizers: which parameters are updated how.

A new one is a function and a line in ``OPTIMIZERS``. Whatever tensors, numbers and words it keeps of a parameter, and
tensors and numbers in its groups, is saved and resumed.
"""

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol, overload, runtime_checkable

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer
from torch.optim.adamw import adamw as move_by_adamw

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.system.distributed import map_shares


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Weight matrices of linear layers with decay; norms, biases and embeddings without."""
    matrices = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    groups: dict[str, list[nn.Parameter]] = {"decay": [], "no_decay": []}
    for name, parameter in model.named_parameters():
        groups["decay" if name in matrices else "no_decay"].append(parameter)
    return [
        {"name": "decay", "params": groups["decay"], "weight_decay": weight_decay},
        {"name": "no_decay", "params": groups["no_decay"], "weight_decay": 0.0},
    ]


class Part(NamedTuple):
    """Parameters that an optimizer moves alike, and how: tensors and operations that a GPU captures as a graph.

    Attributes:
        move: called with a learning rate, which may be a tensor [], and with the lists below, each of ``kept`` for
            itself; changes parameters and what is kept in place.
        parameters, gradients: n tensors each.
        kept: lists of n tensors each, which the optimizer keeps of the parameters.
    """

    move: Callable[..., None]
    parameters: list[Tensor]
    gradients: list[Tensor]
    kept: list[list[Tensor]]

    def lasting(self) -> list[Tensor]:
        """What is changed in place."""
        return [*self.parameters, *(tensor for tensors in self.kept for tensor in tensors)]


@runtime_checkable
class Parted(Protocol):
    """An optimizer whose step is that of parts, one after another."""

    param_groups: list[dict]

    def parts(self) -> list[Part]:
        """Of the parameters that have a gradient; what is kept of them is there from now on."""


class PartedAdamW(AdamW):
    """PyTorch's fused AdamW, in parts."""

    def parts(self) -> list[Part]:
        return [self.part(group) for group in self.param_groups]

    def part(self, group: dict) -> Part:
        lists: list[list[Tensor]] = [[] for _ in range(6)]
        self._init_group(group, *lists)
        parameters, gradients, means, squares, _, steps = lists
        beta1, beta2 = group["betas"]
        move = partial(fused_adamw, beta1=beta1, beta2=beta2, weight_decay=group["weight_decay"], eps=group["eps"])
        return Part(move, parameters, gradients, [means, squares, steps])


def fused_adamw(
    lr: float | Tensor,
    parameters: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    steps: list[Tensor],
    *,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
) -> None:
    """An update by PyTorch's AdamW in as few launches as there can be: the compiler does its own fusing."""
    compiled = torch.compiler.is_compiling()
    move_by_adamw(
        parameters,
        gradients,
        means,
        squares,
        [],
        steps,
        fused=not compiled,
        foreach=compiled,
        capturable=compiled,
        amsgrad=False,
        maximize=False,
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        weight_decay=weight_decay,
        eps=eps,
    )


def adamw(model: Network, train: TrainConfig) -> list[Optimizer]:
    """AdamW for everything. Source: Loshchilov and Hutter, ICLR 2019."""
    return [PartedAdamW(parameter_groups(model, train.weight_decay), lr=train.lr, fused=True)]


class BatchedMuon(Muon):
    """PyTorch's Muon, with all matrices of one shape in one batch of matrix products: a third of the time.

    Always with Nesterov's momentum and steps of the size of AdamW's (``adjust_lr_fn="match_rms_adamw"``).
    """

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            for part in self.parts_of(group):
                part.move(group["lr"], part.parameters, part.gradients, *part.kept)
        return loss

    def parts(self) -> list[Part]:
        return [part for group in self.param_groups for part in self.parts_of(group)]

    def parts_of(self, group: dict) -> list[Part]:
        """A part for each shape of matrices."""
        lists: list[list[Tensor]] = [[] for _ in range(3)]
        self._init_group(group, *lists)
        move = partial(
            batched_muon,
            momentum=group["momentum"],
            weight_decay=group["weight_decay"],
            coefficients=group["ns_coefficients"],
            steps=group["ns_steps"],
            eps=group["eps"],
        )
        of_shape: dict[torch.Size, Part] = defaultdict(lambda: Part(move, [], [], [[]]))
        for matrix, gradient, kept in zip(*lists, strict=True):
            part = of_shape[matrix.shape]
            part.parameters.append(matrix)
            part.gradients.append(gradient)
            part.kept[0].append(kept)
        return list(of_shape.values())


def batched_muon(
    lr: float | Tensor,
    matrices: list[Tensor],
    gradients: list[Tensor],
    momenta: list[Tensor],
    *,
    momentum: float,
    weight_decay: float,
    coefficients: tuple[float, float, float],
    steps: int,
    eps: float,
) -> None:
    """Moves matrices of one shape, with Nesterov momentum and a step of the size of AdamW's."""
    torch._foreach_lerp_(momenta, gradients, 1 - momentum)
    directions = torch.stack(torch._foreach_lerp(gradients, momenta, momentum))
    changes = map_shares(lambda share: orthogonalized(share, coefficients, steps, eps), directions)
    torch._foreach_mul_(matrices, 1 - lr * weight_decay)
    rate = 0.2 * max(directions.shape[1:]) ** 0.5 * lr
    changes = changes.to(directions.dtype)
    if isinstance(rate, Tensor):  # read where it lies: as alpha it would be waited for
        torch._foreach_sub_(matrices, list(changes * rate))
    else:
        torch._foreach_add_(matrices, list(changes), alpha=-rate)


def orthogonalized(matrices: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Matrices [M, m, n] with their singular values near 1, by Newton and Schulz's iteration.

    In bfloat16 on a GPU, in float32 on the CPU: without instructions for bfloat16, which most processors lack, its
    products take thirty times as long there. Source: Jordan et al., "Muon", 2024.
    """
    a, b, c = coefficients
    tall = matrices.shape[1] > matrices.shape[2]
    x = (matrices.mT if tall else matrices).to(torch.bfloat16 if matrices.is_cuda else torch.float32)
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


def muon(model: Network, train: TrainConfig) -> list[Optimizer]:
    """Muon for the weight matrices of the blocks, AdamW for the rest, at one learning rate.

    Muon moves a matrix along its orthogonalized momentum, so that no direction of the gradient drowns out the others;
    its step is scaled to the root mean square of AdamW's. Sources: Jordan et al., "Muon", 2024; Liu et al., "Muon is
    scalable for LLM training", 2025, section 2.2.
    """
    matrices = [module.weight for module in model.layers.modules() if isinstance(module, nn.Linear)]
    taken = set(map(id, matrices))
    groups = parameter_groups(model, train.weight_decay)
    for group in groups:
        group["params"] = [parameter for parameter in group["params"] if id(parameter) not in taken]
    return [
        BatchedMuon(matrices, lr=train.lr, weight_decay=train.weight_decay),
        PartedAdamW(groups, lr=train.lr, fused=True),
    ]


OPTIMIZERS: dict[str, Callable[[Network, TrainConfig], list[Optimizer]]] = {"adamw": adamw, "muon": muon}


def find_optimizer(name: str) -> Callable[[Network, TrainConfig], list[Optimizer]]:
    """The entry of ``OPTIMIZERS``; raises InputError if there is none of that name."""
    if name not in OPTIMIZERS:
        raise InputError(f"unknown optimizer {name!r}, choose one of {', '.join(OPTIMIZERS)}")
    return OPTIMIZERS[name]


def make_optimizers(model: Network, train: TrainConfig) -> list[Optimizer]:
    """The optimizers of a run, each for its own parameters; raises InputError as ``find_optimizer``."""
    return find_optimizer(train.optimizer)(model, train)
