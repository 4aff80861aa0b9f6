import numpy as np

from graphormer_sepnorm.encodings.base import adjacency
from graphormer_sepnorm.encodings.graph_algorithms import UNREACHABLE, shortest_paths
from graphormer_sepnorm.graphs import packed_graphs

# Two molecules: a square 0-1-2-3 with bonds 2, 1, 1, 1, and two atoms without a bond.
ENDS = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
EDGE_INDEX = np.concatenate([ENDS, ENDS[::-1]], axis=1)
BOND = np.array([2, 1, 1, 1] * 2, np.uint8)
GRAPHS = packed_graphs(np.zeros((6, 1), np.int64), np.array([0, 4, 6]), EDGE_INDEX, np.array([0, 8, 8]), BOND)


def test_of_two_shortest_paths_the_one_of_the_smaller_bonds_is_taken():
    spd, paths = shortest_paths(*adjacency(GRAPHS), 3)
    square, apart = spd[:16].reshape(4, 4), spd[16:].reshape(2, 2)
    assert square[0].tolist() == [0, 1, 2, 1]
    assert apart.tolist() == [[0, UNREACHABLE], [UNREACHABLE, 0]]
    assert paths[:16].reshape(4, 4, 3)[0].tolist() == [[0, 0, 0], [2, 0, 0], [1, 1, 0], [1, 0, 0]]
    assert paths[:16].reshape(4, 4, 3)[1, 3].tolist() == [1, 1, 0]
    assert not paths[16:].any()


def test_paths_can_be_left_out():
    spd, paths = shortest_paths(*adjacency(GRAPHS), 0)
    assert spd[:4].tolist() == [0, 1, 2, 1] and paths.shape == (20, 0)
