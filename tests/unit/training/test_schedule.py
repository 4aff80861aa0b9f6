from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.training.trainer import epoch_batches, fitted_epochs, learning_rate, num_batches

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


@pytest.mark.parametrize("schedule", ["cosine", "linear", "trapezoid"])
@pytest.mark.parametrize(("warmup", "updates"), [(0.0, 1), (0.2, 1), (0.6, 1), (0.0, 7), (0.6, 7), (0.6, 400)])
def test_every_update_has_a_rate_above_zero(schedule, warmup, updates):
    config = replace(TRAIN, schedule=schedule, warmup=warmup)
    assert all(0 < learning_rate(config, update, updates) <= config.lr for update in range(updates))


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
