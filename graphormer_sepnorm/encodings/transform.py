"""The PyG transform that adds what a model's encodings need to a graph."""

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from graphormer_sepnorm.encodings import Encoding, precompute
from graphormer_sepnorm.graphs import pack_data


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
