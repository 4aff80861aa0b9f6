"""Relative random-walk probabilities (RRWP)."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import nn

from graphormer_sepnorm.encodings.base import STRICT, EncodingSizes, Terms, adjacency, with_columns
from graphormer_sepnorm.graphs import GraphBatch, Graphs, Level


@dataclass(frozen=True, config=STRICT)
class RandomWalk:
    """Probabilities of pairs and of returns to atoms, each through a linear map (Ma et al., ICML 2023, section 3.1)."""

    name: Literal["rrwp"] = "rrwp"
    steps: Annotated[int, Field(ge=1, le=64)] = 16  # probabilities after 0 to steps - 1 steps
    arrays: ClassVar[Mapping[str, Level]] = {"rrwp": "pair", "rrwp_return": "atom"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """``rrwp``: float16 [P, steps], ((D^-1 A)^k)_ij; ``rrwp_return``: float16 [T, steps], its diagonal."""
        from graphormer_sepnorm.encodings import graph_algorithms  # imports Numba

        walks = graph_algorithms.random_walks(*adjacency(graphs), self.steps)
        walks = torch.from_numpy(walks).half().numpy()  # same result as NumPy's conversion, several times faster
        return {"rrwp": walks, "rrwp_return": walks[graphs.diagonal]}

    def module(self, sizes: EncodingSizes) -> nn.Module:
        return RandomWalkModule(sizes.width, sizes.channels, self.steps)


class RandomWalkModule(nn.Module):
    def __init__(self, width: int, channels: int, steps: int):
        super().__init__()
        self.atom = nn.Linear(steps, width)
        self.pair = nn.Linear(steps, channels)

    def forward(self, batch: GraphBatch) -> Terms:
        dtype, steps = self.pair.weight.dtype, self.pair.in_features
        returns, walks = with_columns(batch, "rrwp_return", steps), with_columns(batch, "rrwp", steps)
        return Terms(atom=self.atom(returns.to(dtype)), pair=self.pair(walks.to(dtype)))
