"""A chain of atoms, and arrays and terms of an encoding for a graph."""

import torch
from torch_geometric.data import Data

from graphormer_sepnorm.encodings.transform import GraphormerTransform


def chain(num_atoms: int, ring: bool = False) -> Data:
    """Atoms in a row, or in a ring, with bonds of type 0, 1, 2, 0, 1, ..."""
    ends = [(i, (i + 1) % num_atoms) for i in range(num_atoms if ring else num_atoms - 1)]
    kinds = torch.arange(len(ends)) % 3
    forth = torch.tensor(ends, dtype=torch.long).reshape(-1, 2).t()
    return Data(
        x=torch.zeros(num_atoms, 1, dtype=torch.long),
        edge_index=torch.cat([forth, forth.flip(0)], dim=1),
        edge_attr=torch.cat([kinds, kinds]),
        num_nodes=num_atoms,
    )


def array(encoding, graph: Data, name: str) -> torch.Tensor:
    """An array of an encoding; those of atom pairs as [n, n, ...]."""
    values = GraphormerTransform((encoding,), (3,))(graph.clone())[name]
    n = graph.num_nodes
    return values.view(n, n, *values.shape[1:]) if len(values) == n * n and n > 1 else values
