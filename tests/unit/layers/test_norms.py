import copy
import re
from functools import partial

import pytest
import torch
from torch import nn

from graphormer_sepnorm import SepNorm, ShareNorm
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers import batch_norm
from graphormer_sepnorm.layers.batch_norm import (
    Normalize,
    SyncedBatchNorm,
    reestimate_batch_norm,
    statistics,
    synchronize_batch_norms,
)
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
    other = copy.deepcopy(norm)
    packed = norm.packed(torch.cat([padded[:, 0], padded[tokens]]), len(sizes))
    result = other(padded, mask)
    torch.testing.assert_close(packed[: len(sizes)], result[:, 0])
    torch.testing.assert_close(packed[len(sizes) :], result[tokens])
    for key, value in norm.state_dict().items():
        torch.testing.assert_close(value, other.state_dict()[key], msg=f"{key}: padding was seen")


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
    for tensor in (*norm.parameters(), *norm.buffers()):
        if tensor.is_floating_point():
            nn.init.uniform_(tensor, 0.5, 2.0)
    torch.testing.assert_close(norm.packed(x[:4], 4), norm.packed(x, 4)[:4])
    torch.testing.assert_close(norm.packed(x, 4)[4:], norm.of_atoms(x[4:]))


def test_running_statistics_become_averages_over_the_batches():
    model = nn.Sequential(nn.BatchNorm1d(1), nn.Dropout(0.5), nn.BatchNorm1d(1, affine=False))
    model.append(nn.BatchNorm1d(1, track_running_stats=False))
    model[0].running_mean.fill_(99)
    reestimate_batch_norm(model, model, [torch.tensor([[0.0], [2.0]]), torch.tensor([[4.0], [8.0]])])
    assert model[0].running_mean.tolist() == [3.5]  # of 1 and 6
    assert model[0].running_var.tolist() == [2.5]  # of 1 and 4
    assert model[2].running_mean.item() == pytest.approx(0, abs=1e-6)  # without dropout the second sees -1 and 1
    assert model[2].running_var.item() == pytest.approx(1, abs=1e-4)
    assert model[3].running_mean is None


def test_a_transformer_of_another_package_gets_statistics_of_its_batches():
    """Batches and norms are of any kind, and norms that the batches do not reach keep their statistics."""
    body, head = nn.Sequential(nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2)), nn.BatchNorm1d(2)
    model, batch = nn.ModuleDict({"body": body, "head": head}), {"pixels": torch.randn(4, 3, 5, 5)}
    reestimate_batch_norm(model, lambda batch: body(batch["pixels"]), [batch])
    torch.testing.assert_close(body[1].running_mean, body[0](batch["pixels"]).mean(dim=(0, 2, 3)))
    assert head.running_mean.tolist() == [0, 0]
    assert not any(module.training for module in model.modules())


def test_hooks_are_removed_afterwards():
    """So that the model is as fast as before, and can be copied and sent to other processes."""
    model = nn.Sequential(nn.BatchNorm1d(1))
    for _ in range(2):
        reestimate_batch_norm(model, model, [torch.tensor([[0.0], [2.0]])])
    assert not model[0]._forward_pre_hooks
    with pytest.raises(ValueError, match="got 0D input"):
        reestimate_batch_norm(model, model, [torch.tensor(0.0)])
    assert not model[0]._forward_pre_hooks and not model[0].training


def test_statistics_without_a_batch_are_refused():
    """An iterator that was read before would leave the norms as they were, and errors several times as large."""
    model = nn.Sequential(nn.BatchNorm1d(1))
    read = iter([torch.tensor([[0.0], [2.0]])])
    next(read)
    for batches in ([], read):
        with pytest.raises(InputError, match=r"^no batch passed through the BatchNorms.*at least one batch"):
            reestimate_batch_norm(model, model, batches)
    with pytest.raises(InputError, match="no batch passed through"):
        reestimate_batch_norm(model, lambda batch: batch, [torch.tensor([[0.0], [2.0]])])


def test_batch_norms_of_several_processes_keep_their_parameters_and_statistics(monkeypatch):
    for name, value in {"TORCHELASTIC_RUN_ID": "run", "WORLD_SIZE": "2", "RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    norm = nn.BatchNorm1d(2, eps=0.5, momentum=0.25)
    nn.init.constant_(norm.weight, 3.0)
    norm.running_mean.fill_(7.0)
    norm.bias.requires_grad_(False)
    model = nn.Sequential(nn.Sequential(norm), nn.LayerNorm(2)).eval()
    x = torch.randn(4, 2)
    before = model(x)
    synchronize_batch_norms(model)
    assert type(model[0][0]) is SyncedBatchNorm and type(model[1]) is nn.LayerNorm
    assert (model[0][0].eps, model[0][0].momentum) == (0.5, 0.25)
    assert torch.equal(model.eval()(x), before)
    assert model[0][0].weight.requires_grad and not model[0][0].bias.requires_grad


@pytest.mark.parametrize("size", [1, 2, 3])
def test_statistics_over_processes_are_precise_if_the_mean_is_far_above_the_spread(monkeypatch, size):
    """A sum of squares in float32 would lose all digits: 9 is 9,000,000 times the variance."""
    rows = 3 + 1e-3 * torch.randn(7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = torch.var_mean(rows, dim=0, correction=0)
    sent: list[torch.Tensor] = []
    monkeypatch.setattr(batch_norm, "gather", lambda row: sent.append(row) or row.unsqueeze(0))
    for rank in range(size):
        statistics(rows[rank::size].float())
    monkeypatch.setattr(batch_norm, "gather", lambda row: torch.stack(sent))
    count, mean, variance = statistics(rows[::size].float())
    assert count == 7
    torch.testing.assert_close(mean.double(), expected[1], rtol=1e-6, atol=0)
    torch.testing.assert_close(variance.double(), expected[0], rtol=1e-3, atol=0)


def test_the_gradient_through_the_statistics_is_that_of_differences():
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)

    def normal(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            count, mean, variance = statistics(x)
        return Normalize.apply(x, count, mean, (variance + 1e-5).rsqrt())

    assert torch.autograd.gradcheck(normal, (x,))
