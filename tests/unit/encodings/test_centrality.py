import pytest
from pydantic import ValidationError

from graphormer_sepnorm.encodings.centrality import Centrality
from tests.unit.encodings.chains import array, chain


def test_degrees_of_a_chain_and_a_ring_by_hand():
    assert array(Centrality(), chain(3), "degree").tolist() == [[1, 1], [2, 2], [1, 1]]
    assert array(Centrality(), chain(5, ring=True), "degree").tolist() == [[2, 2]] * 5
    assert array(Centrality(max_degree=1), chain(3), "degree").tolist() == [[1, 1]] * 3
    assert array(Centrality(), chain(1), "degree").tolist() == [[0, 0]]


@pytest.mark.parametrize("max_degree", [0, 255, 1.5])
def test_degrees_fit_a_byte(max_degree):
    with pytest.raises(ValidationError):
        Centrality(max_degree=max_degree)
