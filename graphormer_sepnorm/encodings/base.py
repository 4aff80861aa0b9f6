"""What all encodings share: their interface, the sizes they are built for, the terms they give, and degrees."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from pydantic import ConfigDict
from torch import Tensor, nn

from graphormer_sepnorm.graphs import Graphs, Level

STRICT = ConfigDict(extra="forbid", strict=True)
LONGEST_DISTANCE, UNREACHABLE = 254, 255  # of shortest paths, in bonds


class EncodingSizes(NamedTuple):
    """What the module of an encoding is built for.

    Attributes:
        width: of the atoms' embedding, D.
        channels: of the features of atom pairs, C.
        heads: of attention, H.
        bond_types: number of types, which are counted from 1 on.
    """

    width: int
    channels: int
    heads: int
    bond_types: int


class Encoding(Protocol):
    """A frozen dataclass of hyper-parameters.

    Attributes:
        name: the same for all encodings of a class.
        arrays: names of the arrays that it needs in a batch, and what their rows belong to.
    """

    arrays: ClassVar[Mapping[str, Level]]

    @property
    def name(self) -> str: ...

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """Its arrays for packed molecules."""
        ...

    def module(self, sizes: EncodingSizes) -> nn.Module:
        """What learns from them: from GraphBatch to ``Terms``; the model draws its first weights."""
        ...


class Terms(NamedTuple):
    """What an encoding adds.

    Attributes:
        atom: [T, D], to the atoms' embedding.
        pair: [P, C], to the features of atom pairs.
        factor: [P, H], what multiplies the attention weights of atom pairs.
    """

    atom: Tensor | None = None
    pair: Tensor | None = None
    factor: Tensor | None = None


def ends_of_bonds(graphs: Graphs) -> np.ndarray:
    """Source and target of each directed bond, int64 [2, E], atoms numbered over all molecules."""
    return graphs.edge_index + np.repeat(graphs.atom_ptr[:-1], np.diff(graphs.edge_ptr))


def degrees(graphs: Graphs) -> np.ndarray:
    """In- and out-degrees of all atoms, int64 [T, 2]."""
    source, target = (np.bincount(atoms, minlength=graphs.atom_ptr[-1]) for atoms in ends_of_bonds(graphs))
    return np.stack([target, source], axis=1)
