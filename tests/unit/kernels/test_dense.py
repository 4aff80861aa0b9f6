import pytest
import torch

from graphormer_sepnorm.graphs import Padding
from graphormer_sepnorm.kernels.dense import PaddedAttention
from tests.unit.kernels.test_cpu_attention import Case, reference


def test_a_large_molecule_does_not_pad_the_others_to_its_size():
    """63 molecules of one atom and one of 150 give the scores of two views, not of 64 padded molecules."""
    case = Case([1] * 30 + [150] + [1] * 33, heads=2, d=3)
    attend = PaddedAttention(Padding.of(case.ptr), case.pair_bias, case.cls_bias)
    assert attend.padding.views == ((63, 8), (1, 152))
    assert sum(bias.numel() for bias in attend.biases) == 2 * (63 * 8**2 + 152**2)


@pytest.mark.parametrize("with_factor", [False, True])
@pytest.mark.parametrize("is_traced", [False, True])
def test_molecules_of_several_views_attend_as_each_does_by_itself(with_factor, is_traced):
    """Values and all gradients; sizes decrease and increase, and one has 16 tokens, the most for the smallest view."""
    case = Case([3, 40, 15, 1, 100, 16, 33], heads=2, d=3, with_factor=with_factor)
    qkv, *of_scores = leaves = [leaf.detach().double().requires_grad_() for leaf in case.leaves]
    padding = Padding.of_any(case.ptr, len(case.pair_bias)) if is_traced else Padding.of(case.ptr)
    attend = PaddedAttention(padding, *of_scores)
    assert padding.views == (((7, 104),) if is_traced else ((3, 16), (1, 24), (2, 48), (1, 104)))
    (expected,), batch, width = reference(case, leaves), len(case.sizes), qkv.shape[1] // 3
    of_cls = attend.of_cls(qkv[:batch, :width], qkv[:, width:], 0.0)
    for found, wanted in ((attend(qkv, 0.0), expected), (of_cls, expected[:batch])):
        torch.testing.assert_close(found, wanted)
        gradients = [torch.autograd.grad((out**3).sum(), leaves, retain_graph=True) for out in (found, wanted)]
        for ours, by_hand in zip(*gradients, strict=True):
            torch.testing.assert_close(ours, by_hand)
