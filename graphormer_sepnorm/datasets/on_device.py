"""Prepared molecules that lie on a device, and batches of them of a fixed shape, put together there.

All of a split is moved once, 3.4 to 23.5 KB a molecule; a batch is then named by the numbers of its molecules. Sizes
are known on the host, so neither choosing a shape nor making a batch waits for the device.

Axis letters: M molecules, B molecules of a batch.
"""

import math
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.graphs import GraphBatch, Level, Shape

MULTIPLE = 64
LENGTH_MULTIPLE = 8  # fused attention wants rows of a bias to be aligned
SPREADS = 4.0
SLOW = 20  # times as long for a batch that does not fit, about


class DeviceDataset:
    """The molecules of a split on a device, behind them one without atoms, which fills up batches.

    Attributes:
        sizes: int64 [M, 3] on the host, the numbers of atoms, pairs and directed bonds.
        num_atoms: [M] on the host.
        blank: the number of the molecule without atoms.
    """

    def __init__(self, dataset: MoleculeDataset, device: torch.device | str):
        shards = dataset.shards
        levels: tuple[Level, ...] = ("atom", "pair", "edge")
        counts = [np.concatenate([np.diff(shard.ptr(level)) for shard in shards]) for level in levels]
        self.sizes = np.stack(counts, axis=1)
        self.num_atoms = dataset.num_atoms
        self.blank = len(dataset)

        def moved(arrays: Iterable[np.ndarray], fill: float = 0) -> Tensor:
            """The rows of all shards, and behind them one that stands for padding."""
            rows = np.concatenate([np.asarray(array) for array in arrays])
            last = np.full((1, *rows.shape[1:]), fill, rows.dtype)
            return torch.from_numpy(np.concatenate([rows, last])).to(device)

        self.first = {
            level: torch.from_numpy(np.concatenate([[0], np.cumsum(count), [count.sum()]])).to(device)
            for level, count in zip(levels, counts, strict=True)
        }
        self.x = moved(shard.x for shard in shards)
        self.ends = moved(shard.edge_index.T for shard in shards)
        self.bond = moved((shard.bond for shard in shards), fill=1)
        self.levels = shards[0].levels
        self.arrays = {name: moved(shard.arrays[name] for shard in shards) for name in self.levels}
        labelled = shards[0].y is not None
        self.y = moved([dataset.y], np.nan) if labelled else None
        self.bounds = moved([dataset.bounds], np.nan) if labelled and dataset.bounds is not None else None

    def __len__(self) -> int:
        return self.blank

    @property
    def device(self) -> torch.device:
        return self.x.device

    def tensors(self) -> list[Tensor]:
        """All that lies on the device."""
        labels = [tensor for tensor in (self.y, self.bounds) if tensor is not None]
        return [self.x, self.ends, self.bond, *self.first.values(), *self.arrays.values(), *labels]

    def numbers(self, molecules: np.ndarray, count: int) -> Tensor:
        """The numbers of some molecules on the device, filled up to ``count``."""
        filled = np.full(count, self.blank)
        filled[: len(molecules)] = molecules
        host = torch.from_numpy(filled)
        return (host.pin_memory() if self.device.type == "cuda" else host).to(self.device, non_blocking=True)

    def batch(self, molecules: Tensor, shape: Shape) -> GraphBatch:
        """A batch of a shape that its molecules fit into.

        Args:
            molecules: int64 [B] numbers on the device, ``blank`` where the batch has no more.
        """
        atom, atom_ptr, _ = self.rows("atom", molecules, shape.atoms)
        pair, _, _ = self.rows("pair", molecules, shape.pairs)
        edge, _, owner = self.rows("edge", molecules, shape.edges)
        rows = {"atom": atom, "pair": pair, "edge": edge}
        padding = (edge == self.ends.shape[0] - 1).unsqueeze(1)
        ends = (self.ends[edge].long() + atom_ptr[owner].unsqueeze(1)).masked_fill(padding, shape.atoms - 1)
        return GraphBatch(
            x=self.x[atom],
            ptr=atom_ptr,
            edge_index=ends.T.contiguous(),
            bond=self.bond[edge].long(),
            arrays={name: array[rows[self.levels[name]]] for name, array in self.arrays.items()},
            y=None if self.y is None else self.y[molecules],
            bounds=None if self.bounds is None else self.bounds[molecules],
            shape=shape,
        )

    def rows(self, level: Level, molecules: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Where the rows of molecules lie, one after another, filled up to ``count`` by the row of padding.

        Returns:
            the rows [count], the ends of each molecule's among them [B + 1], and the molecule of each [count].
        """
        first = self.first[level]
        ptr = pad((first[molecules + 1] - first[molecules]).cumsum(0), (1, 0))
        place = torch.arange(count, device=self.device)
        owner = torch.searchsorted(ptr[1:], place, right=True).clamp(max=len(molecules) - 1)
        row = first[molecules[owner]] + place - ptr[owner]
        return row.where(place < ptr[-1], first[-1]), ptr, owner


def rounded_up(number: float, multiple: int = MULTIPLE) -> int:
    return math.ceil(number / multiple) * multiple


def random_shape(sizes: np.ndarray, batch_size: int) -> Shape:
    """A shape that most random batches fit into.

    Totals are ``SPREADS`` standard deviations above the mean, or those of the largest molecules together.

    Args:
        sizes: [M, 3] as those of ``DeviceDataset``.
    """
    sizes = sizes.astype(np.float64)
    largest = np.sort(sizes, axis=0)[-batch_size:].sum(axis=0)
    totals = batch_size * sizes.mean(axis=0) + SPREADS * math.sqrt(batch_size) * sizes.std(axis=0)
    atoms, pairs, edges = np.minimum(totals, largest)
    return shape_of(batch_size, atoms, pairs, edges, best_length(sizes[:, 0], batch_size) - 1)


def best_length(num_atoms: np.ndarray, batch_size: int) -> int:
    """The length of a padded view that costs least on average.

    A longer one takes more time in every batch, by its square; a shorter one lets more batches have a molecule that
    does not fit, each of which takes ``SLOW`` times as long.
    """
    lengths = np.arange(LENGTH_MULTIPLE, rounded_up(num_atoms.max() + 1, LENGTH_MULTIPLE) + 1, LENGTH_MULTIPLE)
    fitting = (np.searchsorted(np.sort(num_atoms), lengths) / len(num_atoms)) ** batch_size
    cost = lengths**2 + SLOW * (num_atoms.mean() + 1) ** 2 * (1 - fitting)
    return int(lengths[cost.argmin()])


def smallest_shape(sizes: np.ndarray) -> Shape:
    """The shape of a batch of molecules with these ``sizes`` [B, 3]."""
    atoms, pairs, edges = sizes.sum(axis=0)
    return shape_of(len(sizes), atoms, pairs, edges, sizes[:, 0].max())


def shape_of(molecules: int, atoms: float, pairs: float, edges: float, longest: float) -> Shape:
    """The shape that holds so much, rounded up, and an atom more."""
    return Shape(
        molecules,
        rounded_up(atoms + 1),
        rounded_up(pairs),
        rounded_up(edges + 1),
        rounded_up(longest + 1, LENGTH_MULTIPLE),
    )


def fits(sizes: np.ndarray, shape: Shape) -> bool:
    """Whether molecules with these ``sizes`` [B, 3] fit into a batch of a shape."""
    atoms, pairs, edges = sizes.sum(axis=0)
    room = atoms < shape.atoms and pairs <= shape.pairs and edges <= shape.edges
    return bool(room and len(sizes) <= shape.molecules and sizes[:, 0].max() < shape.length)
