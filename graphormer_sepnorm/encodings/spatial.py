"""Spatial encoding: a learned value per shortest-path distance."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import nn

from graphormer_sepnorm.encodings.base import LONGEST_DISTANCE, STRICT, UNREACHABLE, EncodingSizes, Terms, adjacency
from graphormer_sepnorm.graphs import GraphBatch, Graphs, Level
from graphormer_sepnorm.kernels import embedding_sum


@dataclass(frozen=True, config=STRICT)
class Spatial:
    """A learned value per channel for each shortest-path distance, with a separate entry for unreachable pairs.

    Source: Ying et al., NeurIPS 2021, equation 6.

    Attributes:
        max_distance: longer distances share the last entry.
    """

    name: Literal["spatial"] = "spatial"
    max_distance: Annotated[int, Field(ge=1, le=LONGEST_DISTANCE)] = 40
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
