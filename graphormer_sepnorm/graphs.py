"""Molecular graphs, packed one after another: what the features give and the encodings read.

Axis letters: M molecules, T atoms of all of them, E directed bonds of all of them, P ordered atom pairs (sum of n^2),
F feature columns.
"""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from graphormer_sepnorm.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Batch, Data

NO_BOND = 0
LARGEST_BOND_TYPE = 255


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


def check_features(name: str, values: Tensor, sizes: tuple[int, ...], ptr: Tensor) -> None:
    """Raises InputError unless values [R, C] are integers, those of column c from 0 to sizes[c] - 1.

    Args:
        name: of the values, for the message.
        ptr: [M + 1], molecule m has the rows ptr[m] to ptr[m + 1].
    """
    if values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        raise InputError(f"{name} must hold integers, it holds {values.dtype}: number the categories of each column")
    if values.shape[1] != len(sizes):
        raise InputError(f"{name} has {values.shape[1]} columns, the model reads {len(sizes)}")
    wrong = (values < 0) | (values >= torch.tensor(sizes, device=values.device))
    if wrong.any():
        row, column = wrong.nonzero()[0].tolist()
        raise InputError(
            f"{name} of molecule {molecule_of(row, ptr)} has {values[row, column].item()} in column {column}, "
            f"where values are from 0 to {sizes[column] - 1}"
        )


def check_bonds(edge_index: Tensor, edge_ptr: Tensor, num_atoms: Tensor) -> None:
    """Raises InputError unless the ends of bonds [2, E], counted from 0 in each molecule, are below num_atoms [M]."""
    if edge_index.shape[0] != 2 or edge_index.is_floating_point():
        raise InputError(f"edge_index must be integers [2, E], it is {edge_index.dtype} {list(edge_index.shape)}")
    wrong = (edge_index < 0) | (edge_index >= num_atoms.repeat_interleave(edge_ptr.diff()))
    if wrong.any():
        end, edge = wrong.nonzero()[0].tolist()
        molecule = molecule_of(edge, edge_ptr)
        raise InputError(
            f"edge_index of molecule {molecule} has atom {edge_index[end, edge].item()}, its atoms are numbered from "
            f"0 to {num_atoms[molecule].item() - 1}"
        )


def molecule_of(row: int, ptr: Tensor) -> int:
    """The number of the molecule whose rows ptr[m] to ptr[m + 1] have ``row`` among them."""
    return int(torch.searchsorted(ptr, row, right=True)) - 1


def checked_graphs(
    x: Tensor, atom_ptr: Tensor, edge_index: Tensor, edge_ptr: Tensor, edge_attr: Tensor, bond_sizes: tuple[int, ...]
) -> PackedGraphs:
    """The graphs in packed tensors, laid out as in ``PackedGraphs``, with the features [E, C] of their bonds.

    Raises:
        InputError: a bond ends at an atom that its molecule does not have, or has features outside the vocabularies,
            or these have too many combinations.
    """
    if math.prod(bond_sizes) > LARGEST_BOND_TYPE:
        raise InputError(
            f"bonds have {math.prod(bond_sizes)} combinations of features, at most {LARGEST_BOND_TYPE} fit"
        )
    check_bonds(edge_index, edge_ptr, atom_ptr.diff())
    check_features("edge_attr", edge_attr, bond_sizes, edge_ptr)
    return PackedGraphs(
        x=x.numpy(),
        atom_ptr=atom_ptr.numpy(),
        edge_index=edge_index.numpy(),
        edge_ptr=edge_ptr.numpy(),
        bond=bond_types(edge_attr.numpy(), bond_sizes),
    )


def pack_data(graphs: "list[Data]", bond_sizes: tuple[int, ...]) -> PackedGraphs:
    """Packs PyG graphs with ``x`` [n, F] or [n], ``edge_index`` [2, e] and ``edge_attr`` [e, C] or [e].

    Raises:
        InputError: as ``checked_graphs``, or ``edge_attr`` of another size.
    """
    for number, graph in enumerate(graphs):
        if graph.edge_attr.numel() != graph.num_edges * len(bond_sizes):
            raise InputError(
                f"edge_attr of molecule {number} is {list(graph.edge_attr.shape)}, its {graph.num_edges} directed "
                f"bonds need {len(bond_sizes)} features each"
            )
    return checked_graphs(
        x=torch.cat([graph.x.view(graph.num_nodes, -1) for graph in graphs]),
        atom_ptr=torch.from_numpy(pointers([graph.num_nodes for graph in graphs])),
        edge_index=torch.cat([graph.edge_index for graph in graphs], dim=1),
        edge_ptr=torch.from_numpy(pointers([graph.num_edges for graph in graphs])),
        edge_attr=torch.cat([graph.edge_attr.view(graph.num_edges, len(bond_sizes)) for graph in graphs]),
        bond_sizes=bond_sizes,
    )


@dataclass(frozen=True)
class GraphBatch:
    """Some molecules, packed.

    Attributes:
        x: integer [T, F] atom features.
        ptr: int64 [B + 1], molecule b has the atoms ptr[b] to ptr[b + 1].
        arrays: what the encodings precomputed, by name; [T, ...] per atom or [P, ...] per ordered pair of atoms.
        y: float32 [B, tasks] targets, NaN where a label is missing; None where there are none.
    """

    x: Tensor
    ptr: Tensor
    arrays: dict[str, Tensor] = field(default_factory=dict)
    y: Tensor | None = None

    @property
    def num_graphs(self) -> int:
        return len(self.ptr) - 1

    @property
    def num_atoms(self) -> int:
        return self.x.shape[0]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "GraphBatch":
        """The same batch on another device; the call that Lightning Fabric and PyTorch's utilities make."""

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(device, non_blocking=non_blocking)

        return replace(
            self,
            x=move(self.x),
            ptr=move(self.ptr),
            arrays={name: move(array) for name, array in self.arrays.items()},
            y=None if self.y is None else move(self.y),
        )

    @classmethod
    def from_pyg(cls, batch: "Batch", array_names: list[str]) -> "GraphBatch":
        """Reads a batch of PyG's DataLoader whose graphs went through ``GraphormerTransform``.

        Args:
            batch: PyG batch with ``x``, ``ptr`` and the arrays.
            array_names: the arrays that the model's encodings need.

        Raises:
            ValueError: an array is missing.
        """
        missing = [name for name in array_names if name not in batch]
        if missing:
            raise ValueError(f"the batch has no {', '.join(missing)}: apply GraphormerTransform to its graphs first")
        y = batch.y if "y" in batch else None
        return cls(
            x=batch.x.view(batch.num_nodes, -1),
            ptr=batch.ptr,
            arrays={name: batch[name] for name in array_names},
            y=None if y is None else y.view(batch.num_graphs, -1).float(),
        )


@dataclass(frozen=True)
class LabelledGraphs:
    """Molecules and their targets: ``y`` float32 [M, tasks], NaN where a label is missing."""

    graphs: PackedGraphs
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.graphs)

    def take(self, molecules: np.ndarray) -> "LabelledGraphs":
        """The molecules with these numbers, in this order."""
        return LabelledGraphs(self.graphs.take(molecules), self.y[molecules])
