"""PyG's graphs as input of a model: the transform that prepares them, and the conversion of their batches."""

import zlib
from collections.abc import Collection

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform

from graphormer_sepnorm.encodings import precompute
from graphormer_sepnorm.encodings.base import RELOAD, Encoding
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import GraphBatch, check_features, pack_data


class GraphormerTransform(BaseTransform):
    """PyG transform that adds the bonds and arrays that a model needs.

    It adds the bonds without duplicates as ``bond_index`` [2, e], their types as ``bond`` [e], the precomputed arrays
    of the encodings, and ``prepared_for`` [1], by which a model recognizes graphs that were prepared for another one.
    Edges are directed, so give each bond in both directions, as ``torch_geometric.utils.to_undirected`` does.

    Args:
        encodings: encodings of the model, ``config.encodings``.
        bond_sizes: vocabulary sizes of the columns of ``edge_attr``, ``config.bond_sizes``.
    """

    def __init__(self, encodings: tuple[Encoding, ...], bond_sizes: tuple[int, ...]):
        self.encodings = encodings
        self.bond_sizes = bond_sizes

    def forward(self, data: Data) -> Data:
        if isinstance(data, Batch):
            raise InputError("this is a batch: transform each graph before they are put into a batch")
        graphs = pack_data([data], self.bond_sizes)
        data.bond_index, data.bond = torch.from_numpy(graphs.edge_index), torch.from_numpy(graphs.bond)
        for name, array in precompute(self.encodings, graphs).items():
            data[name] = torch.from_numpy(array)
        data.prepared_for = torch.tensor([fingerprint(self.encodings, self.bond_sizes)])
        return data

    def __repr__(self) -> str:
        return f"GraphormerTransform(encodings={self.encodings!r}, bond_sizes={self.bond_sizes!r})"


def fingerprint(encodings: tuple[Encoding, ...], bond_sizes: tuple[int, ...]) -> int:
    """A number that differs between models that need differently prepared graphs."""
    return zlib.crc32(repr((tuple(encodings), tuple(bond_sizes))).encode())


def read_batch(
    batch: Batch, encodings: tuple[Encoding, ...], atom_sizes: tuple[int, ...], bond_sizes: tuple[int, ...]
) -> GraphBatch:
    """A batch of transformed graphs; raises InputError if they were prepared for another model."""
    read = from_pyg(batch, [name for encoding in encodings for name in encoding.arrays])
    if "prepared_for" in batch and (batch.prepared_for != fingerprint(encodings, bond_sizes)).any():
        advice = f"prepare them with the transform of this model, model.transform(), and {RELOAD}"
        raise InputError(f"the graphs were prepared for a model with other encodings or bond_sizes: {advice}")
    check_features("x", read.x, atom_sizes, read.ptr)
    return read


def from_pyg(batch: Batch, names: Collection[str]) -> GraphBatch:
    """A batch of PyG's DataLoader with the arrays ``names``, and ``conditions`` if the model reads them."""
    if getattr(batch, "ptr", None) is None:
        advice = "put the graphs, even a single one, into a DataLoader or Batch.from_data_list"
        problem = f"the model reads a batch of transformed graphs, not {type(batch).__name__}"
        raise InputError(f"{problem}: {advice}; only predict and embed read SMILES")
    if missing := [name for name in ("bond_index", "bond", *names) if name not in batch]:
        raise ValueError(f"the batch has no {', '.join(missing)}: apply GraphormerTransform to its graphs first")
    return GraphBatch(
        x=batch.x.view(batch.num_nodes, -1),
        ptr=batch.ptr,
        edge_index=batch.bond_index,
        bond=batch.bond.long(),
        arrays={name: batch[name] for name in names},
        y=per_graph(batch, "y"),
        conditions=per_graph(batch, "conditions"),
    )


def per_graph(batch: Batch, name: str) -> Tensor | None:
    """An attribute with a row for each of the B graphs, float32 [B, n]; None for others, such as labels of atoms."""
    values = batch.get(name, None)
    if not isinstance(values, Tensor) or values.numel() % batch.num_graphs:
        return None
    return values.view(batch.num_graphs, -1).float()
