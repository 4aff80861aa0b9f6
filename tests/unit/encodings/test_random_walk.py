import torch

from graphormer_sepnorm.encodings.random_walk import RandomWalk
from tests.unit.encodings.chains import array, chain


def test_walks_on_a_chain_by_hand():
    found = array(RandomWalk(steps=3), chain(3), "rrwp").float()
    assert found[0].tolist() == [[1, 0, 0.5], [0, 1, 0], [0, 0, 0.5]]
    assert found[1].tolist() == [[0, 0.5, 0], [1, 0, 1], [0, 0.5, 0]]


def test_probabilities_of_a_walk_sum_to_one():
    total = array(RandomWalk(steps=5), chain(6, ring=True), "rrwp").float().sum(dim=1)
    torch.testing.assert_close(total, torch.ones(6, 5), rtol=0, atol=1e-3)
