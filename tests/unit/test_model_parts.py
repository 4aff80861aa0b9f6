"""Parts of the model by hand."""

import math

import torch
from scipy.stats import norm

from graphormer_sepnorm.model import AtomValues, gelu

ROWS = torch.tensor([[-2.0, -0.5, 0.0], [0.5, 1.0, 3.0]], dtype=torch.float64, requires_grad=True)


def test_gelu_is_x_times_the_normal_distribution():
    expected = [[x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in row] for row in ROWS.tolist()]
    torch.testing.assert_close(gelu(ROWS), torch.tensor(expected, dtype=torch.float64))


def test_the_gradient_of_gelu():
    assert torch.autograd.gradcheck(gelu, ROWS)


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
    torch.testing.assert_close(values(atoms, torch.tensor([0, 3, 4])), torch.tensor(expected, dtype=torch.float32))
