import pytest
from pydantic import ValidationError

from graphormer_sepnorm.encodings.spatial import Spatial
from tests.unit.encodings.chains import array, chain


def test_distances_in_a_ring_go_the_shorter_way():
    assert array(Spatial(), chain(5, ring=True), "spd")[0].tolist() == [0, 1, 2, 2, 1]
    assert array(Spatial(), chain(4), "spd")[0].tolist() == [0, 1, 2, 3]
    assert array(Spatial(max_distance=2), chain(4), "spd")[0].tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize("max_distance", [0, 255])
def test_distances_fit_a_byte(max_distance):
    with pytest.raises(ValidationError):
        Spatial(max_distance=max_distance)
