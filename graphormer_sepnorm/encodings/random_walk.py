"""Probabilities of random walks (RRWP), and effective resistances, which are those of the times that walks take."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

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


@dataclass(frozen=True, config=STRICT)
class Resistance:
    """Effective resistances of pairs, in a Gaussian basis with learned centres and widths, as a bias of attention.

    Source: Zhang et al., ICLR 2023 (Graphormer-GD), section 4.
    """

    name: Literal["resistance"] = "resistance"
    basis: Annotated[int, Field(ge=1, le=256)] = 32  # number of Gaussians
    cap: Annotated[float, Field(gt=0, le=254)] = 24.0  # largest resistance in bonds, also between unconnected atoms
    multiplies: bool = False  # whether 1 plus another linear map of the basis multiplies attention weights
    arrays: ClassVar[Mapping[str, Level]] = {"resistance": "pair"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """``resistance``: float16 [P], in bonds."""
        from graphormer_sepnorm.encodings import graph_algorithms  # imports Numba

        resistances = graph_algorithms.resistances(*adjacency(graphs), self.cap)
        return {"resistance": resistances.astype(np.float16)}

    def module(self, sizes: EncodingSizes) -> nn.Module:
        return ResistanceModule(sizes.channels, sizes.heads if self.multiplies else 0, self.basis, self.cap)


class ResistanceModule(nn.Module):
    """Gaussian basis: centres start evenly spaced from 0 to the cap, widths at a tenth of it; both are learned."""

    grid: Tensor

    def __init__(self, channels: int, factors: int, basis: int, cap: float):
        super().__init__()
        self.cap = cap
        self.register_buffer("grid", torch.linspace(0, 1, basis), persistent=False)
        self.shift = nn.Parameter(torch.zeros(basis))
        self.stretch = nn.Parameter(torch.zeros(basis))
        self.pair = nn.Linear(basis, channels)
        self.factor = nn.Linear(basis, factors) if factors else None

    def forward(self, batch: GraphBatch) -> Terms:
        relative = batch.arrays["resistance"].to(self.grid.dtype).unsqueeze(1) / self.cap
        gaussians = torch.exp(-50 * ((relative - self.grid - self.shift) * self.stretch.exp()) ** 2)  # [P, K]
        return Terms(pair=self.pair(gaussians), factor=None if self.factor is None else 1 + self.factor(gaussians))
