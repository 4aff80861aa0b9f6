import pytest
import torch
from torch.nn.functional import gelu

from graphormer_sepnorm.kernels.cpu_rows import bias_gelu, embedding_sum


def test_sums_of_rows_by_hand_with_their_gradient():
    table = torch.tensor([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]], requires_grad=True)
    total = embedding_sum(torch.tensor([[0, 1], [2, 2]]), table)
    assert total.tolist() == [[11, 22], [200, 400]]
    total.backward(torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
    assert table.grad.tolist() == [[1, 0], [1, 0], [0, 6]]


@pytest.mark.parametrize("width", [1, 3, 8, 16, 17])
def test_gelu_of_a_sum_and_its_gradients(width):
    torch.manual_seed(0)
    x, bias = torch.randn(5, width, requires_grad=True), torch.randn(width, requires_grad=True)
    found = bias_gelu(x, bias)
    torch.testing.assert_close(found, gelu(x + bias), rtol=1e-5, atol=1e-6)
    expected = torch.autograd.grad(gelu(x + bias).square().sum(), (x, bias))
    actual = torch.autograd.grad(found.square().sum(), (x, bias))
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
