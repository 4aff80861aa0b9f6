"""Learning rate and batches over a run."""

import math
from dataclasses import replace

import numpy as np

from graphormer_sepnorm.config import TrainConfig


def learning_rate(config: TrainConfig, update: int, updates: int) -> float:
    """Linear warm-up to the peak, then the schedule to zero.

    Each update has the rate of the middle of its share of the run, so no update has a rate of zero, and a run of one
    update learns. Source of the trapezoid: Hagele et al., "Scaling laws and compute-optimal training beyond fixed
    training durations", NeurIPS 2024.

    Args:
        config: warm-up, schedule and peak.
        update: its number, counted from 0.
        updates: of the whole run.
    """
    progress = (update + 0.5) / updates
    if progress < config.warmup:
        return config.lr * progress / config.warmup
    if config.schedule == "trapezoid":
        return config.lr * min(1.0, (1 - progress) / config.cooldown)
    fallen = (progress - config.warmup) / (1 - config.warmup)
    if config.schedule == "linear":
        return config.lr * (1 - fallen)
    return config.lr * 0.5 * (1 + math.cos(math.pi * fallen))


def epoch_batches(num_molecules: int, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Random batches of an epoch, of equal size give or take one, so none is left with a single molecule."""
    order = np.random.default_rng((seed, epoch)).permutation(num_molecules)
    return np.array_split(order, num_batches(num_molecules, batch_size))


def fitted_epochs(config: TrainConfig, num_molecules: int) -> TrainConfig:
    """The optimisation with the epochs that a training split of so many molecules takes.

    There are more of them than the config says if ``min_updates`` asks for more. At most half of them are frozen, so
    that the weights before the head learn in a short run too.
    """
    least = math.ceil(config.min_updates / num_batches(num_molecules, config.batch_size))
    epochs = max(config.epochs, least)
    return replace(config, epochs=epochs, frozen_epochs=min(config.frozen_epochs, epochs // 2))


def num_batches(num_molecules: int, batch_size: int) -> int:
    return min(math.ceil(num_molecules / batch_size), num_molecules // 2)


def smallest_batch_size(num_molecules: int, batch_size: int) -> int:
    """Molecules of the smallest batch of an epoch."""
    return num_molecules // max(num_batches(num_molecules, batch_size), 1)
