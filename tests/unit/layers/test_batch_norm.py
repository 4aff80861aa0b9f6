import pytest
import torch
from torch import nn

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers import batch_norm
from graphormer_sepnorm.layers.batch_norm import (
    Normalize,
    SyncedBatchNorm,
    batch_statistics,
    reestimate_batch_norm,
    statistics,
    synchronize_batch_norms,
)


def test_statistics_of_rows_are_without_bessels_correction():
    variance, mean = batch_statistics(nn.BatchNorm1d(2), torch.tensor([[0.0, 1.0], [4.0, 1.0]]))
    assert (variance.tolist(), mean.tolist()) == ([4.0, 0.0], [2.0, 1.0])


def test_running_statistics_become_averages_over_the_batches():
    model = nn.Sequential(nn.BatchNorm1d(1), nn.Dropout(0.5), nn.BatchNorm1d(1, affine=False))
    model[0].running_mean.fill_(99)
    reestimate_batch_norm(model, model, [torch.tensor([[0.0], [2.0]]), torch.tensor([[4.0], [8.0]])])
    assert model[0].running_mean.tolist() == [3.5]  # of 1 and 6
    assert model[0].running_var.tolist() == [2.5]  # of 1 and 4
    assert model[2].running_mean.item() == pytest.approx(0, abs=1e-6)  # without dropout the second sees -1 and 1
    assert model[2].running_var.item() == pytest.approx(1, abs=1e-4)


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
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "run")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
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


def test_a_norm_without_running_statistics_stays_without():
    model = nn.Sequential(nn.BatchNorm1d(1), nn.BatchNorm1d(1, track_running_stats=False))
    reestimate_batch_norm(model, model, [torch.tensor([[0.0], [2.0]])])
    assert model[0].running_mean.item() == 1 and model[1].running_mean is None
