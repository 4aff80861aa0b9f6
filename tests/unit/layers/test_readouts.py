import pytest
import torch

from graphormer_sepnorm.layers.readouts import READOUTS, sum_atoms

CLS = torch.tensor([[10.0, 20.0], [30.0, 40.0]])
ATOMS = torch.tensor([[1.0, 2.0], [3.0, 4.0], [6.0, 8.0], [5.0, 7.0]])
PTR = torch.tensor([0, 3, 4])  # three atoms, one atom
EXPECTED = {
    "cls": [[10, 20], [30, 40]],
    "sum": [[10, 14], [5, 7]],
    "mean": [[10 / 3, 14 / 3], [5, 7]],
    "cls+sum": [[10, 20, 10, 14], [30, 40, 5, 7]],
    "cls+mean": [[10, 20, 10 / 3, 14 / 3], [30, 40, 5, 7]],
}


@pytest.mark.parametrize("name", READOUTS)
def test_readouts_by_hand(name):
    found = READOUTS[name].read(CLS, ATOMS, PTR)
    torch.testing.assert_close(found, torch.tensor(EXPECTED[name], dtype=torch.float32))


def test_many_atoms_are_summed_in_float32():
    atoms, ptr = torch.ones(400, 1, dtype=torch.bfloat16), torch.tensor([0, 400])
    assert sum_atoms(atoms, ptr).item() == 400 and sum_atoms(atoms, ptr).dtype == torch.bfloat16
