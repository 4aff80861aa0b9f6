from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.training.schedule import epoch_batches, learning_rate, num_batches, with_enough_epochs

TRAIN = TrainConfig(lr=0.5, warmup=0.2, cooldown=0.4)


@pytest.mark.parametrize(
    ("schedule", "progress", "rate"),
    [
        ("cosine", 0.0, 0.0),
        ("cosine", 0.1, 0.25),
        ("cosine", 0.2, 0.5),
        ("cosine", 0.4, 0.25 * (1 + 2**-0.5)),  # a quarter of the fall, half a cosine at 45 degrees
        ("cosine", 0.6, 0.25),
        ("cosine", 1.0, 0.0),
        ("linear", 0.1, 0.25),
        ("linear", 0.4, 0.375),
        ("linear", 0.6, 0.25),
        ("linear", 1.0, 0.0),
        ("trapezoid", 0.1, 0.25),
        ("trapezoid", 0.2, 0.5),
        ("trapezoid", 0.6, 0.5),  # the cooldown is the last 0.4
        ("trapezoid", 0.7, 0.375),
        ("trapezoid", 1.0, 0.0),
    ],
)
def test_rates_by_hand(schedule, progress, rate):
    assert learning_rate(replace(TRAIN, schedule=schedule), progress) == pytest.approx(rate, abs=1e-12)


def test_a_run_can_do_without_warm_up_or_be_nothing_else():
    assert learning_rate(replace(TRAIN, warmup=0.0), 0.0) == 0.5
    assert learning_rate(replace(TRAIN, warmup=1.0), 0.75) == 0.375
    assert learning_rate(replace(TRAIN, warmup=1.0), 1.0) == 0.5


@pytest.mark.parametrize(
    ("molecules", "batch_size", "batches"),
    [(10, 4, 3), (9, 4, 3), (8, 4, 2), (3, 2, 1), (5, 2, 2), (2, 64, 1), (128, 64, 2), (129, 64, 3)],
)
def test_numbers_of_batches_by_hand_none_of_them_with_one_molecule(molecules, batch_size, batches):
    assert num_batches(molecules, batch_size) == batches
    sizes = [len(batch) for batch in epoch_batches(molecules, batch_size, seed=0, epoch=0)]
    assert len(sizes) == batches and min(sizes) >= 2 and max(sizes) - min(sizes) <= 1


def test_an_epoch_has_every_molecule_once_in_an_order_of_its_own():
    orders = [np.concatenate(epoch_batches(50, 8, seed, epoch)).tolist() for seed, epoch in ((0, 0), (0, 1), (1, 0))]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    assert np.concatenate(epoch_batches(50, 8, 0, 1)).tolist() == orders[1]


@pytest.mark.parametrize(
    ("epochs", "min_updates", "expected"), [(2, 0, 2), (2, 6, 2), (2, 7, 3), (2, 10, 4), (20, 10, 20)]
)
def test_a_small_split_is_passed_over_until_there_are_enough_updates(epochs, min_updates, expected):
    config = TrainConfig(epochs=epochs, batch_size=4, min_updates=min_updates)
    assert with_enough_epochs(config, num_molecules=10) == replace(config, epochs=expected)  # three batches
