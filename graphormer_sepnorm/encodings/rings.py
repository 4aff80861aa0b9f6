"""Rings and chordless cycles through atoms, and rings through pairs of atoms."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from rdkit import Chem
from torch import nn

from graphormer_sepnorm.encodings.base import STRICT, EncodingSizes, Terms, ends_of_bonds, with_columns
from graphormer_sepnorm.graphs import GraphBatch, Graphs, Level, pointers
from graphormer_sepnorm.kernels import embedding_sum


@lru_cache(maxsize=256)
def unbonded(num_atoms: int) -> Chem.RWMol:
    """A molecule of this many atoms without bonds; copying it is faster than adding atoms one by one."""
    mol = Chem.RWMol()
    for _ in range(num_atoms):
        mol.AddAtom(Chem.Atom("C"))
    return mol


def smallest_rings(num_atoms: int, edge_index: np.ndarray) -> list[list[int]]:
    """The union of all smallest sets of smallest rings, which does not depend on the numbering of the atoms."""
    skeleton = Chem.RWMol(unbonded(num_atoms))
    for low, high in set(zip(*np.sort(edge_index, axis=0).tolist(), strict=True)):
        if low < high:
            skeleton.AddBond(low, high, Chem.BondType.SINGLE)
    return [list(ring) for ring in Chem.GetSymmSSSR(skeleton)]


@dataclass(frozen=True, config=STRICT)
class Rings:
    """Number of rings of each size through each atom, and the size of the smallest ring that a pair shares.

    An atom gets a linear map of its numbers of rings with at least 3, 4, ... atoms, so that weights learned from
    smaller rings carry over to rare sizes. Sources: Bouritsas et al., TPAMI 2022 (GSN), for counts as features; Bodnar
    et al., NeurIPS 2021 (CIN), for exchange within rings.
    """

    name: Literal["rings"] = "rings"
    max_size: Annotated[int, Field(ge=3, le=254)] = 16  # larger rings count as rings of this size
    arrays: ClassVar[Mapping[str, Level]] = {"ring_counts": "atom", "shared_ring": "pair"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """``ring_counts``: uint8 [T, max_size - 2], of at least 3, 4, ... atoms; ``shared_ring``: uint8 [P]."""
        from graphormer_sepnorm.encodings.graph_algorithms import mark_rings

        ends = graphs.edge_ptr
        of_molecules = [
            smallest_rings(int(n), graphs.edge_index[:, ends[m] : ends[m + 1]]) for m, n in enumerate(graphs.num_atoms)
        ]
        rings = [ring for of_molecule in of_molecules for ring in of_molecule]
        molecule = np.array([m for m, of_molecule in enumerate(of_molecules) for _ in of_molecule], np.int64)
        atoms = np.array([atom for ring in rings for atom in ring], np.int64)
        counts, shared = mark_rings(
            graphs.atom_ptr, graphs.pair_ptr, molecule, pointers([len(ring) for ring in rings]), atoms, self.max_size
        )
        return {"ring_counts": counts, "shared_ring": shared}

    def module(self, sizes: EncodingSizes) -> nn.Module:
        return RingsModule(sizes.width, sizes.channels, self.max_size)


class RingsModule(nn.Module):
    def __init__(self, width: int, channels: int, max_size: int):
        super().__init__()
        self.atom = nn.Linear(max_size - 2, width)
        self.pair = nn.Parameter(torch.empty(max_size + 1, channels))

    def forward(self, batch: GraphBatch) -> Terms:
        counts = with_columns(batch, "ring_counts", self.atom.in_features).to(self.atom.weight.dtype)
        shared = embedding_sum(batch.arrays["shared_ring"].unsqueeze(1), self.pair)
        return Terms(atom=self.atom(counts), pair=shared)


@dataclass(frozen=True, config=STRICT)
class Cycles:
    """Number of chordless cycles through each atom: smallest rings, and cycles around several, as around phenalene.

    Source: Bodnar et al., NeurIPS 2021 (CIN), whose rings on ZINC are these, of up to 18 atoms.
    """

    name: Literal["cycles"] = "cycles"
    max_size: Annotated[int, Field(ge=3, le=32)] = 18  # the time to find larger ones in cages grows steeply
    arrays: ClassVar[Mapping[str, Level]] = {"cycle_counts": "atom"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """``cycle_counts``: uint8 [T, max_size - 2], numbers of cycles with at least 3, 4, ... atoms, at most 255."""
        from graphormer_sepnorm.encodings.graph_algorithms import count_cycles  # imports Numba

        start, neighbour = simple_neighbours(graphs)
        return {"cycle_counts": count_cycles(graphs.atom_ptr, start, neighbour, self.max_size)}

    def module(self, sizes: EncodingSizes) -> nn.Module:
        return CyclesModule(sizes.width, self.max_size)


class CyclesModule(nn.Module):
    def __init__(self, width: int, max_size: int):
        super().__init__()
        self.atom = nn.Linear(max_size - 2, width)

    def forward(self, batch: GraphBatch) -> Terms:
        counts = with_columns(batch, "cycle_counts", self.atom.in_features)
        return Terms(atom=self.atom(counts.to(self.atom.weight.dtype)))


def simple_neighbours(graphs: Graphs) -> tuple[np.ndarray, np.ndarray]:
    """start [T + 1] and neighbours of all atoms, numbered across molecules, without parallel bonds and self-loops."""
    ends = ends_of_bonds(graphs)
    num_atoms = graphs.atom_ptr[-1]
    low, high = np.sort(ends[:, ends[0] != ends[1]], axis=0)
    bonds = np.divmod(np.unique(low * num_atoms + high), num_atoms)  # np.unique of columns takes ten times as long
    source, neighbour = np.concatenate([bonds, bonds[::-1]], axis=1)
    of_atom = np.argsort(source, kind="stable")
    return pointers(np.bincount(source, minlength=num_atoms)), neighbour[of_atom]
