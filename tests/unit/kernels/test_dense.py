import math

import torch

from graphormer_sepnorm.kernels import dense
from graphormer_sepnorm.kernels.dense import DenseAttention, GroupedAttention, lay_out_densely

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


def test_a_large_molecule_does_not_pad_the_others_to_its_size(monkeypatch):
    """63 molecules of one atom and one of 150: scores of one group each, not of 64 padded molecules."""
    torch.manual_seed(0)
    sizes = torch.tensor([1] * 30 + [150] + [1] * 33)
    ptr, heads, width = torch.cat([torch.zeros(1).long(), sizes.cumsum(0)]), 2, 6
    rows, kind = len(sizes) + int(sizes.sum()), torch.float64
    leaves = [torch.randn(int((sizes**2).sum()), heads, dtype=kind), torch.randn(heads, dtype=kind)]
    leaves += [torch.rand_like(leaves[0]), torch.randn(rows, 3 * width, dtype=kind)]
    leaves += [torch.randn(len(sizes), width, dtype=kind), torch.randn(rows, 2 * width, dtype=kind)]
    pairs, cls, factor, qkv, q, kv = (leaf.requires_grad_() for leaf in leaves)
    results = []
    for most in (2**26, 2**17):
        monkeypatch.setattr(dense, "MOST_SCORES", most)
        attend = dense.make_attention(ptr, pairs, cls, factor)
        out = torch.cat([attend(qkv, 0.0), attend.of_cls(q, kv, 0.0)])
        results.append([out, *torch.autograd.grad((out**3).sum(), (pairs, cls, factor, qkv, q, kv))])
    assert isinstance(attend, GroupedAttention)
    assert sum(group.bias.numel() for group in attend.attend) == heads * (63 * 2**2 + 151**2)
    for found, expected in zip(*results[::-1], strict=True):
        torch.testing.assert_close(found, expected)
