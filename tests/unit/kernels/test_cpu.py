import torch

from graphormer_sepnorm.kernels import cpu, dense


def test_attention_without_scores_is_the_mean_of_the_values_by_hand():
    """One head of width 1 on two atoms and their CLS; queries are zero, so all weights are equal."""
    attend = cpu.make_attention(torch.tensor([0, 2]), torch.zeros(4, 1), torch.zeros(1))
    qkv = torch.tensor([[0.0, 5.0, 1.0], [0.0, 6.0, 2.0], [0.0, 7.0, 6.0]])
    torch.testing.assert_close(attend(qkv, 0.0), torch.tensor([[3.0], [3.0], [3.0]]))
    torch.testing.assert_close(attend.of_cls(torch.zeros(1, 1), qkv[:, 1:], 0.0), torch.tensor([[3.0]]))


def test_factors_apply_to_pairs_of_atoms_and_not_to_the_cls():
    attend = cpu.make_attention(torch.tensor([0, 2]), torch.zeros(4, 1), torch.zeros(1), torch.zeros(4, 1))
    qkv = torch.tensor([[0.0, 0.0, 3.0], [0.0, 0.0, 6.0], [0.0, 0.0, 9.0]])
    torch.testing.assert_close(attend(qkv, 0.0), torch.tensor([[6.0], [1.0], [1.0]]))


def test_attention_agrees_with_plain_pytorch():
    torch.manual_seed(0)
    ptr, heads, width = torch.tensor([0, 3, 4, 21]), 2, 10
    pairs = int((ptr.diff() ** 2).sum())
    arguments = (ptr, torch.randn(pairs, heads), torch.randn(heads), torch.rand(pairs, heads))
    qkv = torch.randn(3 + 21, 3 * heads * width)
    q, kv = qkv.split([heads * width, 2 * heads * width], dim=1)
    compiled, plain = cpu.make_attention(*arguments), dense.PaddedAttention(*arguments)
    torch.testing.assert_close(compiled(qkv, 0.0), plain(qkv, 0.0), rtol=1e-5, atol=1e-5)
    for attend in (compiled, plain):
        torch.testing.assert_close(attend.of_cls(q[:3], kv, 0.0), plain(qkv, 0.0)[:3], rtol=1e-5, atol=1e-5)
