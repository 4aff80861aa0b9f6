"""Molecular graphs packed into flat arrays: the output of the featurizer and the input of the encodings.

Axis letters: M molecules, T atoms (of all molecules), E directed bonds (of all molecules), P ordered atom pairs (sum of
n^2), F feature columns.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import torch
from torch import Tensor

from graphormer_sepnorm.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

LARGEST_BOND_TYPE = 255
ALIGNMENT = 8  # 16 bytes of bfloat16, the alignment that fused attention requires
SMALLEST_VIEW = 4  # doublings: molecules of up to 16 tokens share a view
Level = Literal["atom", "pair", "edge"]
PER_MOLECULE = ("y", "bounds", "weight", "conditions")  # fields with a row per molecule, or None


@dataclass(frozen=True)
class Graphs:
    """Many molecular graphs in a few flat arrays, in which molecule m has the rows ptr[m] to ptr[m + 1].

    Bonds are numbered from 0 within each molecule, and sorted by source, then target, without duplicates, as
    ``packed_graphs`` makes them.
    """

    x: np.ndarray  # [T, F] atom features, one column per vocabulary
    atom_ptr: np.ndarray  # [M + 1]
    edge_index: np.ndarray  # [2, E] source and target of each directed bond
    edge_ptr: np.ndarray  # [M + 1]
    bond: np.ndarray  # uint8 [E] bond type, one number per combination of bond features, starting at 1
    y: np.ndarray | None = None  # float32 [M, tasks] targets, NaN where a label is missing
    bounds: np.ndarray | None = None  # float32 [M, tasks, 2] of censored targets, infinite where unbounded
    weight: np.ndarray | None = None  # float32 [M], how much each molecule counts in the loss
    conditions: np.ndarray | None = None  # float32 [M, C], under which each molecule was measured
    arrays: dict[str, np.ndarray] = field(default_factory=dict)  # precomputed, of the encodings
    levels: dict[str, Level] = field(default_factory=dict)  # of the rows of each array

    @property
    def num_atoms(self) -> np.ndarray:
        return np.diff(self.atom_ptr)

    @cached_property
    def pair_ptr(self) -> np.ndarray:
        """[M + 1]; molecule m has the ordered pairs pair_ptr[m] to pair_ptr[m + 1], in row-major order."""
        return pointers(self.num_atoms**2)

    @property
    def diagonal(self) -> np.ndarray:
        """[T] index of the pair that each atom forms with itself."""
        sizes = np.repeat(self.num_atoms, self.num_atoms)
        place = np.arange(len(sizes)) - np.repeat(self.atom_ptr[:-1], self.num_atoms)
        return np.repeat(self.pair_ptr[:-1], self.num_atoms) + place * (sizes + 1)

    def __len__(self) -> int:
        return len(self.atom_ptr) - 1

    def ptr(self, level: Level) -> np.ndarray:
        """[M + 1]; molecule m has the rows ptr[m] to ptr[m + 1] of an array of this level."""
        return {"atom": self.atom_ptr, "pair": self.pair_ptr, "edge": self.edge_ptr}[level]

    def rows(self, level: Level, molecule: int) -> slice:
        ptr = self.ptr(level)
        return slice(ptr[molecule], ptr[molecule + 1])

    def with_targets(self, y: np.ndarray, bounds: np.ndarray | None = None) -> "Graphs":
        return replace(self, y=y, bounds=bounds)

    def take(self, molecules: np.ndarray) -> "Graphs":
        needed: set[Level] = {"atom", "edge", *self.levels.values()}
        places = {level: ranges(self.ptr(level), molecules) for level in needed}
        return replace(
            self,
            x=self.x[places["atom"]],
            atom_ptr=pointers(np.diff(self.atom_ptr)[molecules]),
            edge_index=self.edge_index[:, places["edge"]],
            edge_ptr=pointers(np.diff(self.edge_ptr)[molecules]),
            bond=self.bond[places["edge"]],
            **{name: rows[molecules] for name in PER_MOLECULE if (rows := getattr(self, name)) is not None},
            arrays={name: array[places[self.levels[name]]] for name, array in self.arrays.items()},
        )


def packed_graphs(
    x: np.ndarray, atom_ptr: np.ndarray, edge_index: np.ndarray, edge_ptr: np.ndarray, bond: np.ndarray
) -> Graphs:
    """From packed arrays with bonds in any order; of parallel bonds, the one with the smallest type is kept."""
    num_atoms = np.diff(atom_ptr)
    molecule = np.repeat(np.arange(len(num_atoms)), np.diff(edge_ptr))
    source, target = edge_index
    pair = pointers(num_atoms**2)[molecule] + source * num_atoms[molecule] + target
    order = np.argsort(pair * (LARGEST_BOND_TYPE + 1) + bond)
    kept = order[np.diff(pair[order], prepend=-1) > 0]
    counts = np.bincount(molecule[kept], minlength=len(num_atoms))
    return Graphs(x, atom_ptr, edge_index[:, kept], pointers(counts), bond[kept])


def ranges(ptr: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Concatenates the ranges ptr[m] to ptr[m + 1] for each m in ``members``."""
    counts = np.diff(ptr)[members]
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(ptr[:-1][members] - (ends - counts), counts)


def pointers(counts: np.ndarray | list[int]) -> np.ndarray:
    """Cumulative sums of ``counts`` [M] with a leading zero: [M + 1]."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def bond_types(edge_attr: np.ndarray, bond_sizes: tuple[int, ...]) -> np.ndarray:
    """One number, starting at 1, for each combination of bond features [E, C] below ``bond_sizes``."""
    types = np.zeros(len(edge_attr), dtype=np.int64)
    for column, size in enumerate(bond_sizes):
        types = types * size + edge_attr[:, column]
    return (types + 1).astype(np.uint8)


def check_features(name: str, values: Tensor, sizes: tuple[int, ...], ptr: Tensor) -> None:
    """Raises InputError unless the values [R, C] of molecules ``ptr`` are integers from 0 to sizes[c] - 1."""
    if values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        raise InputError(f"{name} must hold integers, it holds {values.dtype}: number the categories of each column")
    if values.shape[1] != len(sizes):
        raise InputError(f"{name} has {values.shape[1]} columns, the model reads {len(sizes)}")
    wrong = (values < 0) | (values >= torch.tensor(sizes, device=values.device))
    if wrong.any():
        row, column = wrong.nonzero()[0].tolist()
        problem = f"{values[row, column].item()} in column {column}, where values are from 0 to {sizes[column] - 1}"
        raise InputError(f"{name} of molecule {molecule_index(row, ptr)} has {problem}")


def molecule_index(row: int, ptr: Tensor) -> int:
    """Index of the molecule that contains ``row``, where molecule m has the rows ptr[m] to ptr[m + 1]."""
    return int(torch.searchsorted(ptr, row, right=True)) - 1


def checked_graphs(
    x: Tensor, atom_ptr: Tensor, edge_index: Tensor, edge_ptr: Tensor, edge_attr: Tensor, bond_sizes: tuple[int, ...]
) -> Graphs:
    """Builds ``Graphs`` from packed tensors and bond features [E, C], after checking them."""
    if (count := math.prod(bond_sizes)) > LARGEST_BOND_TYPE:
        advice = "leave out a column of edge_attr, or give rare values of a column one number"
        raise InputError(f"bonds have {count} combinations of features, at most {LARGEST_BOND_TYPE} fit: {advice}")
    if edge_index.shape[0] != 2 or edge_index.is_floating_point():
        raise InputError(f"edge_index must be integers [2, E], it is {edge_index.dtype} {list(edge_index.shape)}")
    num_atoms = atom_ptr.diff()
    wrong = (edge_index < 0) | (edge_index >= num_atoms.repeat_interleave(edge_ptr.diff()))
    if wrong.any():
        end, edge = wrong.nonzero()[0].tolist()
        molecule = molecule_index(edge, edge_ptr)
        atom, last = edge_index[end, edge].item(), num_atoms[molecule].item() - 1
        raise InputError(f"edge_index of molecule {molecule} has atom {atom}, its atoms are numbered from 0 to {last}")
    check_features("edge_attr", edge_attr, bond_sizes, edge_ptr)
    bond = bond_types(edge_attr.numpy(), bond_sizes)
    return packed_graphs(x.numpy(), atom_ptr.numpy(), edge_index.numpy(), edge_ptr.numpy(), bond)


def pack_data(graphs: "list[Data]", bond_sizes: tuple[int, ...]) -> Graphs:
    """Packs PyG graphs with ``x`` [n, F] or [n], ``edge_index`` [2, e] and ``edge_attr`` [e, C] or [e]."""
    for number, graph in enumerate(graphs):
        for name in ("x", "edge_index", "edge_attr"):
            if getattr(graph, name, None) is None:
                raise InputError(f"molecule {number} has no {name}: graphs need x, edge_index and edge_attr")
        if not graph.num_nodes:
            raise InputError(f"molecule {number} has no atoms")
        if graph.edge_attr.numel() != graph.num_edges * len(bond_sizes):
            needed = f"its {graph.num_edges} directed bonds need {len(bond_sizes)} features each"
            raise InputError(f"edge_attr of molecule {number} is {list(graph.edge_attr.shape)}, {needed}")
    return checked_graphs(
        x=torch.cat([graph.x.view(graph.num_nodes, -1) for graph in graphs]).cpu(),
        atom_ptr=torch.from_numpy(pointers([graph.num_nodes for graph in graphs])),
        edge_index=torch.cat([graph.edge_index for graph in graphs], dim=1).cpu(),
        edge_ptr=torch.from_numpy(pointers([graph.num_edges for graph in graphs])),
        edge_attr=torch.cat([graph.edge_attr.view(graph.num_edges, len(bond_sizes)) for graph in graphs]).cpu(),
        bond_sizes=bond_sizes,
    )


@dataclass(frozen=True)
class Padding:
    """Positions of the rows of a batch in padded views of b molecules of similar size, L tokens each, the CLS first."""

    views: tuple[tuple[int, int], ...]  # b and L of each, L a multiple of ALIGNMENT
    molecule: Tensor  # int64 [B], numbered across all views
    slot: Tensor  # int64 [N] among the b * L of the views, the B CLS rows first
    score: Tensor  # int64 [P] among the b * L * L

    @classmethod
    def of(cls, ptr: Tensor) -> "Padding":
        """Of molecules with the atoms ptr[b] to ptr[b + 1]; reads their sizes, which synchronizes with a GPU."""
        sizes = ptr.cpu().diff()
        doublings = (sizes + 1).double().log2().ceil().clamp(min=SMALLEST_VIEW)
        _, view, counts = doublings.unique(return_inverse=True, return_counts=True)
        longest = torch.zeros_like(counts).scatter_reduce(0, view, sizes + 1, "amax")
        lengths = (longest + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        views = tuple(zip(counts.tolist(), lengths.tolist(), strict=True))
        totals = int(sizes.sum()), int((sizes**2).sum())
        padding = cls.in_order(views, view.argsort(stable=True), sizes, lengths[view], *totals)
        return padding.to(lambda tensor: tensor.to(ptr.device))

    @classmethod
    def of_any(cls, ptr: Tensor, pairs: int) -> "Padding":
        """The same in one view, so that a trace holds for other molecules."""
        sizes = ptr.diff()
        largest, atoms = (cast(int, each.item()) for each in (sizes.max(), ptr[-1]))
        torch._check(largest > 0)
        length = (largest // ALIGNMENT + 1) * ALIGNMENT
        order = torch.arange(sizes.shape[0], device=ptr.device)
        return cls.in_order(((sizes.shape[0], length),), order, sizes, torch.full_like(sizes, length), atoms, pairs)

    @classmethod
    def in_order(
        cls, views: tuple[tuple[int, int], ...], order: Tensor, sizes: Tensor, length: Tensor, atoms: int, pairs: int
    ) -> "Padding":
        """Of molecules in this order [B] across the views, each padded to its ``length`` [B]."""
        steps = length[order], length[order] ** 2
        first_slot, first_score = (torch.zeros_like(length).index_copy(0, order, s.cumsum(0) - s) for s in steps)
        atom, of_atom = numbers_within(sizes, atoms)
        pair, of_pair = numbers_within(sizes**2, pairs)
        row, column = pair // sizes[of_pair], pair % sizes[of_pair]
        slot = torch.cat([first_slot, first_slot[of_atom] + 1 + atom])
        return cls(views, order.argsort(), slot, first_score[of_pair] + (row + 1) * length[of_pair] + column + 1)

    def to(self, move: Callable[[Tensor], Tensor]) -> "Padding":
        return Padding(self.views, move(self.molecule), move(self.slot), move(self.score))


def numbers_within(counts: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """For ``counts`` [M] items per molecule: the index of each item within its molecule, and its molecule."""
    molecule = torch.repeat_interleave(counts, output_size=total)
    return torch.arange(total, device=counts.device) - (counts.cumsum(0) - counts)[molecule], molecule


@dataclass(frozen=True)
class GraphBatch:
    """A batch of packed molecules.

    Attributes:
        x: integer [T, F] atom features.
        ptr: int64 [B + 1]; molecule b has the atoms ptr[b] to ptr[b + 1].
        edge_index: int64 [2, E] source and target of each directed bond, numbered across the batch and sorted as in
            ``Graphs``.
        bond: int64 [E] bond type, starting at 1.
        arrays: precomputed arrays of the encodings, by name: [T, ...] per atom, [P, ...] per ordered atom pair or [E,
            ...] per bond.
        y: float32 [B, tasks] targets, NaN where a label is missing; None if there are no targets.
        bounds: float32 [B, tasks, 2] as in ``Graphs``, or None.
        weight, conditions: float32 [B] and [B, C] as in ``Graphs``, or None.
        padding: set when the batch was moved from the CPU to another device, otherwise None.
    """

    x: Tensor
    ptr: Tensor
    edge_index: Tensor
    bond: Tensor
    arrays: dict[str, Tensor] = field(default_factory=dict)
    y: Tensor | None = None
    bounds: Tensor | None = None
    weight: Tensor | None = None
    conditions: Tensor | None = None
    padding: Padding | None = None

    @property
    def num_graphs(self) -> int:
        return self.ptr.shape[0] - 1

    @property
    def num_atoms(self) -> int:
        return self.x.shape[0]

    @property
    def num_pairs(self) -> int:
        return int((self.ptr.diff() ** 2).sum()) if self.padding is None else self.padding.score.shape[0]

    @property
    def in_degree(self) -> Tensor:
        """int64 [T] number of bonds that end at each atom."""
        target = self.edge_index[1]
        return target.new_zeros(self.num_atoms).index_add(0, target, torch.ones_like(target))

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "GraphBatch":
        """Moves the batch to another device. A batch that leaves the CPU is padded first.

        Args:
            non_blocking: copy asynchronously, from pinned memory.
        """
        there = torch.device(device)
        leaves = self.ptr.device.type == "cpu" and there.type != "cpu"

        def move(tensor: Tensor) -> Tensor:
            locked = leaves and non_blocking and there.type == "cuda"
            return (tensor.pin_memory() if locked else tensor).to(there, non_blocking=non_blocking)

        padding = Padding.of(self.ptr) if leaves else self.padding
        arrays = {name: move(array) for name, array in self.arrays.items()}
        tensors: dict = {name: move(value) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, padding=None if padding is None else padding.to(move), arrays=arrays, **tensors)
