import os
import subprocess
import sys
from itertools import combinations
from typing import ClassVar

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.encodings import ENCODINGS, PRECOMPUTE_VERSION, cache_key, graph_algorithms, precompute
from graphormer_sepnorm.encodings.base import EncodingSizes, adjacency
from graphormer_sepnorm.encodings.shipped import Centrality, Cycles, Spatial
from graphormer_sepnorm.encodings.transform import GraphormerTransform, from_pyg
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import pack_data
from tests.conftest import random_graph, skeleton
from tests.reference import distances, smallest_path


def cyclopropane_with_tail() -> Data:
    """Atoms 0-1-2 in a triangle, 3 bonded to 2, 4 isolated; bond types 0 (0-1), 1 (1-2), 2 (0-2), 0 (2-3)."""
    ends = torch.tensor([[0, 1, 0, 2], [1, 2, 2, 3]])
    return Data(
        x=torch.zeros(5, 1, dtype=torch.long),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        edge_attr=torch.tensor([0, 1, 2, 0] * 2),
        num_nodes=5,
    )


def arrays(encoding, graph):
    return encoding.precompute(pack_data([graph], (3,)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODINGS)
def test_no_molecules_have_no_rows(name):
    found = ENCODINGS[name]().precompute(read_molecules("zinc", ["C("]).graphs)
    assert found.keys() == ENCODINGS[name].arrays.keys() and not any(map(len, found.values()))


def test_the_cache_keys_of_the_package_are_the_fields_and_the_version():
    """Other keys would prepare all datasets of all users again."""
    encodings = tuple(encoding() for encoding in ENCODINGS.values())
    assert cache_key(encodings) == f"{encodings!r}/{PRECOMPUTE_VERSION}"
    assert cache_key(()) == f"()/{PRECOMPUTE_VERSION}"


OWN = """
class Own(Centrality):
    def precompute(self, graphs):
        kinds = {"a", "b"}
        scale = lambda rows: [row for row in rows if row in {"c", "d", "e"} or FACTOR]
        return scale(graphs)
"""


def own_key(code: str, place: str = "first.py") -> str:
    names = {"Centrality": ENCODINGS["centrality"], "__name__": "own"}
    exec(compile(code, place, "exec"), names)
    return cache_key((names["Own"](),))


@pytest.mark.parametrize(("before", "after"), [('"c"', '"C"'), ("FACTOR", "OTHER"), ("or", "and"), ('"a"', '"A"')])
def test_the_cache_key_of_an_own_encoding_changes_with_its_code(before, after):
    """Also with that of a function within ``precompute``."""
    assert own_key(OWN) != own_key(OWN.replace(f" {before}", f" {after}").replace(f"{{{before}", f"{{{after}"))


def test_the_cache_key_of_an_own_encoding_is_the_same_in_another_cell():
    assert own_key("\n\n" + OWN, "second.py") == own_key(OWN)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_cache_key_of_an_own_encoding_is_the_same_in_another_process(seed):
    """There, sets of strings have another order."""
    script = "from tests.unit.encodings.test_encodings import OWN, own_key; print(own_key(OWN))"
    found = subprocess.check_output([sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed})
    assert found.decode().strip() == own_key(OWN)


@pytest.mark.parametrize(
    ("level", "found", "sentence"),
    [
        ("pair", 5, "returns 5 rows in the array 'mine', it must return one per ordered pair of atoms, 25"),
        ("atom", None, "returns the arrays other, its field arrays declares mine: make them the same"),
    ],
)
def test_wrong_arrays_of_an_own_encoding_are_named(level, found, sentence):
    class Mine:
        name = "mine"
        arrays: ClassVar = {"mine": level}

        def precompute(self, graphs):
            return {"other": np.zeros(5)} if found is None else {"mine": np.zeros(found)}

    with pytest.raises(InputError, match=f"^precompute of mine {sentence}$"):
        precompute((Mine(),), pack_data([cyclopropane_with_tail()], (3,)))


def test_degrees_by_hand():
    graph = cyclopropane_with_tail()
    graph.edge_index = torch.cat([graph.edge_index, torch.tensor([[0], [3]])], dim=1)  # one bond in one direction
    graph.edge_attr = torch.cat([graph.edge_attr, torch.tensor([0])])
    degree = arrays(ENCODINGS["centrality"](max_degree=2), graph)["degree"]
    assert degree.tolist() == [[2, 2], [2, 2], [2, 2], [2, 1], [0, 0]]  # (in, out), at most 2


def test_distances_by_hand():
    spd = arrays(ENCODINGS["spatial"](max_distance=10), cyclopropane_with_tail())["spd"].reshape(5, 5)
    apart = 11
    assert spd.tolist() == [
        [0, 1, 1, 2, apart],
        [1, 0, 1, 2, apart],
        [1, 1, 0, 1, apart],
        [2, 2, 1, 0, apart],
        [apart, apart, apart, apart, 0],
    ]


def test_long_distances_share_an_entry_and_unreachable_pairs_have_their_own():
    chain = random_graph(300, 0, extra_bonds=0)
    chain.edge_index = torch.stack([torch.arange(299), torch.arange(1, 300)])
    chain.edge_index = torch.cat([chain.edge_index, chain.edge_index.flip(0)], dim=1)
    chain.edge_attr = torch.zeros(598, dtype=torch.long)
    spd = arrays(ENCODINGS["spatial"](max_distance=254), chain)["spd"].reshape(300, 300)
    assert spd[0, [1, 253, 254, 299]].tolist() == [1, 253, 254, 254]
    assert arrays(ENCODINGS["spatial"](max_distance=7), chain)["spd"].max() == 7


@pytest.mark.parametrize("seed", range(8))
def test_paths_equal_a_search_over_all_shortest_paths(seed):
    graph = random_graph(10, seed, extra_bonds=6)
    bonds = {(i, j): int(b) + 1 for (i, j), b in zip(graph.edge_index.t().tolist(), graph.edge_attr, strict=True)}
    d = distances(10, bonds)
    packed = pack_data([graph], (3,))
    spd, path_bonds = graph_algorithms.shortest_paths(adjacency(packed), 4)
    for i in range(10):
        for j in range(10):
            assert spd[10 * i + j] == d[i][j]
            expected = (*smallest_path(i, j, d, bonds), 0, 0, 0, 0)[:4]
            assert tuple(path_bonds[10 * i + j]) == expected


@pytest.mark.slow
def test_random_walks_by_hand():
    found = arrays(ENCODINGS["rrwp"](steps=3), skeleton((0, 1), (1, 0), (1, 2), (2, 1)))
    walks = found["rrwp"].reshape(3, 3, 3)
    assert found["rrwp_return"].tolist() == walks[[0, 1, 2], [0, 1, 2]].tolist()
    assert walks[:, :, 0].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert walks[:, :, 1].tolist() == [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]]
    assert walks[:, :, 2].tolist() == [[0.5, 0, 0.5], [0, 1, 0], [0.5, 0, 0.5]]


@pytest.mark.slow
def test_resistances_by_hand():
    found = arrays(ENCODINGS["resistance"](cap=9.0), cyclopropane_with_tail())["resistance"].reshape(5, 5)
    two_thirds = 2 / 3  # one bond parallel to two in series: 1 * 2 / (1 + 2)
    expected = np.array(
        [
            [0, two_thirds, two_thirds, two_thirds + 1, 9],
            [two_thirds, 0, two_thirds, two_thirds + 1, 9],
            [two_thirds, two_thirds, 0, 1, 9],
            [two_thirds + 1, two_thirds + 1, 1, 0, 9],
            [9, 9, 9, 9, 0],
        ]
    )
    np.testing.assert_allclose(found, expected, atol=1e-3)  # float16
    capped = arrays(ENCODINGS["resistance"](cap=1.5), cyclopropane_with_tail())["resistance"].reshape(5, 5)
    np.testing.assert_allclose(capped, np.minimum(expected, 1.5), atol=1e-3)


def test_terms_of_resistances_by_hand():
    """One Gaussian with centre 0: exp(-50 * (resistance / cap)^2); a bond of 1 and a cap of 10 give exp(-0.5)."""
    ethane = skeleton((0, 1), (1, 0))
    encoding = ENCODINGS["resistance"](basis=1, cap=10.0, multiplies=True)
    batch = Batch.from_data_list([GraphormerTransform((encoding,), (3,))(ethane)])
    module = encoding.module(EncodingSizes(width=8, channels=4, heads=2, bond_types=3))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        module.pair.weight.fill_(2.0)
        module.factor.weight.fill_(3.0)
    batch = from_pyg(batch, ["resistance"])
    terms = module(batch)
    bonded = np.exp(-0.5)
    for found, expected in ((terms.pair, [2, 2 * bonded] * 4), (terms.factor, [4, 1 + 3 * bonded] * 2)):
        columns = torch.tensor(expected, dtype=torch.float32).view(-1, 2).t()  # [pair kind, channel]
        torch.testing.assert_close(found, columns[[0, 1, 1, 0]], rtol=1e-3, atol=1e-3)  # float16 resistances
    assert ENCODINGS["resistance"]().module(EncodingSizes(8, 4, 2, 3))(batch).factor is None


@pytest.mark.slow
def test_rings_by_hand():
    """A triangle 0-1-2 and a square 1-3-4-2 share the bond 1-2; atom 5 is bonded to atom 4."""
    found = arrays(ENCODINGS["rings"](max_size=5), skeleton((0, 1), (0, 2), (1, 2), (1, 3), (3, 4), (4, 2), (4, 5)))
    at_least_3_4_5 = [[1, 0, 0], [2, 1, 0], [2, 1, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0]]
    assert found["ring_counts"].tolist() == at_least_3_4_5
    assert found["shared_ring"].reshape(6, 6).tolist() == [
        [3, 3, 3, 0, 0, 0],
        [3, 3, 3, 4, 4, 0],
        [3, 3, 3, 4, 4, 0],
        [0, 4, 4, 4, 4, 0],
        [0, 4, 4, 4, 4, 0],
        [0, 0, 0, 0, 0, 0],
    ]


def test_no_ring_of_a_symmetric_cage_is_left_out():
    """Any five faces of a cube are a smallest set; the choice must not affect the result."""
    cube = [(i, i ^ bit) for i in range(8) for bit in (1, 2, 4) if i < i ^ bit]
    found = arrays(ENCODINGS["rings"](max_size=4), skeleton(*cube))
    assert found["ring_counts"].tolist() == [[3, 3]] * 8


@pytest.mark.slow
def test_terms_of_rings_by_hand():
    encoding = ENCODINGS["rings"](max_size=5)
    triangle = GraphormerTransform((encoding,), (3,))(skeleton((0, 1), (1, 2), (2, 0), (2, 3)))
    module = encoding.module(EncodingSizes(1, 1, 1, 3))
    with torch.no_grad():
        module.atom.weight.copy_(torch.tensor([[1.0, 10.0, 100.0]]))
        module.pair.copy_(torch.arange(6.0).unsqueeze(1))
        module.atom.bias.zero_()
    terms = module(from_pyg(Batch.from_data_list([triangle]), encoding.arrays))
    assert terms.atom.flatten().tolist() == [1, 1, 1, 0]
    assert terms.pair.view(4, 4).tolist() == [[3, 3, 3, 0], [3, 3, 3, 0], [3, 3, 3, 0], [0, 0, 0, 0]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "array"),
    [
        ("edge", {"max_hops": 20}, "path_bonds"),
        ("edge", {"max_hops": 1}, "path_bonds"),  # would be repeated for all hops of this model
        ("cycles", {"max_size": 3}, "cycle_counts"),
    ],
)
def test_arrays_of_another_config_are_refused(name, options, array):
    encoding, other = ENCODINGS[name](), ENCODINGS[name](**options)
    graph = GraphormerTransform((other,), (3,))(skeleton((0, 1), (1, 2)))
    batch = from_pyg(Batch.from_data_list([graph]), encoding.arrays)
    with pytest.raises(InputError, match=rf"the number of columns of {array} is \d+, this model needs \d+: apply"):
        encoding.module(EncodingSizes(4, 2, 2, 3))(batch)


@pytest.mark.parametrize("name", ENCODINGS)
def test_packed_molecules_equal_single_ones(name, graphs):
    encoding = ENCODINGS[name]()
    together = precompute((encoding,), pack_data(graphs, (3,)))
    alone = [precompute((encoding,), pack_data([graph], (3,))) for graph in graphs]
    assert set(together) == set(encoding.arrays)
    for array in together:
        np.testing.assert_array_equal(together[array], np.concatenate([one[array] for one in alone]))


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


def test_more_cycles_through_an_atom_than_are_counted():
    """Two atoms with 24 others between them share 276 squares; each of the others is in 23."""
    graph = skeleton(*((end, middle) for middle in range(2, 26) for end in (0, 1)))
    counts = Cycles(max_size=5).precompute(pack_data([graph], (3,)))["cycle_counts"]
    assert counts[0].tolist() == counts[1].tolist() == [255, 255, 0]
    assert counts[2:].tolist() == [[23, 23, 0]] * 24


def test_a_graph_gets_the_arrays_of_all_encodings_and_keeps_its_own():
    before = random_graph(3, 0)
    after = GraphormerTransform((Centrality(), Spatial()), (3,))(before.clone())
    assert {"degree", "spd"} <= set(after.keys()) and not {"degree", "spd"} & set(before.keys())
    assert all((after[name] == before[name]).all() for name in ("x", "edge_index", "edge_attr"))


def test_repr_shows_every_parameter():
    """PyG uses it to recognize a stale cache."""
    words = [
        repr(GraphormerTransform((Spatial(max_distance=d),), sizes)) for d, sizes in ((3, (3,)), (4, (3,)), (3, (4,)))
    ]
    assert len(set(words)) == 3 and "max_distance=3" in words[0] and "(4,)" in words[2]


def test_loops_and_parallel_bonds_are_no_rings_and_no_cycles():
    found = arrays(ENCODINGS["rings"](), skeleton((0, 0), (0, 1), (1, 0), (0, 1)))
    assert not found["ring_counts"].any() and not found["shared_ring"].any()
    graph = skeleton((0, 0), (0, 1), (1, 0), (0, 1), (1, 2), (2, 0))
    assert arrays(Cycles(max_size=4), graph)["cycle_counts"].tolist() == [[1, 0]] * 3
