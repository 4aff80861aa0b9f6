import math

import torch

from graphormer_sepnorm.layers.gelu import gelu

ROWS = torch.tensor([[-2.0, -0.5, 0.0], [0.5, 1.0, 3.0]], dtype=torch.float64, requires_grad=True)


def test_gelu_is_x_times_the_normal_distribution():
    expected = [[x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in row] for row in ROWS.tolist()]
    torch.testing.assert_close(gelu(ROWS), torch.tensor(expected, dtype=torch.float64))


def test_the_gradient_of_gelu():
    assert torch.autograd.gradcheck(gelu, ROWS)
