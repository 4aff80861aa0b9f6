import torch

from graphormer_sepnorm.kernels.cpu_rows import embedding_sum


def test_sums_of_rows_by_hand_with_their_gradient():
    table = torch.tensor([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]], requires_grad=True)
    total = embedding_sum(torch.tensor([[0, 1], [2, 2]]), table)
    assert total.tolist() == [[11, 22], [200, 400]]
    total.backward(torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
    assert table.grad.tolist() == [[1, 0], [1, 0], [0, 6]]
