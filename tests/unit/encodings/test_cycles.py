from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.encodings.base import EncodingSizes
from graphormer_sepnorm.encodings.shipped import Cycles
from graphormer_sepnorm.encodings.transform import GraphormerTransform, from_pyg
from graphormer_sepnorm.graphs import pack_data
from tests.conftest import random_graph, skeleton


def of_smiles(encoding: Cycles, *smiles: str) -> np.ndarray:
    return encoding.precompute(read_molecules("zinc", list(smiles)).graphs)["cycle_counts"]


def test_the_perimeter_of_phenalene_by_hand():
    """Three rings of six share atom 12; the twelve others are a cycle, too."""
    phenalene, shared = "C1CC2CCCC3CCCC(C1)C23", (2, 6, 10)
    with_perimeter, without = (of_smiles(Cycles(max_size=most), phenalene).tolist() for most in (12, 11))
    for atom in range(12):
        rings = 2 if atom in shared else 1
        assert with_perimeter[atom] == [rings + 1] * 4 + [1] * 6
        assert without[atom] == [rings] * 4 + [0] * 5
    assert with_perimeter[12] == [3] * 4 + [0] * 6


@pytest.mark.parametrize("seed", range(20))
def test_equals_a_search_over_all_sets_of_atoms(seed):
    """A chordless cycle is a set of atoms whose bonds among themselves are one ring and nothing else."""
    graph, most = random_graph(9, seed, extra_bonds=seed % 10), 3 + seed % 7
    bonds = nx.Graph(graph.edge_index.t().tolist())
    expected = np.zeros((9, most - 2), int)
    for size in range(3, most + 1):
        for atoms in combinations(range(9), size):
            among = bonds.subgraph(atoms)
            if all(degree == 2 for _, degree in among.degree) and nx.is_connected(among):
                expected[list(atoms), : size - 2] += 1
    found = Cycles(max_size=most).precompute(pack_data([random_graph(4, 1, extra_bonds=1), graph], (3,)))
    assert found["cycle_counts"][4:].tolist() == expected.tolist()


def test_loops_and_parallel_bonds_are_no_cycles():
    graph = skeleton((0, 0), (0, 1), (1, 0), (0, 1), (1, 2), (2, 0))
    counts = Cycles(max_size=4).precompute(pack_data([graph], (3,)))["cycle_counts"]
    assert counts.tolist() == [[1, 0]] * 3


def test_more_cycles_through_an_atom_than_are_counted():
    """Two atoms with 24 others between them share 276 squares; each of the others is in 23."""
    graph = skeleton(*((end, middle) for middle in range(2, 26) for end in (0, 1)))
    counts = Cycles(max_size=5).precompute(pack_data([graph], (3,)))["cycle_counts"]
    assert counts[0].tolist() == counts[1].tolist() == [255, 255, 0]
    assert counts[2:].tolist() == [[23, 23, 0]] * 24


def test_terms_by_hand():
    """For a triangle with a tail, all weights 1 and all biases 2: one cycle of at least 3 atoms, none of at least 4."""
    encoding = Cycles(max_size=4)
    data = GraphormerTransform((encoding,), (3,))(skeleton((0, 1), (1, 2), (2, 0), (2, 3)))
    module = encoding.module(EncodingSizes(width=5, channels=4, heads=2, bond_types=3))
    with torch.no_grad():
        module.atom.weight.fill_(1.0)
        module.atom.bias.fill_(2.0)
    terms = module(from_pyg(Batch.from_data_list([data]), ["cycle_counts"]))
    assert terms.atom.tolist() == [[3.0] * 5] * 3 + [[2.0] * 5] and terms.pair is None and terms.factor is None
