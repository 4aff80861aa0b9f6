"""What acts inside of blocks: messages along bonds, and scaling by degrees."""

from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import nn

from graphormer_sepnorm.encodings.base import BOND_TYPES, STRICT, Edges, Terms, degrees
from graphormer_sepnorm.graphs import GraphBatch, PackedGraphs


@dataclass(frozen=True, config=STRICT)
class Bonds:
    """The bonds themselves, for messages between bonded atoms in every block, beside attention.

    Source: Rampasek et al., "Recipe for a General, Powerful, Scalable Graph Transformer", NeurIPS 2022 (GraphGPS).

    Attributes:
        num_bond_types: size of the vocabulary of bond types, ``NO_BOND`` included.
    """

    name: Literal["bonds"] = "bonds"
    num_bond_types: Annotated[int, Field(ge=2, le=BOND_TYPES)] = 4
    arrays: ClassVar[tuple[str, ...]] = ("bond",)

    def precompute(self, graphs: PackedGraphs) -> dict[str, np.ndarray]:
        """``bond``: uint8 [P], type of the bond from the first atom of the pair to the second, 0 for none.

        Of parallel bonds the smallest type counts, as along paths.
        """
        molecule = np.repeat(np.arange(len(graphs)), np.diff(graphs.edge_ptr))
        source, target = graphs.edge_index
        pair = graphs.pair_ptr[molecule] + source * graphs.num_atoms[molecule] + target
        falling = np.argsort(graphs.bond)[::-1]
        bond = np.zeros(graphs.pair_ptr[-1], np.uint8)
        bond[pair[falling]] = graphs.bond[falling]
        return {"bond": bond}

    def module(self, width: int, channels: int, heads: int) -> nn.Module:
        return BondsModule()


class BondsModule(nn.Module):
    def forward(self, batch: GraphBatch) -> Terms:
        bond = batch.arrays["bond"]
        num_atoms = batch.ptr.diff()
        pair_end = (num_atoms**2).cumsum(0)
        pair = bond.nonzero().squeeze(1)
        molecule = torch.bucketize(pair, pair_end, right=True)
        size = num_atoms[molecule]
        place = pair - pair_end[molecule] + size**2
        edge_index = batch.ptr[molecule] + torch.stack([place // size, place % size])
        return Terms(edges=Edges(edge_index, bond[pair].long()))


@dataclass(frozen=True, config=STRICT)
class DegreeScaling:
    """Degrees that scale what each atom receives from the others in every block.

    Source: Ma et al., ICML 2023 (GRIT), the section on injecting degree information.
    """

    name: Literal["degree_scaling"] = "degree_scaling"
    arrays: ClassVar[tuple[str, ...]] = ("in_degree",)

    def precompute(self, graphs: PackedGraphs) -> dict[str, np.ndarray]:
        """``in_degree``: uint8 [T], at most 255."""
        return {"in_degree": degrees(graphs)[:, 0].clip(max=255).astype(np.uint8)}

    def module(self, width: int, channels: int, heads: int) -> nn.Module:
        return DegreeScalingModule()


class DegreeScalingModule(nn.Module):
    def forward(self, batch: GraphBatch) -> Terms:
        return Terms(in_degree=batch.arrays["in_degree"])
