"""What all encodings share: the terms they give, bounds of their vocabularies, and degrees."""

from typing import NamedTuple

import numpy as np
from pydantic import ConfigDict
from torch import Tensor

from graphormer_sepnorm.graphs import PackedGraphs

STRICT = ConfigDict(extra="forbid", strict=True)
BOND_TYPES = 256
LONGEST_DISTANCE, UNREACHABLE = 254, 255  # of shortest paths, in bonds


class Edges(NamedTuple):
    """The directed bonds of a batch.

    Attributes:
        edge_index: int64 [2, E], source and target.
        bond: int64 [E] bond type, from 1 on.
    """

    edge_index: Tensor
    bond: Tensor


class Terms(NamedTuple):
    """What an encoding adds.

    Attributes:
        atom: [T, D], to the atoms' embedding.
        pair: [P, C], to the features of atom pairs.
        factor: [P, H], what multiplies the attention weights of atom pairs.
        edges: bonds along which every block passes messages.
        in_degree: integer [T], by which every block scales what its atoms receive.
    """

    atom: Tensor | None = None
    pair: Tensor | None = None
    factor: Tensor | None = None
    edges: Edges | None = None
    in_degree: Tensor | None = None


def degrees(graphs: PackedGraphs) -> np.ndarray:
    """In- and out-degrees of all atoms, int64 [T, 2]."""
    offset = np.repeat(graphs.atom_ptr[:-1], np.diff(graphs.edge_ptr))
    source, target = (np.bincount(ends + offset, minlength=graphs.atom_ptr[-1]) for ends in graphs.edge_index)
    return np.stack([target, source], axis=1)
