"""The encodings of Graphormer, random walks, effective resistances, rings and chordless cycles."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from rdkit import Chem
from torch import Tensor, nn

from graphormer_sepnorm.encodings import base
from graphormer_sepnorm.encodings.base import LONGEST_DISTANCE, STRICT, EncodingSizes, Terms, adjacency, with_columns
from graphormer_sepnorm.graphs import GraphBatch, Graphs, Level, pointers
from graphormer_sepnorm.kernels import embedding_sum


@dataclass(frozen=True, config=STRICT)
class Centrality:
    """Learned vectors for the in- and out-degree, added to the atoms (Ying et al., NeurIPS 2021, equation 5)."""

    name: Literal["centrality"] = "centrality"
    max_degree: Annotated[int, Field(ge=1, le=254)] = 15  # larger degrees share the last entry
    arrays: ClassVar[Mapping[str, Level]] = {"degree": "atom"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """``degree``: uint8 [T, 2], in- and out-degree, at most ``max_degree``."""
        return {"degree": base.degrees(graphs).clip(max=self.max_degree).astype(np.uint8)}

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

        spd, _ = graph_algorithms.shortest_paths(adjacency(graphs), 0)
        far = np.where(spd == base.UNREACHABLE, self.max_distance + 1, self.max_distance)
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

        _, path_bonds = graph_algorithms.shortest_paths(adjacency(graphs), self.max_hops)
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


@dataclass(frozen=True, config=STRICT)
class RandomWalk:
    """Probabilities of pairs and of returns to atoms, each through a linear map (Ma et al., ICML 2023, section 3.1)."""

    name: Literal["rrwp"] = "rrwp"
    steps: Annotated[int, Field(ge=1, le=64)] = 16  # probabilities after 0 to steps - 1 steps
    arrays: ClassVar[Mapping[str, Level]] = {"rrwp": "pair", "rrwp_return": "atom"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """``rrwp``: float16 [P, steps], ((D^-1 A)^k)_ij; ``rrwp_return``: float16 [T, steps], its diagonal."""
        from graphormer_sepnorm.encodings import graph_algorithms  # imports Numba

        # PyTorch's conversion has the same result as NumPy's and is several times faster
        walks = torch.from_numpy(graph_algorithms.random_walks(adjacency(graphs), self.steps)).half().numpy()
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
        from scipy.sparse import csr_array  # their import takes a while
        from scipy.sparse.csgraph import connected_components

        from graphormer_sepnorm.encodings import graph_algorithms  # imports Numba

        bonds, atoms = (np.ones(len(graphs.bond), bool), base.ends_of_bonds(graphs)), graphs.atom_ptr[-1]
        _, components = connected_components(csr_array(bonds, shape=(atoms, atoms)), directed=False)
        resistances = graph_algorithms.resistances(adjacency(graphs), components, self.cap)
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


@lru_cache(maxsize=256)
def unbonded(num_atoms: int) -> Chem.RWMol:
    """A molecule of this many atoms without bonds; copying it is faster than reading it again."""
    return Chem.RWMol(Chem.MolFromSmiles(".".join("C" * num_atoms), sanitize=False))


def smallest_rings(num_atoms: int, edge_index: np.ndarray) -> list[list[int]]:
    """The union of all smallest sets of smallest rings, which does not depend on the numbering of the atoms."""
    skeleton = Chem.RWMol(unbonded(num_atoms))
    for low, high in set(zip(*np.sort(edge_index, axis=0).tolist(), strict=True)):
        if low < high:
            skeleton.AddBond(low, high, Chem.BondType.SINGLE)
    return [list(ring) for ring in Chem.GetSymmSSSR(skeleton)]


@dataclass(frozen=True, config=STRICT)
class Rings:
    """Number of rings of each size through each atom, and the size of the smallest ring that a pair shares.

    An atom gets a linear map of its numbers of rings with at least 3, 4, ... atoms, so that weights learned from
    smaller rings carry over to rare sizes. Sources: Bouritsas et al., TPAMI 2022 (GSN), for counts as features; Bodnar
    et al., NeurIPS 2021 (CIN), for exchange within rings.
    """

    name: Literal["rings"] = "rings"
    max_size: Annotated[int, Field(ge=3, le=254)] = 16  # larger rings count as rings of this size
    arrays: ClassVar[Mapping[str, Level]] = {"ring_counts": "atom", "shared_ring": "pair"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """``ring_counts``: uint8 [T, max_size - 2], of at least 3, 4, ... atoms; ``shared_ring``: uint8 [P]."""
        from graphormer_sepnorm.encodings.graph_algorithms import mark_rings  # imports Numba

        rings = [
            (m, ring)
            for m, n in enumerate(graphs.num_atoms)
            for ring in smallest_rings(int(n), graphs.edge_index[:, graphs.rows("edge", m)])
        ]
        molecule, starts = np.array([m for m, _ in rings], np.int64), pointers([len(ring) for _, ring in rings])
        atoms = np.array([atom for _, ring in rings for atom in ring], np.int64)
        counts, shared = mark_rings(graphs.atom_ptr, graphs.pair_ptr, molecule, starts, atoms, self.max_size)
        return {"ring_counts": counts, "shared_ring": shared}

    def module(self, sizes: EncodingSizes) -> nn.Module:
        return RingsModule(sizes.width, sizes.channels, self.max_size)


class CountsModule(nn.Module):
    """Numbers of rings or cycles with at least 3, 4, ... atoms through each atom, through a linear map."""

    def __init__(self, name: str, width: int, max_size: int):
        super().__init__()
        self.name = name
        self.atom = nn.Linear(max_size - 2, width)

    def forward(self, batch: GraphBatch) -> Terms:
        return Terms(atom=self.atom(with_columns(batch, self.name, self.atom.in_features).to(self.atom.weight.dtype)))


class RingsModule(CountsModule):
    def __init__(self, width: int, channels: int, max_size: int):
        super().__init__("ring_counts", width, max_size)
        self.pair = nn.Parameter(torch.empty(max_size + 1, channels))

    def forward(self, batch: GraphBatch) -> Terms:
        return super().forward(batch)._replace(pair=embedding_sum(batch.arrays["shared_ring"].unsqueeze(1), self.pair))


@dataclass(frozen=True, config=STRICT)
class Cycles:
    """Number of chordless cycles through each atom: smallest rings, and cycles around several, as around phenalene.

    Source: Bodnar et al., NeurIPS 2021 (CIN), whose rings on ZINC are these, of up to 18 atoms.
    """

    name: Literal["cycles"] = "cycles"
    max_size: Annotated[int, Field(ge=3, le=32)] = 18  # the time to find larger ones in cages grows steeply
    arrays: ClassVar[Mapping[str, Level]] = {"cycle_counts": "atom"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        """``cycle_counts``: uint8 [T, max_size - 2], numbers of cycles with at least 3, 4, ... atoms, at most 255."""
        from graphormer_sepnorm.encodings.graph_algorithms import count_cycles  # imports Numba

        start, neighbour = simple_neighbours(graphs)
        return {"cycle_counts": count_cycles(graphs.atom_ptr, start, neighbour, self.max_size)}

    def module(self, sizes: EncodingSizes) -> nn.Module:
        return CountsModule("cycle_counts", sizes.width, self.max_size)


def simple_neighbours(graphs: Graphs) -> tuple[np.ndarray, np.ndarray]:
    """start [T + 1] and neighbours of all atoms, numbered across molecules, without parallel bonds and self-loops."""
    ends = base.ends_of_bonds(graphs)
    num_atoms = graphs.atom_ptr[-1]
    low, high = np.sort(ends[:, ends[0] != ends[1]], axis=0)
    bonds = np.divmod(np.unique(low * num_atoms + high), num_atoms)  # np.unique of columns takes ten times as long
    source, neighbour = np.concatenate([bonds, bonds[::-1]], axis=1)
    return pointers(np.bincount(source, minlength=num_atoms)), neighbour[np.argsort(source, kind="stable")]
