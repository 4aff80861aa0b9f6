import pytest
import torch

from graphormer_sepnorm.layers.messages import BondMessages, DegreeScaler, GatedMessages
from graphormer_sepnorm.layers.readouts import READOUTS, sum_atoms


def test_messages_by_hand():
    """A path of three atoms: the middle one receives from both ends, each end from the middle, after relu."""
    messages = BondMessages(width=2, num_bond_types=2)
    with torch.no_grad():
        messages.bond.weight.copy_(torch.tensor([[1.0, -10.0], [0.5, 0.5]]))
        messages.out.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
        messages.out.bias.copy_(torch.tensor([0.0, 1.0]))
    atoms = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    bond = torch.tensor([1, 1, 2, 2])
    expected = torch.tensor([[4.0, 1.0], [2.0 + 5.5, 2 * 6.5 + 1], [3.5, 2 * 4.5 + 1]])
    torch.testing.assert_close(messages(atoms, edge_index, bond), expected)


def test_gates_by_hand():
    """One bond; sigmoid(log 3) is 3/4, so a gate of twice that is 1.5, and sigmoid(-log 3) gives 0.5."""
    messages = GatedMessages(width=1, num_bond_types=2)
    log3 = 1.0986122886681098
    with torch.no_grad():
        messages.bond.weight.zero_()
        messages.out.weight.fill_(1)
        messages.out.bias.zero_()
        messages.gate.weight.copy_(torch.tensor([[log3], [-log3]]))  # times the target, times the source
        messages.gate.bias.zero_()
    atoms, edge_index = torch.tensor([[2.0], [3.0]]), torch.tensor([[0, 1], [1, 0]])
    found = messages(atoms, edge_index, torch.tensor([1, 1]))
    torch.testing.assert_close(found, torch.tensor([[0.5 * 3], [1.5 * 2]]))
    with torch.no_grad():
        messages.gate_bond.weight.copy_(torch.tensor([[log3], [-log3]]))
    found = messages(atoms, edge_index, torch.tensor([2, 1]))
    torch.testing.assert_close(found, torch.tensor([[1.0 * 3], [1.0 * 2]]))


def test_degrees_scale_by_hand_and_at_first_change_nothing():
    scaler = DegreeScaler(width=2)
    atoms = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    in_degree = torch.tensor([0, 1])
    assert torch.equal(scaler(atoms, in_degree), atoms)
    with torch.no_grad():
        scaler.slope.copy_(torch.tensor([1.0, 0.0]))
        scaler.scale.copy_(torch.tensor([1.0, 2.0]))
    expected = torch.tensor([[1.0, 4.0], [3.0 * (1 + 0.6931471805599453), 8.0]])
    torch.testing.assert_close(scaler(atoms, in_degree), expected)


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
