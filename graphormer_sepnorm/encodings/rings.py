"""Rings through atoms and through pairs of atoms."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from rdkit import Chem
from torch import nn

from graphormer_sepnorm.encodings.base import STRICT, Sizes, Terms
from graphormer_sepnorm.graphs import GraphBatch, Graphs, Level
from graphormer_sepnorm.kernels import embedding_sum


def smallest_rings(num_atoms: int, edge_index: np.ndarray) -> list[list[int]]:
    """The atoms of each ring of the symmetrized smallest set of smallest rings.

    Where several smallest sets exist it is their union, so the result does not depend on how the atoms are numbered.

    Args:
        num_atoms: of the molecule.
        edge_index: [2, E], source and target of each directed bond.
    """
    skeleton = Chem.RWMol()
    for _ in range(num_atoms):
        skeleton.AddAtom(Chem.Atom("C"))
    for low, high in {(min(bond), max(bond)) for bond in edge_index.T.tolist()}:
        if low < high:
            skeleton.AddBond(low, high, Chem.BondType.SINGLE)
    return [list(ring) for ring in Chem.GetSymmSSSR(skeleton)]


@dataclass(frozen=True, config=STRICT)
class Rings:
    """Rings through atoms and pairs: how many of each size, and the size of the smallest that a pair shares.

    An atom gets a linear map of its numbers of rings with at least 3, 4, ... atoms, so that what was learnt of smaller
    rings carries over to sizes that are rare; a pair gets a learned value per channel for the size.

    Sources: Bouritsas et al., "Improving Graph Neural Network Expressivity via Subgraph Isomorphism Counting", TPAMI
    2022 (GSN), for counts of cycles as features; Bodnar et al., "Weisfeiler and Lehman Go Cellular", NeurIPS 2021
    (CIN), for exchange within rings.

    Attributes:
        max_size: larger rings count as rings of this size.
    """

    name: Literal["rings"] = "rings"
    max_size: Annotated[int, Field(ge=3, le=254)] = 16
    arrays: ClassVar[Mapping[str, Level]] = {"ring_counts": "atom", "shared_ring": "pair"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """The rings of ``rings.smallest_rings``.

        ``ring_counts``: uint8 [T, max_size - 2], numbers of rings through the atom with at least 3, 4, ... atoms, at
        most 255; ``shared_ring``: uint8 [P], size of the smallest ring through both atoms, 0 for none.
        """
        counts = np.zeros((graphs.atom_ptr[-1], self.max_size - 2), np.int64)
        pair_ptr = graphs.pair_ptr
        shared = np.zeros(pair_ptr[-1], np.uint8)
        for m, n in enumerate(graphs.num_atoms):
            bonds = graphs.edge_index[:, graphs.edge_ptr[m] : graphs.edge_ptr[m + 1]]
            pairs = shared[pair_ptr[m] : pair_ptr[m + 1]].reshape(n, n)
            for ring in sorted(smallest_rings(int(n), bonds), key=len, reverse=True):
                size = min(len(ring), self.max_size)
                counts[graphs.atom_ptr[m] + np.array(ring), : size - 2] += 1
                pairs[np.ix_(ring, ring)] = size
        return {"ring_counts": counts.clip(max=255).astype(np.uint8), "shared_ring": shared}

    def module(self, sizes: Sizes) -> nn.Module:
        return RingsModule(sizes.width, sizes.channels, self.max_size)


class RingsModule(nn.Module):
    def __init__(self, width: int, channels: int, max_size: int):
        super().__init__()
        self.atom = nn.Linear(max_size - 2, width)
        self.pair = nn.Parameter(torch.empty(max_size + 1, channels))

    def forward(self, batch: GraphBatch) -> Terms:
        counts = batch.arrays["ring_counts"].to(self.atom.weight.dtype)
        shared = embedding_sum(batch.arrays["shared_ring"].unsqueeze(1), self.pair)
        return Terms(atom=self.atom(counts), pair=shared)
