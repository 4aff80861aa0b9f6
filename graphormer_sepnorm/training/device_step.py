"""Updates on a GPU, none of which waits for it: the molecules lie there, shapes are fixed, losses are read later.

An update is three graphs, each launched at once: from the numbers of its molecules to the loss, back to the gradients,
and from these to changed weights.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torch.utils._triton import has_triton

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.datasets.on_device import DeviceDataset, fits, random_shape
from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.tasks import Task
from graphormer_sepnorm.training.optimizers import Part, Parted
from graphormer_sepnorm.training.step import find_loss, set_rate

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class DeviceStep:
    """One update after another on a device, of one process; each is launched and none is waited for.

    Args:
        model: on the device, in training.
        task: its numbers on the device.
        train: the training split, moved there.
        config: batch size, precision, clipping and averaging.
        optimizers: of the model's parameters.
        average: follows the model; None: nothing does.

    Attributes:
        shape: of the batches that most are.
    """

    updates_per_reading = 100  # reading waits for the device

    def __init__(
        self,
        model: Network,
        task: Task,
        train: MoleculeDataset,
        config: TrainConfig,
        optimizers: Sequence[Parted],
        average: AveragedModel | None = None,
    ):
        self.model, self.task, self.train, self.config = model, task, train, config
        self.optimizers, self.average = optimizers, average
        self.device = model.cls.device
        self.data = DeviceDataset(train, self.device)
        self.shape = random_shape(self.data.sizes, min(config.batch_size, len(train)))
        self.rate, self.pull = torch.zeros((), device=self.device), torch.zeros((), device=self.device)
        self.captures = self.device.type == "cuda" and has_triton()
        if self.captures:
            torch.compiler.reset()  # graphs of another model count towards a limit, and hold memory
            keep_in_place([*self.data.tensors(), self.rate, self.pull])
        self.pairs = Pairs([], [], [], []) if average is None else pairs_of(average.module, model)
        if self.captures:
            keep_in_place(tensor for tensors in self.pairs for tensor in tensors)
        self.find_loss_of_numbers = self.captured(self.find_loss_of_numbers_)
        self.change = self.captured(partial(change, most=config.clip_norm))
        if words := large_molecules(self.data.sizes[:, 0], self.shape.length):
            warnings.warn(words, stacklevel=2)

    def captured(self, function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        """The function as one graph that a GPU runs without further launches, where PyTorch can compile it."""
        if not self.captures:
            return function
        return torch.compile(function, fullgraph=True, dynamic=False, mode="reduce-overhead")

    def batch(self, molecules: np.ndarray) -> GraphBatch:
        """The molecules with these numbers on the device, in the fixed shape if they fit into it."""
        if fits(self.data.sizes[molecules], self.shape):
            return self.data.batch(self.data.numbers(molecules, self.shape.molecules), self.shape)
        return self.train.batch(molecules).to(self.device)

    def __call__(self, molecules: np.ndarray, lr: float) -> Tensor:
        """Updates the model by a batch, and the averaged one: [2], the loss and the gradient's norm before clipping.

        No weight is changed by an update whose loss or gradient is not finite; statistics of BatchNorm and what
        optimizers keep are.
        """
        self.model.zero_grad()
        if self.captures:
            torch.compiler.cudagraph_mark_step_begin()  # what graphs gave since the last one is no longer needed
        if fits(self.data.sizes[molecules], self.shape):
            loss = self.find_loss_of_numbers(self.data.numbers(molecules, self.shape.molecules))
        else:
            loss = find_loss(self.model, self.task, self.config.precision, self.batch(molecules))
        loss.backward()
        return self.update(loss.detach(), lr)

    def find_loss_of_numbers_(self, numbers: Tensor) -> Tensor:
        return find_loss(self.model, self.task, self.config.precision, self.data.batch(numbers, self.shape))

    def update(self, loss: Tensor, lr: float) -> Tensor:
        """Moves weights by their gradients and averages after them: [2] as above."""
        parts = [part for optimizer in self.optimizers for part in optimizer.parts()]
        self.rate.fill_(lr)
        if self.average is not None:
            self.pull.fill_(1 - self.config.averaging if self.average.n_averaged else 1.0)
            self.average.n_averaged += 1
        set_rate(self.optimizers, lr)
        if self.captures:
            keep_in_place(tensor for part in parts for tensor in part.lasting())
        with torch.no_grad():
            given = self.change(parts, self.pairs, loss, self.rate, self.pull)
        return given.clone()  # the graph's next run writes there


class Pairs(NamedTuple):
    """Averaged weights and those that they follow, and the buffers that are copied beside them."""

    averages: list[Tensor]
    weights: list[Tensor]
    copies: list[Tensor]
    buffers: list[Tensor]


def pairs_of(average: nn.Module, model: nn.Module) -> Pairs:
    """The tensors themselves: views of weights that change beside them would keep a graph from being captured."""
    return Pairs(list(average.parameters()), list(model.parameters()), list(average.buffers()), list(model.buffers()))


def change(parts: list[Part], pairs: Pairs, loss: Tensor, rate: Tensor, pull: Tensor, most: float) -> Tensor:
    """Limits gradients, moves parameters by them, and averages after these.

    Args:
        loss: [] that the gradients are of; if it or their norm is not finite, nothing moves.
        rate: [] learning rate.
        pull: [] what part of the way to the weights the averages go.
        most: norm of the gradients.

    Returns:
        the loss and the norm of the gradients [2].
    """
    gradients, norm, finite = limited([gradient for part in parts for gradient in part.gradients], loss, most)
    rate = rate.where(finite, 0)
    first = 0
    for part in parts:
        past = first + len(part.parameters)
        part.move(rate, part.parameters, gradients[first:past], *part.kept)
        first = past
    if pairs.averages:
        ways = torch._foreach_sub(pairs.weights, pairs.averages)
        torch._foreach_add_(pairs.averages, torch._foreach_mul(ways, pull))
    if pairs.copies:
        torch._foreach_copy_(pairs.copies, pairs.buffers)
    return torch.stack([loss, norm])


def limited(gradients: list[Tensor], loss: Tensor, most: float) -> tuple[list[Tensor], Tensor, Tensor]:
    """Gradients scaled down to a norm of ``most``, all zero if the loss or the norm is not finite.

    Returns:
        them, their norm before [], and whether both are finite [].
    """
    norm = nn.utils.get_total_norm(gradients)
    finite = norm.isfinite() & loss.isfinite()
    factor = (most / (norm + 1e-6)).clamp(max=1)
    return [(gradient * factor).where(finite, 0) for gradient in gradients], norm, finite


def keep_in_place(tensors: Iterable[Tensor]) -> None:
    """Promises that tensors stay where they are; a captured graph would copy them for each run."""
    for tensor in tensors:
        torch._dynamo.mark_static_address(tensor, guard=False)


def large_molecules(num_atoms: np.ndarray, length: int) -> str:
    """A warning of molecules that the shape of most batches has no room for; "" if there are none."""
    count = int((num_atoms >= length).sum())
    if count == 0:
        return ""
    return (
        f"{count:,} of {len(num_atoms):,} training molecules have {length} atoms or more, the largest "
        f"{num_atoms.max():,}: their batches are computed operation by operation, which is slower"
    )
