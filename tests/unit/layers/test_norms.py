import re
from functools import partial

import pytest
import torch
from torch import nn

from graphormer_sepnorm import SepNorm, ShareNorm
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers.norms import NORMS


def test_sepnorm_by_hand():
    norm = SepNorm(2)
    x = torch.tensor([[[0.0, 4.0], [1.0, 3.0]], [[2.0, 8.0], [10.0, 10.0]]])
    # CLS by column over the batch: (0, 2) and (4, 8) become (-1, 1). Atoms by row: (1, 3) becomes (-1, 1), (10, 10) 0.
    expected = torch.tensor([[[-1.0, -1.0], [-1.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]])
    torch.testing.assert_close(norm(x), expected, atol=1e-4, rtol=0)


KINDS = {
    "sepnorm": [nn.BatchNorm1d, nn.LayerNorm],
    "sepnorm-layernorm": [nn.LayerNorm, nn.LayerNorm],
    "sepnorm-batchnorm": [nn.BatchNorm1d, nn.BatchNorm1d],
    "sepnorm-layernorm-batchnorm": [nn.LayerNorm, nn.BatchNorm1d],
    "sharenorm": [nn.LayerNorm],
    "sharenorm-batchnorm": [nn.BatchNorm1d],
}


def test_names_give_the_norm_of_the_cls_and_of_the_other_tokens():
    assert {name: [type(norm) for norm in make(8).children()] for name, make in NORMS.items()} == KINDS


class CenteredRows(nn.Module):
    """Batch statistics in an unknown class: subtracts the mean over the rows."""

    def __init__(self, hidden_size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean(dim=0)) * self.weight


NORMS_AND_A_NEW_ONE = {**NORMS, "centered": partial(ShareNorm, norm=CenteredRows)}


@pytest.mark.parametrize("name", NORMS_AND_A_NEW_ONE)
def test_cls_sees_atoms_tells_whether_the_cls_depends_on_them(name):
    """Whether other atoms change the rows of the CLS in training."""
    torch.manual_seed(0)
    norm = NORMS_AND_A_NEW_ONE[name](4)
    cls, atoms = torch.randn(3, 4), torch.randn(5, 4)
    first, second = (norm.packed(torch.cat([cls, rows]), 3)[:3] for rows in (atoms, 2 * atoms))
    assert norm.cls_sees_atoms is not first.equal(second)


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("training", [True, False])
def test_packed_rows_equal_the_padded_form(name, training):
    torch.manual_seed(0)
    sizes, width = [3, 1, 5, 2], 6
    norm = NORMS[name](width)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    norm.train(training)
    padded = torch.randn(len(sizes), 6, width)
    mask = torch.arange(6).unsqueeze(0) <= torch.tensor(sizes).unsqueeze(1)
    tokens = mask.clone()
    tokens[:, 0] = False
    packed = norm.packed(torch.cat([padded[:, 0], padded[tokens]]), len(sizes))
    other = NORMS[name](width)
    other.load_state_dict(norm.state_dict())
    other.train(training)
    result = other(padded, mask)
    torch.testing.assert_close(packed[: len(sizes)], result[:, 0])
    torch.testing.assert_close(packed[len(sizes) :], result[tokens])


@pytest.mark.parametrize("name", NORMS)
def test_the_norm_of_atoms_is_the_token_norm(name):
    torch.manual_seed(0)
    norm = NORMS[name](4).eval()
    for tensor in (*norm.parameters(), *norm.buffers()):
        if tensor.is_floating_point():
            nn.init.uniform_(tensor, 0.5, 2.0)
    rows = torch.randn(9, 4)
    torch.testing.assert_close(norm.of_atoms(rows[2:]), norm.packed(rows, 2)[2:])


@pytest.mark.parametrize("name", NORMS)
def test_padding_is_never_seen(name):
    torch.manual_seed(0)
    x = torch.randn(3, 5, 4)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], dtype=torch.bool)
    poisoned = x.masked_fill(~mask.unsqueeze(-1), 1e6)
    first, second = NORMS[name](4), NORMS[name](4)
    torch.testing.assert_close(first(x, mask)[mask], second(poisoned, mask)[mask])
    for key, value in first.state_dict().items():
        torch.testing.assert_close(value, second.state_dict()[key])


@pytest.mark.parametrize("norm", [SepNorm(8), ShareNorm(8)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_mask_of_numbers_is_refused(norm, dtype):
    """An integer one would choose rows by number."""
    with pytest.raises(InputError, match=f"mask must be boolean, True at real tokens, got {dtype}"):
        norm(torch.randn(4, 3, 8), torch.ones(4, 3, dtype=dtype))
    with pytest.raises(InputError, match=re.escape("the shape [4, 3] of the tokens, got [4, 5]")):
        norm(torch.randn(4, 3, 8), torch.ones(4, 5, dtype=torch.bool))


@pytest.mark.parametrize(("form", "kind"), [("published", "sequences"), ("packed", "molecules")])
def test_one_molecule_in_training_is_refused(form, kind):
    norm = SepNorm(4)
    x = torch.randn(1, 3, 4)
    with pytest.raises(ValueError, match=f"at least 2 {kind}"):
        norm(x) if form == "published" else norm.packed(x[0], 1)
    norm.eval()
    assert norm(x).shape == (1, 3, 4)


@pytest.mark.parametrize("name", NORMS)
def test_rows_may_be_of_the_cls_only(name):
    """As in the last block; the number of molecules may be the width."""
    norm, x = NORMS[name](4).eval(), torch.randn(7, 4)
    torch.testing.assert_close(norm.packed(x[:4], 4), norm.packed(x, 4)[:4])
    torch.testing.assert_close(norm.packed(x, 4)[4:], norm.of_atoms(x[4:]))
