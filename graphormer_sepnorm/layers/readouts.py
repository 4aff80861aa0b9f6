"""Readouts: from the final embeddings to one vector per molecule, the input of the head."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

# Maps cls [B, D], atoms [T, D] and the ptr [B + 1] of a batch to [B, parts * D].
Read = Callable[[Tensor, Tensor, Tensor], Tensor]


def sum_atoms(atoms: Tensor, ptr: Tensor) -> Tensor:
    """The sum over the atoms [T, D] of each molecule, [B, D], not in bfloat16, where 300 ones add up to 256."""
    wide = atoms.to(torch.promote_types(atoms.dtype, torch.float32))
    if atoms.device.type in ("cpu", "cuda", "meta"):
        total = torch.segment_reduce(wide, "sum", offsets=ptr, axis=0, unsafe=True)
    else:
        molecule = torch.arange(len(ptr) - 1, device=ptr.device).repeat_interleave(ptr.diff())
        total = wide.new_zeros(len(ptr) - 1, wide.shape[1]).index_add(0, molecule, wide)
    return total.to(atoms.dtype)


def mean_atoms(atoms: Tensor, ptr: Tensor) -> Tensor:
    return sum_atoms(atoms, ptr) / ptr.diff().clamp(min=1).unsqueeze(1)


def read_cls(cls: Tensor, atoms: Tensor, ptr: Tensor) -> Tensor:
    return cls


def read_sum(cls: Tensor, atoms: Tensor, ptr: Tensor) -> Tensor:
    return sum_atoms(atoms, ptr)


def read_mean(cls: Tensor, atoms: Tensor, ptr: Tensor) -> Tensor:
    return mean_atoms(atoms, ptr)


def read_cls_and_sum(cls: Tensor, atoms: Tensor, ptr: Tensor) -> Tensor:
    return torch.cat([cls, sum_atoms(atoms, ptr)], dim=1)


def read_cls_and_mean(cls: Tensor, atoms: Tensor, ptr: Tensor) -> Tensor:
    return torch.cat([cls, mean_atoms(atoms, ptr)], dim=1)


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
