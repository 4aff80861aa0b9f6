"""Updates on a GPU, none of which waits for it: the molecules lie there, shapes are fixed, losses are read later."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._triton import has_triton

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.data.on_device import DeviceDataset, fits, random_shape
from graphormer_sepnorm.data.store import MoleculeDataset
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.system.device import autocast
from graphormer_sepnorm.tasks import Task

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class DeviceStep:
    """One optimiser step after another on a device; each is launched and none is waited for.

    Args:
        model: on the device, in training.
        task: its numbers on the device.
        train: the training split, moved there.
        config: batch size, precision and clipping.
        optimizers: of the model's parameters.

    Attributes:
        shape: of the batches that most are.
    """

    def __init__(
        self, model: Network, task: Task, train: MoleculeDataset, config: TrainConfig, optimizers: Sequence[Optimizer]
    ):
        self.model, self.task, self.train, self.config = model, task, train, config
        self.optimizers = optimizers
        self.device = model.cls.device
        self.data = DeviceDataset(train, self.device)
        self.shape = random_shape(self.data.sizes, min(config.batch_size, len(train)))
        self.rate = torch.zeros((), device=self.device)
        self.find_loss_of_numbers = captured(self.find_loss_of_numbers_, self.device, self.data.tensors())
        self.limited = captured(partial(limited, most=config.clip_norm), self.device)
        if words := large_molecules(self.data.sizes[:, 0], self.shape.length):
            warnings.warn(words, stacklevel=2)

    def __call__(self, molecules: np.ndarray, lr: float) -> Tensor:
        """Updates the model by a batch: [2], the loss and the norm of the gradient before clipping.

        Nothing is changed by a step whose loss or gradient is not finite, but for statistics of BatchNorm.
        """
        self.model.zero_grad()
        if fits(self.data.sizes[molecules], self.shape):
            loss = self.find_loss_of_numbers(self.data.numbers(molecules, self.shape.molecules))
        else:
            loss = self.find_loss(self.batch(molecules))
        loss.backward()
        learning = [parameter for parameter in self.model.parameters() if parameter.grad is not None]
        gradients = [parameter.grad for parameter in learning if parameter.grad is not None]
        gradients, norm, finite = self.limited(gradients, loss.detach())
        for parameter, gradient in zip(learning, gradients, strict=True):
            parameter.grad = gradient
        self.rate.fill_(lr)
        self.rate.masked_fill_(~finite, 0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.rate
            optimizer.step()
        return torch.stack([loss.detach(), norm])

    def batch(self, molecules: np.ndarray) -> GraphBatch:
        """The molecules with these numbers on the device, in the fixed shape if they fit into it."""
        if fits(self.data.sizes[molecules], self.shape):
            return self.data.batch(self.data.numbers(molecules, self.shape.molecules), self.shape)
        return self.train.batch(molecules).to(self.device)

    def find_loss_of_numbers_(self, numbers: Tensor) -> Tensor:
        return self.find_loss(self.data.batch(numbers, self.shape))

    def find_loss(self, batch: GraphBatch) -> Tensor:
        with autocast(self.config.precision, self.device):
            output = self.model(batch)
        assert batch.y is not None
        return self.task.loss(output.float(), batch.y, batch.bounds)


def captured(
    function: Callable[Parameters, Result], device: torch.device, lasting: Iterable[Tensor] = ()
) -> Callable[Parameters, Result]:
    """The function as one graph that a GPU runs without further launches, where PyTorch can compile it.

    Args:
        lasting: what it reads and nobody moves; a captured graph would copy it for each run.
    """
    if device.type != "cuda" or not has_triton():
        return function
    for tensor in lasting:
        torch._dynamo.mark_static_address(tensor, guard=False)
    return torch.compile(function, fullgraph=True, dynamic=False, mode="reduce-overhead")


def limited(gradients: list[Tensor], loss: Tensor, most: float) -> tuple[list[Tensor], Tensor, Tensor]:
    """Gradients scaled down to a norm of ``most``, all zero if the loss or the norm is not finite.

    Returns:
        them, their norm before [], and whether both are finite [].
    """
    norm = nn.utils.get_total_norm(gradients)
    finite = norm.isfinite() & loss.isfinite()
    factor = (most / (norm + 1e-6)).clamp(max=1)
    return [(gradient * factor).where(finite, 0) for gradient in gradients], norm, finite


def large_molecules(num_atoms: np.ndarray, length: int) -> str:
    """A warning of molecules that the shape of most batches has no room for; "" if there are none."""
    count = int((num_atoms >= length).sum())
    if count == 0:
        return ""
    return (
        f"{count:,} of {len(num_atoms):,} training molecules have {length} atoms or more, the largest "
        f"{num_atoms.max():,}: their batches are computed operation by operation, which is slower"
    )


def follow(average: nn.Module, model: nn.Module, decay: float, first: bool) -> None:
    """Moves averaged weights towards those of a model, or to them at ``first``; buffers are copied."""
    with torch.no_grad():
        pairs = list(zip(average.parameters(), model.parameters(), strict=True))
        averages, now = ([pair[side].detach() for pair in pairs] for side in (0, 1))
        torch._foreach_lerp_(averages, now, 1.0 if first else 1 - decay)
        for kept, buffer in zip(average.buffers(), model.buffers(), strict=True):
            kept.copy_(buffer)
