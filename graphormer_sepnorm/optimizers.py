"""Optimizers: which parameters are updated how. A new one is a function here and a line in ``OPTIMIZERS``."""

from collections.abc import Callable

from torch import nn
from torch.optim import AdamW, Muon, Optimizer

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.model import Graphormer

# What the optimizers remember of a parameter between updates.
MOMENTS: dict[type[Optimizer], tuple[str, ...]] = {
    AdamW: ("step", "exp_avg", "exp_avg_sq"),
    Muon: ("momentum_buffer",),
}


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Weight matrices of linear layers with decay; norms, biases and embeddings without."""
    matrices = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    groups = {"decay": [], "no_decay": []}
    for name, parameter in model.named_parameters():
        groups["decay" if name in matrices else "no_decay"].append(parameter)
    return [
        {"name": "decay", "params": groups["decay"], "weight_decay": weight_decay},
        {"name": "no_decay", "params": groups["no_decay"], "weight_decay": 0.0},
    ]


def adamw(model: Graphormer, train: TrainConfig) -> list[Optimizer]:
    """AdamW for everything. Source: Loshchilov and Hutter, ICLR 2019."""
    return [AdamW(parameter_groups(model, train.weight_decay), lr=train.lr, fused=True)]


def muon(model: Graphormer, train: TrainConfig) -> list[Optimizer]:
    """Muon for the weight matrices of the blocks, AdamW for the rest, at one learning rate.

    Muon moves a matrix along its orthogonalized momentum, so that no direction of the gradient drowns out the others;
    its step is scaled to the root mean square of AdamW's. Sources: Jordan et al., "Muon", 2024; Liu et al., "Muon is
    scalable for LLM training", 2025, section 2.2.
    """
    matrices = [module.weight for module in model.blocks.modules() if isinstance(module, nn.Linear)]
    taken = set(map(id, matrices))
    groups = parameter_groups(model, train.weight_decay)
    for group in groups:
        group["params"] = [parameter for parameter in group["params"] if id(parameter) not in taken]
    return [
        Muon(matrices, lr=train.lr, weight_decay=train.weight_decay, adjust_lr_fn="match_rms_adamw"),
        AdamW(groups, lr=train.lr, fused=True),
    ]


OPTIMIZERS: dict[str, Callable[[Graphormer, TrainConfig], list[Optimizer]]] = {"adamw": adamw, "muon": muon}
