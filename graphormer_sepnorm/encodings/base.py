"""The interface of encodings, the sizes of their modules, the terms that they return, and degrees."""

import math
from collections.abc import Mapping
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from pydantic import ConfigDict
from torch import Tensor, nn

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import GraphBatch, Graphs, Level, pointers

STRICT = ConfigDict(extra="forbid", strict=True)
RELOAD = "with force_reload=True if PyG stored them for another one"
LONGEST_DISTANCE, UNREACHABLE = 254, 255  # of shortest paths, in bonds


class EncodingSizes(NamedTuple):
    """Sizes of the module of an encoding.

    Attributes:
        width: of the atom embeddings, D.
        channels: of the pair features, C.
        heads: of attention, H.
        bond_types: number of bond types, which start at 1.
    """

    width: int
    channels: int
    heads: int
    bond_types: int


@runtime_checkable
class Encoding(Protocol):
    """A frozen dataclass of hyperparameters.

    Attributes:
        name: the same for all encodings of a class.
        arrays: names of the arrays that it needs in a batch, and whether their rows are atoms, pairs or bonds.
    """

    arrays: ClassVar[Mapping[str, Level]]

    @property
    def name(self) -> str: ...

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """The arrays for packed molecules, by name."""
        ...

    def module(self, sizes: EncodingSizes) -> nn.Module:
        """The learned module, from GraphBatch to ``Terms``; the model initializes its weights."""
        ...


class Terms(NamedTuple):
    """The terms that an encoding contributes.

    Attributes:
        atom: [T, D], added to the atom embeddings.
        pair: [P, C], added to the pair features.
        factor: [P, H], multiplies the attention weights of atom pairs.
    """

    atom: Tensor | None = None
    pair: Tensor | None = None
    factor: Tensor | None = None


def with_columns(batch: GraphBatch, name: str, columns: int) -> Tensor:
    """The array ``name`` [R, columns] of a batch; raises InputError if it was computed for another config."""
    array = batch.arrays[name]
    if array.shape[1] != columns:
        advice = f"apply the transform() of this model to the graphs, {RELOAD}"
        raise InputError(f"the number of columns of {name} is {array.shape[1]}, this model needs {columns}: {advice}")
    return array


def find_factor(terms: list[Terms]) -> Tensor | None:
    """Product of the factors [P, H] of the attention weights; None if no encoding has one."""
    factors = [term.factor for term in terms if term.factor is not None]
    return math.prod(factors[1:], start=factors[0]) if factors else None


def ends_of_bonds(graphs: Graphs) -> np.ndarray:
    """Source and target of each directed bond, int64 [2, E], with atoms numbered across all molecules."""
    return graphs.edge_index + np.repeat(graphs.atom_ptr[:-1], np.diff(graphs.edge_ptr))


Adjacency = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def adjacency(graphs: Graphs) -> Adjacency:
    """atom_ptr, pair_ptr, start [T + 1] of the bonds of each atom, neighbour [E] in its molecule, bond type [E]."""
    start, neighbour = pointers(degrees(graphs)[:, 1]), np.ascontiguousarray(graphs.edge_index[1])
    return graphs.atom_ptr, graphs.pair_ptr, start, neighbour, graphs.bond


def degrees(graphs: Graphs) -> np.ndarray:
    """In- and out-degree of each atom, int64 [T, 2]."""
    source, target = (np.bincount(atoms, minlength=graphs.atom_ptr[-1]) for atoms in ends_of_bonds(graphs))
    return np.stack([target, source], axis=1)
