"""Optimizers. Tensors, numbers and strings of their state, and tensors and numbers of groups, are saved and resumed."""

from collections import defaultdict
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.errors import one_of
from graphormer_sepnorm.model import Network


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Weight matrices of linear layers with weight decay; norms, biases and embeddings without."""
    matrices = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    decay, rest = ([p for name, p in model.named_parameters() if (name in matrices) is of] for of in (True, False))
    return [
        {"name": "decay", "params": decay, "weight_decay": weight_decay},
        {"name": "no_decay", "params": rest, "weight_decay": 0.0},
    ]


def adamw(model: Network, train: TrainConfig) -> list[Optimizer]:
    """AdamW for everything. Source: Loshchilov and Hutter, ICLR 2019."""
    return [AdamW(parameter_groups(model, train.weight_decay), lr=train.lr, fused=True)]


class BatchedMuon(Muon):
    """PyTorch's Muon, batched over matrices of one shape, with Nesterov momentum and AdamW's step size."""

    _step_supports_amp_scaling = True
    found_inf: Tensor | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None if closure is None else torch.enable_grad()(closure)()
        of_shape: dict[tuple[int, torch.Size], list[tuple[Tensor, ...]]] = defaultdict(list)
        for number, group in enumerate(self.param_groups):
            lists: list[list[Tensor]] = [[] for _ in range(3)]
            self._init_group(group, *lists)
            for each in zip(*lists, strict=True):
                of_shape[number, each[0].shape].append(each)
        for (number, _), together in of_shape.items():
            group = self.param_groups[number]
            matrices, gradients, momenta = (list(tensors) for tensors in zip(*together, strict=True))
            if self.found_inf is not None:
                before = list(torch.stack(matrices))
                gradients = list(torch.stack(gradients).masked_fill(self.found_inf > 0, 0))
            torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
            directions = torch.stack(torch._foreach_lerp(gradients, momenta, group["momentum"]))
            changes = orthogonalized(directions, group["ns_coefficients"], group["ns_steps"], group["eps"])
            torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
            rate = 0.2 * max(directions.shape[1:]) ** 0.5 * group["lr"]
            torch._foreach_add_(matrices, list(changes.to(directions.dtype)), alpha=-rate)
            if self.found_inf is not None:
                torch._foreach_lerp_(matrices, before, [self.found_inf] * len(matrices))
        return loss


def orthogonalized(matrices: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Matrices [M, m, n] with singular values near 1, by the Newton-Schulz iteration. Source: Jordan et al., 2024."""
    a, b, c = coefficients
    tall = matrices.shape[1] > matrices.shape[2]
    x = (matrices.mT if tall else matrices).to(torch.bfloat16 if matrices.is_cuda else torch.float32)
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


def muon(model: Network, train: TrainConfig) -> list[Optimizer]:
    """Muon for the matrices of blocks, AdamW for the rest. Sources: Jordan et al., 2024; Liu et al., 2025."""
    matrices = [module.weight for module in model.layers.modules() if isinstance(module, nn.Linear)]
    taken = set(map(id, matrices))
    groups = parameter_groups(model, train.weight_decay)
    for group in groups:
        group["params"] = [parameter for parameter in group["params"] if id(parameter) not in taken]
    return [BatchedMuon(matrices, lr=train.lr, weight_decay=train.weight_decay), AdamW(groups, lr=train.lr, fused=True)]


OPTIMIZERS: dict[str, Callable[[Network, TrainConfig], list[Optimizer]]] = {"adamw": adamw, "muon": muon}


def find_optimizer(name: str) -> Callable[[Network, TrainConfig], list[Optimizer]]:
    return OPTIMIZERS[one_of("optimizer", name, OPTIMIZERS)]


def make_optimizers(model: Network, train: TrainConfig) -> list[Optimizer]:
    return find_optimizer(train.optimizer)(model, train)
