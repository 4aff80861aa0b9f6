"""Structural encodings: what each precomputes per molecule, and the module that learns from it, side by side.

An encoding is a frozen dataclass of its hyperparameters with

    arrays                            names of the arrays it needs in a batch
    precompute(graphs)                those arrays for packed molecules, per atom [T, ...] or per ordered pair [P, ...]
    module(width, channels, heads)    an ``nn.Module`` from GraphBatch to ``Terms``; the model draws its first weights

A new one is a class here and a line in ``ENCODINGS``. Axis letters: T atoms, P ordered atom pairs, E directed bonds,
D width, H heads, C channels of the pair terms (the heads, or the hidden width of the bias network), K steps or basis
functions.
"""

from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from graphormer_sepnorm import paths
from graphormer_sepnorm.batching import GraphBatch
from graphormer_sepnorm.graphs import PackedGraphs, pack_data
from graphormer_sepnorm.ops import embedding_sum
from graphormer_sepnorm.rings import smallest_rings

# Part of every cache key: raise it when a precomputation or a featurizer changes.
PRECOMPUTE_VERSION = 1

STRICT = ConfigDict(extra="forbid", strict=True)
BOND_TYPES = 256


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


@dataclass(frozen=True, config=STRICT)
class Centrality:
    """Learned vectors for the in- and the out-degree, added to the atoms.

    Source: Ying et al., "Do Transformers Really Perform Bad for Graph Representation?", NeurIPS 2021, equation 5.

    Attributes:
        max_degree: larger degrees share the last entry.
    """

    name: Literal["centrality"] = "centrality"
    max_degree: Annotated[int, Field(ge=1, le=254)] = 15
    arrays: ClassVar[tuple[str, ...]] = ("degree",)

    def precompute(self, graphs: PackedGraphs) -> dict[str, np.ndarray]:
        """``degree``: uint8 [T, 2], in- and out-degree, at most ``max_degree``."""
        return {"degree": degrees(graphs).clip(max=self.max_degree).astype(np.uint8)}

    def module(self, width: int, channels: int, heads: int) -> nn.Module:
        return CentralityModule(width, self.max_degree)


class CentralityModule(nn.Module):
    def __init__(self, width: int, max_degree: int):
        super().__init__()
        self.in_degree = nn.Parameter(torch.empty(max_degree + 1, width))
        self.out_degree = nn.Parameter(torch.empty(max_degree + 1, width))

    def forward(self, batch: GraphBatch) -> Terms:
        table = torch.cat([self.in_degree, self.out_degree])
        offset = torch.tensor([0, len(self.in_degree)], device=table.device)
        return Terms(atom=embedding_sum(batch.arrays["degree"] + offset, table))


@dataclass(frozen=True, config=STRICT)
class Spatial:
    """A learned value per channel for each shortest-path distance, with an entry of its own for unreachable pairs.

    Source: Ying et al., NeurIPS 2021, equation 6.

    Attributes:
        max_distance: longer distances share the last entry.
    """

    name: Literal["spatial"] = "spatial"
    max_distance: Annotated[int, Field(ge=1, le=paths.LONGEST)] = 40
    arrays: ClassVar[tuple[str, ...]] = ("spd",)

    def precompute(self, graphs: PackedGraphs) -> dict[str, np.ndarray]:
        """``spd``: uint8 [P], shortest-path distance in bonds, at most ``max_distance``, one more if unreachable."""
        spd, _ = paths.shortest_paths(graphs.atom_ptr, graphs.edge_index, graphs.edge_ptr, graphs.bond, 0)
        far = np.where(spd == paths.UNREACHABLE, self.max_distance + 1, self.max_distance)
        return {"spd": np.minimum(spd, far).astype(np.uint8)}

    def module(self, width: int, channels: int, heads: int) -> nn.Module:
        return SpatialModule(channels, self.max_distance)


class SpatialModule(nn.Module):
    def __init__(self, channels: int, max_distance: int):
        super().__init__()
        self.bias = nn.Parameter(torch.empty(max_distance + 2, channels))

    def forward(self, batch: GraphBatch) -> Terms:
        return Terms(pair=embedding_sum(batch.arrays["spd"].unsqueeze(1), self.bias))


@dataclass(frozen=True, config=STRICT)
class EdgePath:
    """The bonds along the shortest path, averaged over its steps with weights of their own per step.

    Source: Ying et al., NeurIPS 2021, equation 7; per channel, as in the authors' code.

    Attributes:
        max_hops: steps of a path beyond these are left out, as in the authors' code.
        num_bond_types: size of the vocabulary of bond types, ``NO_BOND`` included.
    """

    name: Literal["edge"] = "edge"
    max_hops: Annotated[int, Field(ge=1, le=64)] = 5
    num_bond_types: Annotated[int, Field(ge=2, le=BOND_TYPES)] = 4
    arrays: ClassVar[tuple[str, ...]] = ("path_bonds",)

    def precompute(self, graphs: PackedGraphs) -> dict[str, np.ndarray]:
        """``path_bonds``: uint8 [P, max_hops], bond types of the path's first steps, 0 behind its end."""
        _, path_bonds = paths.shortest_paths(
            graphs.atom_ptr, graphs.edge_index, graphs.edge_ptr, graphs.bond, self.max_hops
        )
        return {"path_bonds": path_bonds}

    def module(self, width: int, channels: int, heads: int) -> nn.Module:
        return EdgePathModule(channels, self.max_hops, self.num_bond_types)


class EdgePathModule(nn.Module):
    def __init__(self, channels: int, max_hops: int, num_bond_types: int):
        super().__init__()
        self.bond = nn.Parameter(torch.empty(num_bond_types - 1, channels))
        self.hop = nn.Parameter(torch.empty(max_hops, channels, channels))

    def forward(self, batch: GraphBatch) -> Terms:
        path_bonds = batch.arrays["path_bonds"]
        max_hops, channels = self.hop.shape[:2]
        per_hop = nn.functional.pad(self.bond @ self.hop, (0, 0, 1, 0))  # [max_hops, num_bond_types, C], no bond: 0
        num_bond_types = per_hop.shape[1]
        offset = torch.arange(max_hops, dtype=torch.int32, device=path_bonds.device) * num_bond_types
        steps = path_bonds.count_nonzero(dim=1).clamp(min=1)
        total = embedding_sum(path_bonds + offset, per_hop.view(-1, channels))
        return Terms(pair=total / steps.unsqueeze(1))


@dataclass(frozen=True, config=STRICT)
class RandomWalk:
    """Relative random-walk probabilities of pairs, and the return probabilities of atoms, each through a linear map.

    Source: Ma et al., "Graph Inductive Biases in Transformers without Message Passing", ICML 2023 (GRIT), section 3.1.

    Attributes:
        steps: probabilities of k = 0 to steps - 1 steps.
    """

    name: Literal["rrwp"] = "rrwp"
    steps: Annotated[int, Field(ge=1, le=64)] = 16
    arrays: ClassVar[tuple[str, ...]] = ("rrwp", "rrwp_return")

    def precompute(self, graphs: PackedGraphs) -> dict[str, np.ndarray]:
        """``rrwp``: float16 [P, steps], ((D^-1 A)^k)_ij; ``rrwp_return``: float16 [T, steps], its diagonal."""
        walks = paths.random_walks(graphs.atom_ptr, graphs.edge_index, graphs.edge_ptr, graphs.bond, self.steps)
        walks = walks.astype(np.float16)
        return {"rrwp": walks, "rrwp_return": walks[graphs.diagonal]}

    def module(self, width: int, channels: int, heads: int) -> nn.Module:
        return RandomWalkModule(width, channels, self.steps)


class RandomWalkModule(nn.Module):
    def __init__(self, width: int, channels: int, steps: int):
        super().__init__()
        self.atom = nn.Linear(steps, width)
        self.pair = nn.Linear(steps, channels)

    def forward(self, batch: GraphBatch) -> Terms:
        kind = self.pair.weight.dtype
        returns, walks = batch.arrays["rrwp_return"].to(kind), batch.arrays["rrwp"].to(kind)
        return Terms(atom=self.atom(returns), pair=self.pair(walks))


@dataclass(frozen=True, config=STRICT)
class Resistance:
    """Effective resistances of pairs, in a Gaussian basis with learned centres and widths.

    A linear map of the basis is added to the attention scores; another one, plus 1, can multiply the attention weights.

    Source: Zhang et al., "Rethinking the Expressive Power of GNNs via Graph Biconnectivity", ICLR 2023 (Graphormer-GD),
    section 4.

    Attributes:
        basis: number of Gaussians.
        cap: largest resistance, in bonds; that of unconnected atoms too.
        multiplies: whether attention weights are multiplied.
    """

    name: Literal["resistance"] = "resistance"
    basis: Annotated[int, Field(ge=1, le=256)] = 32
    cap: Annotated[float, Field(gt=0, le=254)] = 24.0
    multiplies: bool = False
    arrays: ClassVar[tuple[str, ...]] = ("resistance",)

    def precompute(self, graphs: PackedGraphs) -> dict[str, np.ndarray]:
        """``resistance``: float16 [P], in bonds."""
        found = paths.resistances(graphs.atom_ptr, graphs.edge_index, graphs.edge_ptr, graphs.bond, self.cap)
        return {"resistance": found.astype(np.float16)}

    def module(self, width: int, channels: int, heads: int) -> nn.Module:
        return ResistanceModule(channels, heads if self.multiplies else 0, self.basis, self.cap)


class ResistanceModule(nn.Module):
    """Centres start evenly over 0 to the cap, widths at a tenth of it; both learn a correction."""

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
    arrays: ClassVar[tuple[str, ...]] = ("ring_counts", "shared_ring")

    def precompute(self, graphs: PackedGraphs) -> dict[str, np.ndarray]:
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

    def module(self, width: int, channels: int, heads: int) -> nn.Module:
        return RingsModule(width, channels, self.max_size)


class RingsModule(nn.Module):
    def __init__(self, width: int, channels: int, max_size: int):
        super().__init__()
        self.atom = nn.Linear(max_size - 2, width)
        self.pair = nn.Parameter(torch.empty(max_size + 1, channels))

    def forward(self, batch: GraphBatch) -> Terms:
        counts = batch.arrays["ring_counts"].to(self.atom.weight.dtype)
        shared = embedding_sum(batch.arrays["shared_ring"].unsqueeze(1), self.pair)
        return Terms(atom=self.atom(counts), pair=shared)


Encoding = Centrality | Spatial | EdgePath | RandomWalk | Resistance | Bonds | DegreeScaling | Rings
ENCODINGS: dict[str, type[Encoding]] = {
    "centrality": Centrality,
    "spatial": Spatial,
    "edge": EdgePath,
    "rrwp": RandomWalk,
    "resistance": Resistance,
    "bonds": Bonds,
    "degree_scaling": DegreeScaling,
    "rings": Rings,
}


def precompute(encodings: tuple[Encoding, ...], graphs: PackedGraphs) -> dict[str, np.ndarray]:
    """The arrays of all ``encodings`` for packed molecules, by name."""
    return {name: array for encoding in encodings for name, array in encoding.precompute(graphs).items()}


class GraphormerTransform(BaseTransform):
    """PyG transform that adds to a graph the arrays that a model's encodings need.

    Args:
        encodings: the model's encodings, ``config.encodings``.
        bond_sizes: sizes of the vocabularies of the columns of ``edge_attr``, ``config.bond_sizes``.
    """

    def __init__(self, encodings: tuple[Encoding, ...], bond_sizes: tuple[int, ...]):
        self.encodings = encodings
        self.bond_sizes = bond_sizes

    def forward(self, data: Data) -> Data:
        for name, array in precompute(self.encodings, pack_data([data], self.bond_sizes)).items():
            data[name] = torch.from_numpy(array)
        return data

    def __repr__(self) -> str:
        return f"GraphormerTransform(encodings={self.encodings!r}, bond_sizes={self.bond_sizes!r})"
