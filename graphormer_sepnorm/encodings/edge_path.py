"""Edge encoding: the bonds along the shortest path."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import nn

from graphormer_sepnorm.encodings.base import STRICT, EncodingSizes, Terms, adjacency, with_columns
from graphormer_sepnorm.graphs import GraphBatch, Graphs, Level
from graphormer_sepnorm.kernels import embedding_sum


@dataclass(frozen=True, config=STRICT)
class EdgePath:
    """Average of the bonds along the shortest path, with separate weights for each step.

    Source: Ying et al., NeurIPS 2021, equation 7; per channel, as in the authors' code.

    Attributes:
        max_hops: later steps of a path are ignored, as in the authors' code.
    """

    name: Literal["edge"] = "edge"
    max_hops: Annotated[int, Field(ge=1, le=64)] = 5
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
