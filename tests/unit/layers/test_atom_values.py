import torch
from scipy.stats import norm

from graphormer_sepnorm.layers.atom_values import AtomValues

PTR = torch.tensor([0, 3, 4])  # three atoms, one atom


def test_the_first_values_are_averaged_and_the_second_summed_over_twenty():
    values = AtomValues(width=1, num_tasks=2)
    with torch.no_grad():
        values.hidden.weight.fill_(2.0)
        values.hidden.bias.fill_(1.0)
        values.out.weight.copy_(torch.tensor([[1.0], [10.0], [100.0], [1000.0]]))
        values.out.bias.copy_(torch.tensor([0.0, 1.0, 0.0, 0.0]))
    atoms = torch.tensor([[-1.0], [0.0], [1.0], [0.5]])
    a, b, c, d = (x * norm.cdf(x) for x in (-1.0, 1.0, 3.0, 2.0))  # GELU of 2 x + 1
    sums, means = a + b + c, (a + b + c) / 3
    expected = [[means + 5 * sums, 10 * means + 1 + 50 * sums], [d + 5 * d, 10 * d + 1 + 50 * d]]
    torch.testing.assert_close(values(atoms, PTR), torch.tensor(expected, dtype=torch.float32))
