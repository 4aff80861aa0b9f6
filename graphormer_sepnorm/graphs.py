"""Molecular graphs, packed one after another: what the features give and the encodings read.

Axis letters: M molecules, T atoms of all of them, E directed bonds of all of them, P ordered atom pairs (sum of n^2),
F feature columns.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Data

NO_BOND = 0


@dataclass(frozen=True)
class PackedGraphs:
    """Many molecular graphs in a few arrays.

    Attributes:
        x: [T, F] atom features, one column per vocabulary.
        atom_ptr: [M + 1], molecule m has the atoms atom_ptr[m] to atom_ptr[m + 1].
        edge_index: [2, E], source and target of each directed bond, counted from 0 in each molecule.
        edge_ptr: [M + 1], molecule m has the bonds edge_ptr[m] to edge_ptr[m + 1].
        bond: [E] bond type, one number for all of a bond's features, from 1 on; 0 means no bond.
    """

    x: np.ndarray
    atom_ptr: np.ndarray
    edge_index: np.ndarray
    edge_ptr: np.ndarray
    bond: np.ndarray

    @property
    def num_atoms(self) -> np.ndarray:
        """[M] atoms of each molecule."""
        return np.diff(self.atom_ptr)

    @property
    def pair_ptr(self) -> np.ndarray:
        """[M + 1], molecule m has the ordered pairs pair_ptr[m] to pair_ptr[m + 1], row by row."""
        return pointers(self.num_atoms**2)

    @property
    def diagonal(self) -> np.ndarray:
        """[T] number of the pair that each atom forms with itself."""
        n = np.repeat(self.num_atoms, self.num_atoms)
        place = np.arange(len(n)) - np.repeat(self.atom_ptr[:-1], self.num_atoms)
        return np.repeat(self.pair_ptr[:-1], self.num_atoms) + place * (n + 1)

    def __len__(self) -> int:
        return len(self.atom_ptr) - 1

    def take(self, molecules: np.ndarray) -> "PackedGraphs":
        """The molecules with these numbers, in this order."""
        atoms = ranges(self.atom_ptr, molecules)
        edges = ranges(self.edge_ptr, molecules)
        return PackedGraphs(
            x=self.x[atoms],
            atom_ptr=pointers(np.diff(self.atom_ptr)[molecules]),
            edge_index=self.edge_index[:, edges],
            edge_ptr=pointers(np.diff(self.edge_ptr)[molecules]),
            bond=self.bond[edges],
        )


def ranges(ptr: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The numbers ptr[m] to ptr[m + 1] of each of ``members``, one after another."""
    counts = np.diff(ptr)[members]
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(ptr[:-1][members] - (ends - counts), counts)


def pointers(counts: np.ndarray) -> np.ndarray:
    """Cumulative sums of ``counts`` [M] behind a leading zero: [M + 1]."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def bond_types(edge_attr: np.ndarray, bond_sizes: tuple[int, ...]) -> np.ndarray:
    """One number from 1 on for each combination of bond features.

    Args:
        edge_attr: [E, C] bond features; column c is below bond_sizes[c].
        bond_sizes: sizes of the C vocabularies.
    """
    types = np.zeros(len(edge_attr), dtype=np.int64)
    for column, size in enumerate(bond_sizes):
        types = types * size + edge_attr[:, column]
    return (types + 1).astype(np.uint8)


def pack_data(graphs: list[Data], bond_sizes: tuple[int, ...]) -> PackedGraphs:
    """Packs PyG graphs with ``x`` [n, F] or [n], ``edge_index`` [2, e] and ``edge_attr`` [e, C] or [e]."""
    x = torch.cat([graph.x.view(graph.num_nodes, -1) for graph in graphs])
    edge_attr = torch.cat([graph.edge_attr.view(graph.num_edges, len(bond_sizes)) for graph in graphs])
    return PackedGraphs(
        x=x.numpy(),
        atom_ptr=pointers([graph.num_nodes for graph in graphs]),
        edge_index=torch.cat([graph.edge_index for graph in graphs], dim=1).numpy(),
        edge_ptr=pointers([graph.num_edges for graph in graphs]),
        bond=bond_types(edge_attr.numpy(), bond_sizes),
    )
