"""Centrality encoding: a learned vector per degree."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import nn

from graphormer_sepnorm.encodings.base import STRICT, EncodingSizes, Terms, degrees
from graphormer_sepnorm.graphs import GraphBatch, Graphs, Level
from graphormer_sepnorm.kernels import embedding_sum


@dataclass(frozen=True, config=STRICT)
class Centrality:
    """Learned vectors for the in- and out-degree, added to the atoms.

    Source: Ying et al., "Do Transformers Really Perform Badly for Graph Representation?", NeurIPS 2021, equation 5.

    Attributes:
        max_degree: larger degrees share the last entry.
    """

    name: Literal["centrality"] = "centrality"
    max_degree: Annotated[int, Field(ge=1, le=254)] = 15
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
