import math

import torch

from graphormer_sepnorm.kernels.dense import DenseAttention, lay_out_densely

PTR = torch.tensor([0, 1, 3])  # one atom, two atoms
NO_PAIRS, NO_CLS = torch.zeros(5, 1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)


def qkv(values: list[float]) -> torch.Tensor:
    """Queries and keys of zero, and these values of the CLS rows and the atoms, in one head of width 1."""
    v = torch.tensor(values, dtype=torch.float64).unsqueeze(1)
    return torch.cat([torch.zeros_like(v), torch.zeros_like(v), v], dim=1)


def test_without_scores_each_molecule_averages_its_own_tokens():
    out = DenseAttention(PTR, NO_PAIRS, NO_CLS)(qkv([1, 10, 3, 20, 60]), 0.0)  # CLS, CLS, atom, atom, atom
    torch.testing.assert_close(out, torch.tensor([[2, 30, 2, 30, 30]], dtype=torch.float64).t())


def test_a_bias_weighs_pairs_and_a_factor_multiplies_weights():
    bias = NO_PAIRS.clone()
    bias[1] = math.log(4)  # of the second molecule's first atom with itself
    out = DenseAttention(PTR, bias, NO_CLS)(qkv([1, 10, 3, 20, 60]), 0.0)
    torch.testing.assert_close(out[3, 0].item(), (10 + 4 * 20 + 60) / 6)
    factor = torch.ones_like(bias)
    factor[1] = 0.5
    out = DenseAttention(PTR, bias, NO_CLS, factor)(qkv([1, 10, 3, 20, 60]), 0.0)
    torch.testing.assert_close(out[3, 0].item(), (10 + 0.5 * 4 * 20 + 60) / 6)


def test_values_of_pairs_are_laid_out_behind_the_cls():
    real = torch.tensor([[True, False], [True, True]])
    found = lay_out_densely(real, torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]]), torch.tensor([9.0]))
    assert found[:, 0].tolist() == [[[9, 9, 9], [9, 1, 0], [9, 0, 0]], [[9, 9, 9], [9, 2, 3], [9, 4, 5]]]
