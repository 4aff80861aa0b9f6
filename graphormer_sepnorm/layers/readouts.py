"""Readouts: from the final embeddings to the one vector per molecule that the head sees.

A new one is a function here and a line in ``READOUTS``; sums over molecules are those of ``sum_atoms``, which knows
batches of a fixed shape. Axis letters: B molecules, T atoms, D width.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from graphormer_sepnorm.graphs import Shape
from graphormer_sepnorm.kernels.accelerator import sum_of_molecules


def sum_atoms(atoms: Tensor, ptr: Tensor, shape: Shape | None) -> Tensor:
    """The sum over the atoms [T, D] of each molecule, [B, D]; zero for a molecule without atoms."""
    if shape is not None:
        return sum_of_molecules(atoms, ptr, shape)
    from torch_geometric.utils import segment  # its import takes seconds

    return segment(atoms, ptr, reduce="sum")


def read_cls(cls: Tensor, atoms: Tensor, ptr: Tensor, shape: Shape | None = None) -> Tensor:
    return cls


def read_sum(cls: Tensor, atoms: Tensor, ptr: Tensor, shape: Shape | None = None) -> Tensor:
    return sum_atoms(atoms, ptr, shape)


def read_mean(cls: Tensor, atoms: Tensor, ptr: Tensor, shape: Shape | None = None) -> Tensor:
    if shape is not None:
        return sum_atoms(atoms, ptr, shape) / ptr.diff().clamp(min=1).unsqueeze(1)
    from torch_geometric.utils import segment

    return segment(atoms, ptr, reduce="mean")


def read_cls_and_sum(cls: Tensor, atoms: Tensor, ptr: Tensor, shape: Shape | None = None) -> Tensor:
    return torch.cat([cls, sum_atoms(atoms, ptr, shape)], dim=1)


def read_cls_and_mean(cls: Tensor, atoms: Tensor, ptr: Tensor, shape: Shape | None = None) -> Tensor:
    return torch.cat([cls, read_mean(cls, atoms, ptr, shape)], dim=1)


class Read(Protocol):
    def __call__(self, cls: Tensor, atoms: Tensor, ptr: Tensor, shape: Shape | None = None) -> Tensor:
        """From cls [B, D], atoms [T, D] and ptr [B + 1] of a batch, of a fixed shape if there is one, to
        [B, parts * D]."""


class Readout(NamedTuple):
    read: Read
    parts: int


READOUTS = {
    "cls": Readout(read_cls, 1),
    "sum": Readout(read_sum, 1),
    "mean": Readout(read_mean, 1),
    "cls+sum": Readout(read_cls_and_sum, 2),
    "cls+mean": Readout(read_cls_and_mean, 2),
}
