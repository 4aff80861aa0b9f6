import torch
from torch_geometric.data import Data

from graphormer_sepnorm.encodings.base import Terms, degrees
from graphormer_sepnorm.graphs import pack_data
from tests.unit.encodings.chains import chain


def test_degrees_count_bonds_in_and_out_in_every_molecule():
    one_way = Data(
        x=torch.zeros(3, 1, dtype=torch.long),
        edge_index=torch.tensor([[0, 1], [2, 2]]),
        edge_attr=torch.tensor([0, 0]),
        num_nodes=3,
    )
    found = degrees(pack_data([chain(2), one_way, chain(1)], (3,)))
    assert found.tolist() == [[1, 1], [1, 1], [0, 1], [0, 1], [2, 0], [0, 0]]


def test_encodings_add_only_the_arrays_that_they_declare():
    assert set(Terms(atom=torch.ones(1))[1:]) == {None}
