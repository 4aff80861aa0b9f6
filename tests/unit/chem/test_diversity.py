import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.diversity import pick_diverse

MOLS = [Chem.MolFromSmiles(text) for text in ["CCO", "OCC", "CCCO", "c1ccccc1", "CCCCO", "c1ccccc1O"]]


@pytest.mark.parametrize(
    ("count", "distance", "picked"),
    [
        (4, 0, [0, 1, 2, 3]),
        (4, 0.3, [0, 2, 3, 4]),  # OCC is CCO
        (2, 0.3, [0, 2]),
        (4, 0.9, [0, 3, 1, 2]),  # two that differ so much, then the first of the others
        (9, 0.3, [0, 2, 3, 4, 5, 1]),
    ],
)
def test_the_preferred_ones_that_differ_come_first(count, distance, picked):
    assert pick_diverse(MOLS, count, distance) == picked


def test_of_no_molecules_none_is_picked():
    assert pick_diverse([], 3, 0.5) == []
