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


class Readout(NamedTuple):
    read: Read
    parts: int


READOUTS = {
    "cls": Readout(lambda cls, atoms, ptr: cls, 1),
    "sum": Readout(lambda cls, atoms, ptr: sum_atoms(atoms, ptr), 1),
    "mean": Readout(lambda cls, atoms, ptr: mean_atoms(atoms, ptr), 1),
    "cls+sum": Readout(lambda cls, atoms, ptr: torch.cat([cls, sum_atoms(atoms, ptr)], dim=1), 2),
    "cls+mean": Readout(lambda cls, atoms, ptr: torch.cat([cls, mean_atoms(atoms, ptr)], dim=1), 2),
}
