"""The PyG transform that adds what a model's encodings need to a graph."""

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from graphormer_sepnorm.encodings import precompute
from graphormer_sepnorm.encodings.base import Encoding
from graphormer_sepnorm.graphs import pack_data


class GraphormerTransform(BaseTransform):
    """PyG transform that adds to a graph what a model reads of it.

    These are the bonds without parallel ones, ``bond_index`` [2, e], their types ``bond`` [e], and the arrays that the
    model's encodings need.

    Args:
        encodings: the model's encodings, ``config.encodings``.
        bond_sizes: sizes of the vocabularies of the columns of ``edge_attr``, ``config.bond_sizes``.
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
