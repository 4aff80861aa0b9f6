"""The three encodings of Graphormer: degrees of atoms, distances of pairs, and the bonds along shortest paths."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import nn

from graphormer_sepnorm.encodings.base import (
    LONGEST_DISTANCE,
    STRICT,
    UNREACHABLE,
    EncodingSizes,
    Terms,
    adjacency,
    degrees,
    with_columns,
)
from graphormer_sepnorm.graphs import GraphBatch, Graphs, Level
from graphormer_sepnorm.kernels import embedding_sum


@dataclass(frozen=True, config=STRICT)
class Centrality:
    """Learned vectors for the in- and out-degree, added to the atoms (Ying et al., NeurIPS 2021, equation 5)."""

    name: Literal["centrality"] = "centrality"
    max_degree: Annotated[int, Field(ge=1, le=254)] = 15  # larger degrees share the last entry
    arrays: ClassVar[Mapping[str, Level]] = {"degree": "atom"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """``degree``: uint8 [T, 2], in- and out-degree, at most ``max_degree``."""
        return {"degree": degrees(graphs).clip(max=self.max_degree).astype(np.uint8)}

    def module(self, sizes: EncodingSizes) -> nn.Module:
        return CentralityModule(sizes.width, self.max_degree)


class CentralityModule(nn.Module):
    def __init__(self, width: int, max_degree: int):
        super().__init__()
        self.in_degree = nn.Parameter(torch.empty(max_degree + 1, width))
        self.out_degree = nn.Parameter(torch.empty(max_degree + 1, width))

    def forward(self, batch: GraphBatch) -> Terms:
        table = torch.cat([self.in_degree, self.out_degree])
        offset = torch.arange(2, device=table.device) * len(self.in_degree)
        return Terms(atom=embedding_sum(batch.arrays["degree"] + offset, table))


@dataclass(frozen=True, config=STRICT)
class Spatial:
    """A learned value per channel for each distance, and for unreachable pairs (Ying et al., equation 6)."""

    name: Literal["spatial"] = "spatial"
    max_distance: Annotated[int, Field(ge=1, le=LONGEST_DISTANCE)] = 40  # longer distances share the last entry
    arrays: ClassVar[Mapping[str, Level]] = {"spd": "pair"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """``spd``: uint8 [P], shortest-path distance in bonds, at most ``max_distance``, one more if unreachable."""
        from graphormer_sepnorm.encodings import graph_algorithms  # imports Numba

        spd, _ = graph_algorithms.shortest_paths(*adjacency(graphs), 0)
        far = np.where(spd == UNREACHABLE, self.max_distance + 1, self.max_distance)
        return {"spd": np.minimum(spd, far).astype(np.uint8)}

    def module(self, sizes: EncodingSizes) -> nn.Module:
        return SpatialModule(sizes.channels, self.max_distance)


class SpatialModule(nn.Module):
    def __init__(self, channels: int, max_distance: int):
        super().__init__()
        self.bias = nn.Parameter(torch.empty(max_distance + 2, channels))

    def forward(self, batch: GraphBatch) -> Terms:
        return Terms(pair=embedding_sum(batch.arrays["spd"].unsqueeze(1), self.bias))


@dataclass(frozen=True, config=STRICT)
class EdgePath:
    """Average of the bonds along the shortest path, with weights per step and channel (Ying et al., equation 7)."""

    name: Literal["edge"] = "edge"
    max_hops: Annotated[int, Field(ge=1, le=64)] = 5  # later steps are ignored, as in the authors' code
    arrays: ClassVar[Mapping[str, Level]] = {"path_bonds": "pair"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """``path_bonds``: uint8 [P, max_hops], bond types of the first steps of the path, 0 after its end."""
        from graphormer_sepnorm.encodings import graph_algorithms  # imports Numba

        _, path_bonds = graph_algorithms.shortest_paths(*adjacency(graphs), self.max_hops)
        return {"path_bonds": path_bonds}

    def module(self, sizes: EncodingSizes) -> nn.Module:
        return EdgePathModule(sizes.channels, self.max_hops, sizes.bond_types)


class EdgePathModule(nn.Module):
    def __init__(self, channels: int, max_hops: int, bond_types: int):
        super().__init__()
        self.bond = nn.Parameter(torch.empty(bond_types, channels))
        self.hop = nn.Parameter(torch.empty(max_hops, channels, channels))

    def forward(self, batch: GraphBatch) -> Terms:
        max_hops, channels = self.hop.shape[:2]
        path_bonds = with_columns(batch, "path_bonds", max_hops)
        per_hop = nn.functional.pad(self.bond @ self.hop, (0, 0, 1, 0))  # [max_hops, 1 + bond types, C], no bond: 0
        offset = torch.arange(max_hops, dtype=torch.int32, device=path_bonds.device) * per_hop.shape[1]
        steps = path_bonds.count_nonzero(dim=1).clamp(min=1)
        total = embedding_sum(path_bonds + offset, per_hop.view(-1, channels))
        return Terms(pair=total.div_(steps.unsqueeze(1)))  # in place: new memory takes longer than the division
