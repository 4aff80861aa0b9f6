"""One update of a model on the host: what it gives, and what it changes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.load import load_split
from graphormer_sepnorm.system.device import autocast
from graphormer_sepnorm.tasks import Task
from graphormer_sepnorm.training.step import HostStep, find_loss, follow
from graphormer_sepnorm.training.trainer import Trainer
from tests.robustness.tiny_run import tiny_config


def trainer_of(config: Config) -> Trainer:
    return Trainer(config, *(load_split("tiny", split, config.model.encodings) for split in ("train", "val")))


def without_dropout() -> Config:
    config = tiny_config(dropout=0.0)
    return replace(config, model=replace(config.model, dropout=0.0))


def test_an_update_gives_the_loss_and_the_norm_of_the_gradient_before_clipping():
    config = without_dropout()
    trainer = trainer_of(replace(config, train=replace(config.train, clip_norm=1e-3)))
    assert isinstance(trainer.step, HostStep)
    trainer.model.train()
    batch = trainer.step.batch(np.arange(8))
    loss = find_loss(trainer.model, trainer.objective, "32-true", batch)
    learning = [parameter for parameter in trainer.model.parameters() if parameter.requires_grad]
    gradients = torch.autograd.grad(loss, learning)
    found, norm = trainer.step(np.arange(8), 1e-3).tolist()
    assert found == pytest.approx(loss.item(), rel=1e-5)
    assert norm == pytest.approx(torch.nn.utils.get_total_norm(gradients).item(), rel=1e-4) and norm > 1e-3


def test_averages_are_the_weights_after_the_first_update_and_follow_them_from_then_on():
    trainer = trainer_of(without_dropout())
    trainer.model.train()
    trainer.step(np.arange(8), 1e-3)
    first = trainer.model.cls.detach().clone()
    assert trainer.evaluated.cls.equal(first)
    trainer.step(np.arange(8, 15), 1e-3)
    torch.testing.assert_close(trainer.evaluated.cls.detach(), 0.9 * first + 0.1 * trainer.model.cls.detach())


@pytest.mark.parametrize("bad", [torch.inf, torch.nan])
def test_an_update_whose_loss_is_not_finite_changes_nothing_that_learns(bad, monkeypatch):
    trainer = trainer_of(without_dropout())
    trainer.model.train()
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    monkeypatch.setattr(trainer.objective, "loss", lambda network, batch: network(batch).sum() * bad)
    assert not trainer.step(np.arange(8), 1e-3).isfinite().all()
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))
    assert not trainer.average.n_averaged and not any(optimizer.state for optimizer in trainer.optimizers)


def test_the_loss_is_computed_in_the_precision_of_the_run():
    trainer = trainer_of(without_dropout())
    batch = trainer.step.batch(np.arange(8))
    model = trainer.model.eval()
    losses = [find_loss(model, trainer.objective, precision, batch) for precision in ("32-true", "bf16-mixed")]
    with autocast("bf16-mixed", torch.device("cpu")):
        output = model(batch)
    task = Task(trainer.config.task)
    assert losses[1] == task.loss(output.float(), batch.y, batch.bounds) != losses[0]


def test_following_by_hand():
    """Weights 1 and 3 to 2 and 5 by a quarter; a buffer is copied."""
    average, model = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    with torch.no_grad():
        average.weight.copy_(torch.tensor([1.0, 3.0]))
        model.weight.copy_(torch.tensor([2.0, 5.0]))
    model.running_mean.fill_(7.0)
    follow(average, model, 0.75, first=False)
    assert average.weight.tolist() == [1.25, 3.5] and average.running_mean.tolist() == [7.0, 7.0]
    follow(average, model, 0.75, first=True)
    assert average.weight.tolist() == [2.0, 5.0]
