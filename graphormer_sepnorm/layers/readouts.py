"""Readouts: from the final embeddings to the one vector per molecule that the head sees.

A new one is a function here and a line in ``READOUTS``. Axis letters: B molecules, T atoms, D width.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


def read_cls(cls: Tensor, atoms: Tensor, ptr: Tensor) -> Tensor:
    return cls


def read_sum(cls: Tensor, atoms: Tensor, ptr: Tensor) -> Tensor:
    from torch_geometric.utils import segment  # its import takes seconds

    return segment(atoms, ptr, reduce="sum")


def read_mean(cls: Tensor, atoms: Tensor, ptr: Tensor) -> Tensor:
    from torch_geometric.utils import segment

    return segment(atoms, ptr, reduce="mean")


def read_cls_and_sum(cls: Tensor, atoms: Tensor, ptr: Tensor) -> Tensor:
    return torch.cat([cls, read_sum(cls, atoms, ptr)], dim=1)


class Readout(NamedTuple):
    """``read(cls [B, D], atoms [T, D], ptr [B + 1])`` gives [B, parts * D]."""

    read: Callable[[Tensor, Tensor, Tensor], Tensor]
    parts: int


READOUTS = {
    "cls": Readout(read_cls, 1),
    "sum": Readout(read_sum, 1),
    "mean": Readout(read_mean, 1),
    "cls+sum": Readout(read_cls_and_sum, 2),
}
