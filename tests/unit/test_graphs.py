import numpy as np
import pytest
import torch

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import bond_types, check_bonds, check_features, molecule_of, pointers, ranges

PTR = torch.tensor([0, 2, 2, 5])  # three molecules, the second without rows


def test_pointers_and_ranges_by_hand():
    assert pointers(np.array([2, 0, 3])).tolist() == [0, 2, 2, 5]
    assert pointers(np.array([], np.int64)).tolist() == [0]
    assert ranges(PTR.numpy(), np.array([2, 0, 1, 2])).tolist() == [2, 3, 4, 0, 1, 2, 3, 4]
    assert ranges(PTR.numpy(), np.array([1])).tolist() == []


def test_pointers_of_many_small_counts_do_not_overflow():
    assert pointers(np.full(3, 200, np.uint8)).tolist() == [0, 200, 400, 600]


def test_each_combination_of_bond_features_has_a_type_from_one_on():
    edge_attr = np.array([[0, 0], [0, 1], [1, 0], [2, 1]])
    assert bond_types(edge_attr, (3, 2)).tolist() == [1, 2, 3, 6]


@pytest.mark.parametrize(("row", "molecule"), [(0, 0), (1, 0), (2, 2), (4, 2)])
def test_the_molecule_of_a_row(row, molecule):
    assert molecule_of(row, PTR) == molecule


def test_features_in_their_vocabularies_pass_and_others_are_named():
    values = torch.tensor([[0, 2], [1, 0], [0, 0], [1, 1], [0, 2]])
    check_features("x", values, (2, 3), PTR)
    with pytest.raises(InputError, match="x of molecule 2 has 2 in column 1, where values are from 0 to 1"):
        check_features("x", values[[1, 1, 1, 1, 0]], (2, 2), PTR)
    with pytest.raises(InputError, match=r"x must hold integers, it holds torch\.float32"):
        check_features("x", values.float(), (2, 3), PTR)
    with pytest.raises(InputError, match="x has 2 columns, the model reads 1"):
        check_features("x", values, (2,), PTR)


def test_bonds_end_at_atoms_of_their_molecule():
    edge_ptr, num_atoms = torch.tensor([0, 1, 3]), torch.tensor([2, 3])
    check_bonds(torch.tensor([[0, 2, 1], [1, 0, 2]]), edge_ptr, num_atoms)
    with pytest.raises(InputError, match="edge_index of molecule 0 has atom 2, its atoms are numbered from 0 to 1"):
        check_bonds(torch.tensor([[0, 2, 1], [2, 0, 2]]), edge_ptr, num_atoms)
