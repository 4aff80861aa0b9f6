import pytest
import torch
from torch import Tensor

from graphormer_sepnorm.kernels.dense import PaddedAttention


def leaves(sizes: list[int], heads: int = 2, width: int = 6) -> tuple[Tensor, list[Tensor]]:
    """The offsets of molecules of these sizes, and random inputs of their attention with gradients."""
    torch.manual_seed(0)
    ptr, kind = torch.tensor([0, *sizes]).cumsum(0), torch.float64
    rows, pairs = len(sizes) + sum(sizes), sum(size**2 for size in sizes)
    made = [torch.randn(pairs, heads, dtype=kind), torch.randn(heads, dtype=kind), torch.rand(pairs, heads, dtype=kind)]
    made += [torch.randn(count, n * width, dtype=kind) for count, n in ((rows, 3), (len(sizes), 1), (rows, 2))]
    return ptr, [leaf.requires_grad_() for leaf in made]


def test_a_large_molecule_does_not_pad_the_others_to_its_size():
    """63 molecules of one atom and one of 150 give the scores of two views, not of 64 padded molecules."""
    ptr, (pairs, cls, *_) = leaves([1] * 30 + [150] + [1] * 33)
    attend = PaddedAttention(ptr, pairs, cls)
    assert attend.padding.views == ((63, 8), (1, 152))
    assert sum(bias.numel() for bias in attend.biases) == 2 * (63 * 8**2 + 152**2)


def attended(queries: Tensor, keys: Tensor, values: Tensor, scores: Tensor, factors: Tensor) -> Tensor:
    """Attention of queries [n, H * d] over one molecule's L tokens, by definition; scores and factors [n, L, H]."""
    q, k, v = (part.unflatten(1, (scores.shape[2], -1)) for part in (queries, keys, values))
    weights = (torch.einsum("ihd,jhd->ijh", q, k) / q.shape[2] ** 0.5 + scores).softmax(dim=1) * factors
    return torch.einsum("ijh,jhd->ihd", weights, v).flatten(1)


def around(pairs: Tensor, cls: Tensor) -> Tensor:
    """Values [n * n, H] of a molecule's atom pairs, surrounded by those of the CLS, [n + 1, n + 1, H]."""
    size = round(len(pairs) ** 0.5)
    whole = cls.expand(size + 1, size + 1, -1).clone()
    whole[1:, 1:] = pairs.view(size, size, -1)
    return whole


@pytest.mark.parametrize("with_factor", [False, True])
def test_molecules_of_several_views_attend_as_each_does_by_itself(with_factor):
    """Values and all gradients; sizes decrease and increase, and one has 16 tokens, the most for the smallest view."""
    sizes = [3, 40, 15, 1, 100, 16, 33]
    ptr, inputs = leaves(sizes)
    pairs, cls, factor, qkv, q, kv = inputs
    attend = PaddedAttention(ptr, pairs, cls, factor if with_factor else None)
    assert attend.padding.views == ((3, 16), (1, 24), (2, 48), (1, 104))
    found = torch.cat([attend(qkv, 0.0), attend.of_cls(q, kv, 0.0)])
    owner = torch.cat([torch.arange(len(sizes)), torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))])
    first_pair = torch.tensor([0, *(size**2 for size in sizes)]).cumsum(0)
    expected = torch.zeros_like(found)
    for molecule in range(len(sizes)):
        rows, own = (owner == molecule).nonzero().flatten(), slice(*first_pair[molecule : molecule + 2])
        scores = around(pairs[own], cls)
        factors = around(factor[own], torch.ones_like(cls)) if with_factor else torch.ones_like(scores)
        expected[rows] = attended(*qkv[rows].chunk(3, dim=1), scores, factors)
        k, v = kv[rows].chunk(2, dim=1)
        expected[len(owner) + molecule] = attended(q[molecule : molecule + 1], k, v, scores[:1], factors[:1])[0]
    torch.testing.assert_close(found, expected)
    learning = inputs if with_factor else [leaf for leaf in inputs if leaf is not factor]
    gradients = [torch.autograd.grad((out**3).sum(), learning) for out in (found, expected)]
    for ours, of_hand in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, of_hand)
