import pytest
from pydantic import ValidationError

from graphormer_sepnorm.encodings.edge_path import EdgePath
from tests.unit.encodings.chains import array, chain


def test_bonds_along_a_chain_by_hand():
    """Bond types start at 1; no bond is 0."""
    found = array(EdgePath(max_hops=3), chain(4), "path_bonds")
    assert found[0].tolist() == [[0, 0, 0], [1, 0, 0], [1, 2, 0], [1, 2, 3]]
    assert found[3].tolist() == [[3, 2, 1], [3, 2, 0], [3, 0, 0], [0, 0, 0]]


def test_steps_beyond_the_last_are_left_out():
    assert array(EdgePath(max_hops=2), chain(4), "path_bonds")[0, 3].tolist() == [1, 2]


@pytest.mark.parametrize("max_hops", [0, 65])
def test_hops_are_limited(max_hops):
    with pytest.raises(ValidationError):
        EdgePath(max_hops=max_hops)
