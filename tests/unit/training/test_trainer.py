from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector

from graphormer_sepnorm.config import Config, TrainConfig
from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.kernels import KERNELS_VARIABLE
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.recipes import RECIPES
from graphormer_sepnorm.training.optimizers import OPTIMIZERS
from graphormer_sepnorm.training.trainer import (
    Trainer,
    epoch_batches,
    find_loss,
    fitted_epochs,
    learning_rate,
    num_batches,
    step_unless,
)
from tests.robustness.tiny_run import tiny_config, update


def config_of(recipe: str, precision: str = "32-true", optimizer: str | None = None) -> Config:
    tiny, found = tiny_config(epochs=1), RECIPES[recipe]
    shape = found.architecture(tiny.model.atom_sizes, tiny.model.bond_sizes, 2)
    train = replace(tiny.train, optimizer=optimizer or found.train.optimizer, precision=precision)
    attention = shape.attention_layers and 2
    model = replace(shape, layers=3, width=32, ffn_width=32, heads=4, attention_layers=attention)
    return replace(tiny, model=model, train=train)


def trainer_of(config: Config) -> Trainer:
    return Trainer(config, *(load_split("tiny", split, config.model.encodings) for split in ("train", "val")))


def without_dropout() -> Config:
    config = tiny_config(dropout=0.0)
    return replace(config, model=replace(config.model, dropout=0.0))


def test_an_update_gives_the_loss_and_the_norm_of_the_gradient_before_clipping():
    config = without_dropout()
    trainer = trainer_of(replace(config, train=replace(config.train, clip_norm=1e-3)))
    trainer.model.train()
    batch = trainer.train.batch(np.arange(8))
    loss = find_loss(trainer.model, trainer.objective, "32-true", batch)
    learning = [parameter for parameter in trainer.model.parameters() if parameter.requires_grad]
    gradients = torch.autograd.grad(loss, learning)
    found, norm = update(trainer, np.arange(8)).tolist()
    assert found == pytest.approx(loss.item(), rel=1e-5)
    assert norm == pytest.approx(torch.nn.utils.get_total_norm(gradients).item(), rel=1e-4) and norm > 1e-3


def learned(trainer: Trainer) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in trainer.model.parameters()]


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", [*OPTIMIZERS, "sgd"])
@pytest.mark.parametrize("bad", [torch.inf, torch.nan])
def test_an_update_with_a_non_finite_loss_changes_no_weight_and_does_not_affect_later_ones(bad, optimizer, monkeypatch):
    """Before any other update, and between two of them; the last optimizer does not support ``found_inf``."""
    monkeypatch.setitem(OPTIMIZERS, "sgd", lambda model, train: [torch.optim.SGD(model.parameters(), momentum=0.9)])
    config = without_dropout()
    trainer = trainer_of(replace(config, train=replace(config.train, optimizer=optimizer)))
    trainer.model.train()
    loss = trainer.objective.loss
    for _ in range(2):
        before = learned(trainer)
        monkeypatch.setattr(trainer.objective, "loss", lambda network, batch: network(batch).sum() * bad)
        assert not update(trainer, np.arange(8)).isfinite().all()
        assert all(torch.equal(*both) for both in zip(before, learned(trainer), strict=True))
        monkeypatch.setattr(trainer.objective, "loss", loss)
        assert update(trainer, np.arange(8, 15)).isfinite().all()
        assert not all(torch.equal(*both) for both in zip(before, learned(trainer), strict=True))
    assert all(weight.isfinite().all() for weight in (*learned(trainer), *trainer.evaluated.parameters()))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_step_that_is_not_skipped_equals_the_optimizers_own(optimizer):
    found = []
    for step in (lambda o: o.step(), lambda o: step_unless(torch.tensor(0.0), o, 0.01)):
        torch.manual_seed(0)
        model = Network(tiny_config().model)
        optimizers = OPTIMIZERS[optimizer](model, replace(TrainConfig(), lr=0.01))
        for _ in range(2):
            for parameter in model.parameters():
                parameter.grad = torch.randn_like(parameter)
            for one in optimizers:
                step(one)
        found.append(parameters_to_vector(model.parameters()))
    assert found[0].equal(found[1])


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("recipe", ["paper", "best", "local", "slim"])
def test_updates_of_padded_batches_are_those_of_the_compiled_kernels(monkeypatch, recipe, optimizer):
    """Losses and norms of three updates with batches of two sizes, each of which depends on the ones before."""
    config = config_of(recipe, optimizer=optimizer)
    config = replace(config, model=replace(config.model, dropout=0.0, attention_dropout=0.0))
    found = []
    for mode in ("auto", "off"):
        monkeypatch.setenv(KERNELS_VARIABLE, mode)
        trainer = trainer_of(config)
        trainer.model.train()
        batches = [np.arange(8), np.arange(8, 15), np.arange(15, 23)]
        found.append(torch.stack([update(trainer, batch).double() for batch in batches]))
    torch.testing.assert_close(found[1], found[0], rtol=2e-4, atol=1e-5)


TRAIN = TrainConfig(lr=0.5, warmup=0.2, cooldown=0.4)


# Cosine and sine of an eighth of a half-turn.
COS, SIN = (2 + 2**0.5) ** 0.5 / 2, (2 - 2**0.5) ** 0.5 / 2


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [  # five updates, in the middle of their fifths: at 0.1, 0.3, 0.5, 0.7 and 0.9 of the run
        ("cosine", [0.25, 0.25 * (1 + COS), 0.25 * (1 + SIN), 0.25 * (1 - SIN), 0.25 * (1 - COS)]),
        ("linear", [0.25, 0.4375, 0.3125, 0.1875, 0.0625]),
        ("trapezoid", [0.25, 0.5, 0.5, 0.375, 0.125]),  # the cooldown is the last 0.4
    ],
)
def test_rates_by_hand(schedule, rates):
    config = replace(TRAIN, schedule=schedule)
    assert [learning_rate(config, update, 5) for update in range(5)] == pytest.approx(rates, abs=1e-12)


@pytest.mark.parametrize(
    ("molecules", "batch_size", "batches"),
    [(10, 4, 3), (9, 4, 3), (8, 4, 2), (3, 2, 1), (5, 2, 2), (2, 64, 1), (128, 64, 2), (129, 64, 3)],
)
def test_numbers_of_batches_by_hand(molecules, batch_size, batches):
    assert num_batches(molecules, batch_size) == batches
    sizes = [len(batch) for batch in epoch_batches(molecules, batch_size, seed=0, epoch=0)]
    assert len(sizes) == batches and min(sizes) >= 2 and max(sizes) - min(sizes) <= 1


def test_an_epoch_has_every_molecule_once_in_its_own_order():
    orders = [np.concatenate(epoch_batches(50, 8, seed, epoch)).tolist() for seed, epoch in ((0, 0), (0, 1), (1, 0))]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    assert np.concatenate(epoch_batches(50, 8, 0, 1)).tolist() == orders[1]


@pytest.mark.parametrize(
    ("epochs", "min_updates", "expected"), [(2, 0, 2), (2, 6, 2), (2, 7, 3), (2, 10, 4), (20, 10, 20)]
)
def test_a_small_split_is_repeated_until_there_are_enough_updates(epochs, min_updates, expected):
    config = TrainConfig(epochs=epochs, batch_size=4, min_updates=min_updates)
    assert fitted_epochs(config, num_molecules=10) == replace(config, epochs=expected)  # three batches


@pytest.mark.parametrize(
    ("epochs", "min_updates", "frozen", "expected"),
    [(1, 0, 2, 0), (2, 0, 2, 1), (3, 0, 2, 1), (4, 0, 2, 2), (8, 0, 2, 2), (2, 12, 2, 2), (8, 0, 8, 4), (8, 0, 0, 0)],
)
def test_at_most_half_of_the_epochs_are_frozen(epochs, min_updates, frozen, expected):
    """Also of those that ``min_updates`` adds: twelve updates are four epochs of three batches."""
    train = {"epochs": epochs, "batch_size": 4, "min_updates": min_updates}
    config = TrainConfig(**train, start_from="foundation", frozen_epochs=frozen)
    assert fitted_epochs(config, num_molecules=10).frozen_epochs == expected
    assert fitted_epochs(fitted_epochs(config, 10), 10) == fitted_epochs(config, 10)
