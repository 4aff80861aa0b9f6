"""Chordless cycles through atoms."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import nn

from graphormer_sepnorm.encodings.base import STRICT, EncodingSizes, Terms, ends_of_bonds, with_columns
from graphormer_sepnorm.graphs import GraphBatch, Graphs, Level, pointers


@dataclass(frozen=True, config=STRICT)
class Cycles:
    """Number of chordless cycles of each size through each atom.

    These include all smallest rings, and also cycles around several rings, such as the twelve atoms around phenalene,
    which the smallest rings do not show. As in ``Rings``, the numbers of cycles with at least 3, 4, ... atoms pass
    through a linear map and are added to the atom.

    Source: Bodnar et al., "Weisfeiler and Lehman Go Cellular", NeurIPS 2021 (CIN), whose rings on ZINC are these, of up
    to 18 atoms.

    Attributes:
        max_size: larger cycles are not counted; in cages, the time to find them grows steeply with this size.
    """

    name: Literal["cycles"] = "cycles"
    max_size: Annotated[int, Field(ge=3, le=32)] = 18
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
