"""The PyG transform that prepares graphs for a model."""

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from graphormer_sepnorm.encodings import precompute
from graphormer_sepnorm.encodings.base import Encoding
from graphormer_sepnorm.graphs import pack_data


class GraphormerTransform(BaseTransform):
    """PyG transform that adds the bonds and arrays that a model needs.

    It adds the bonds without duplicates as ``bond_index`` [2, e], their types as ``bond`` [e], and the precomputed
    arrays of the encodings. Edges are directed, so give each bond in both directions, as
    ``torch_geometric.utils.to_undirected`` does.

    Args:
        encodings: encodings of the model, ``config.encodings``.
        bond_sizes: vocabulary sizes of the columns of ``edge_attr``, ``config.bond_sizes``.
    """

    def __init__(self, encodings: tuple[Encoding, ...], bond_sizes: tuple[int, ...]):
        self.encodings = encodings
        self.bond_sizes = bond_sizes

    def forward(self, data: Data) -> Data:
        graphs = pack_data([data], self.bond_sizes)
        data.bond_index, data.bond = torch.from_numpy(graphs.edge_index), torch.from_numpy(graphs.bond)
        for name, array in precompute(self.encodings, graphs).items():
            data[name] = torch.from_numpy(array)
        return data

    def __repr__(self) -> str:
        return f"GraphormerTransform(encodings={self.encodings!r}, bond_sizes={self.bond_sizes!r})"
