from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, InMemoryDataset

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.datasets.benchmarks import unpack
from graphormer_sepnorm.datasets.store import MoleculeDataset, from_tensors, in_memory, prepare, to_tensors
from graphormer_sepnorm.encodings.transform import GraphormerTransform, from_pyg
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import Graphs, Level, Padding, pack_data
from tests.conftest import skeleton


def molecule(num_atoms: int, ends: list[tuple[int, int]], kinds: list[int]) -> Data:
    return Data(
        x=torch.zeros(num_atoms, 1, dtype=torch.long),
        edge_index=torch.tensor(ends).t(),
        edge_attr=torch.tensor(kinds),
        num_nodes=num_atoms,
    )


def some_graphs() -> list[Data]:
    """One with parallel bonds and a loop, and one with unsorted bonds in one direction."""
    return [
        molecule(2, [(1, 0), (0, 1), (0, 1), (0, 1), (1, 1)], [1, 2, 0, 1, 2]),
        molecule(3, [(2, 1), (0, 2), (0, 1)], [0, 2, 1]),
    ]


def test_bonds_are_sorted_and_the_smallest_type_of_parallel_ones_is_kept():
    packed = pack_data(some_graphs(), (3,))
    assert packed.edge_index.tolist() == [[0, 1, 1, 0, 0, 2], [1, 0, 1, 1, 2, 1]]
    assert packed.edge_ptr.tolist() == [0, 3, 6]
    assert packed.bond.tolist() == [1, 2, 3, 2, 3, 1]


@pytest.mark.parametrize("source", ["memory", "pyg"])
def test_bonds_and_degrees_are_numbered_across_a_batch(source):
    if source == "memory":
        batch = in_memory(pack_data(some_graphs(), (3,)), ()).batch([1, 0])
    else:
        transform = GraphormerTransform((), (3,))
        batch = from_pyg(Batch.from_data_list([transform(graph) for graph in some_graphs()[::-1]]), [])
    assert batch.edge_index.tolist() == [[0, 0, 2, 3, 4, 4], [1, 2, 1, 4, 3, 4]]
    assert batch.edge_index.dtype == batch.bond.dtype == torch.int64
    assert batch.bond.tolist() == [2, 3, 1, 1, 2, 3]
    assert batch.in_degree.tolist() == [0, 2, 1, 1, 2]
    assert batch.y is None


class PerRow:
    """An encoding with an array of each level whose rows are numbered."""

    arrays: ClassVar[dict[str, Level]] = {"of_atoms": "atom", "of_pairs": "pair", "of_bonds": "edge"}

    def precompute(self, graphs: Graphs) -> dict[str, np.ndarray]:
        return {name: np.arange(graphs.ptr(level)[-1]) for name, level in self.arrays.items()}


def as_many_atoms_as_bonds() -> Graphs:
    """Molecules of 1, 2 and 3 atoms, 1, 4 and 9 pairs, and 0, 2 and 4 directed bonds."""
    no_bonds = {"edge_index": torch.empty(2, 0).long(), "edge_attr": torch.empty(0).long()}
    lone = Data(x=torch.zeros(1, 1).long(), num_nodes=1, **no_bonds)
    chains = [molecule(2, [(0, 1), (1, 0)], [0] * 2), molecule(3, [(0, 1), (1, 0), (1, 2), (2, 1)], [0] * 4)]
    return pack_data([lone, *chains], (3,)).with_targets(np.eye(3))


def test_rows_of_arrays_go_with_their_molecules():
    prepared = prepare(as_many_atoms_as_bonds(), (PerRow(),))
    expected = {"of_atoms": [3, 4, 5, 0], "of_pairs": [*range(5, 14), 0], "of_bonds": [2, 3, 4, 5]}
    batch, taken = MoleculeDataset([prepared]).batch([2, 0]), prepared.take(np.array([2, 0]))
    for name, rows in expected.items():
        assert batch.arrays[name].tolist() == taken.arrays[name].tolist() == rows
    assert batch.y.tolist() == taken.y.tolist() == [[0, 0, 1], [1, 0, 0]]


def test_a_shard_is_read_as_it_was_written():
    for packed in (as_many_atoms_as_bonds(), pack_data(some_graphs(), (3,))):
        graphs = prepare(packed, (PerRow(),))
        read = from_tensors(to_tensors(graphs))
        assert read.levels == graphs.levels
        assert (read.y is None) == (graphs.y is None)
        for name in ("x", "atom_ptr", "edge_index", "edge_ptr", "bond"):
            np.testing.assert_array_equal(getattr(read, name), getattr(graphs, name))
        for name in graphs.arrays:
            np.testing.assert_array_equal(read.arrays[name], graphs.arrays[name])


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("x", 28, "x of molecule 1 has 28 in column 0, where values are from 0 to 27"),
        ("edge_attr", -1, "edge_attr of molecule 1 has -1 in column 0"),
        ("edge_index", 2, "edge_index of molecule 1 has atom 2, its atoms are numbered from 0 to 1"),
    ],
)
def test_datasets_outside_the_vocabularies_are_refused(name, value, sentence):
    """The same value is valid in the first molecule, which must not hide the invalid one in the second."""
    graphs = [skeleton((0, 1), (1, 2), (2, 0)), skeleton((0, 1))]
    for graph in graphs:
        graph.x, graph.y = torch.full((graph.num_nodes,), 27), torch.zeros(1)
        graph.edge_attr = graph.edge_attr.view(-1)
    graphs[1][name][..., -1] = value
    data, slices = InMemoryDataset.collate(graphs)
    with pytest.raises(InputError, match=sentence):
        unpack(SimpleNamespace(_data=data, slices=slices), FEATURIZERS["zinc"])


def test_padding_by_hand():
    """Molecules of 2, 20 and 1 atoms: the first and the last share a view of 8 tokens, the other has one of 24."""
    found = Padding.of(torch.tensor([0, 2, 22, 23]))
    assert found.views == ((2, 8), (1, 24))
    assert found.molecule.tolist() == [0, 2, 1]
    assert found.slot.tolist() == [0, 16, 8, 1, 2, *range(17, 37), 9]
    assert found.score[:4].tolist() == [9, 10, 17, 18] and found.score[-1] == 64 + 9
    assert found.score[4:-1].tolist() == [128 + 24 * row + column for row in range(1, 21) for column in range(1, 21)]


def test_a_batch_is_padded_when_it_leaves_the_cpu_and_counts_its_pairs_without_synchronizing():
    batch = in_memory(as_many_atoms_as_bonds(), ()).batch([2, 0])
    assert batch.to("cpu").padding is None
    there = batch.to("meta", non_blocking=True)
    assert there.padding.views == ((2, 8),) and there.num_pairs == batch.num_pairs == 10
    tensors = (there.x, there.ptr, there.bond, there.y, there.padding.slot, there.padding.score, there.padding.molecule)
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert there.to("meta").padding is not None


@pytest.mark.parametrize("of_atoms", [torch.zeros, lambda count: [0.0] * count])
def test_labels_of_atoms_are_left_to_the_user(of_atoms):
    """Five atoms in two molecules."""
    graphs = [GraphormerTransform((), (3,))(graph) for graph in some_graphs()]
    for graph in graphs:
        graph.y = of_atoms(graph.num_nodes)
        graph.conditions = torch.tensor([[300.0, 7.4]])
    batch = from_pyg(Batch.from_data_list(graphs), [])
    assert batch.y is None
    assert batch.conditions.tolist() == [[300.0, pytest.approx(7.4)]] * 2
