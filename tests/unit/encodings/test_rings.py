import pytest
from pydantic import ValidationError

from graphormer_sepnorm.encodings.rings import Rings, smallest_rings
from tests.unit.encodings.chains import chain


@pytest.mark.parametrize(
    ("num_atoms", "ring", "sizes"), [(3, True, [3]), (6, True, [6]), (6, False, []), (1, False, [])]
)
def test_rings_by_hand(num_atoms, ring, sizes):
    found = smallest_rings(num_atoms, chain(num_atoms, ring).edge_index.numpy())
    assert [len(atoms) for atoms in found] == sizes
    assert all(sorted(atoms) == list(range(num_atoms)) for atoms in found)


@pytest.mark.parametrize("max_size", [2, 255])
def test_allowed_sizes_of_rings(max_size):
    with pytest.raises(ValidationError):
        Rings(max_size=max_size)
