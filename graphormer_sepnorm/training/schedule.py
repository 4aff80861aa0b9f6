"""Learning rate and batches during a run."""

import math
from dataclasses import replace

import numpy as np

from graphormer_sepnorm.config import TrainConfig


def learning_rate(config: TrainConfig, update: int, updates: int) -> float:
    """Warm-up to the peak, then decay to zero, at the middle of an update. Trapezoid: Hagele et al., NeurIPS 2024."""
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
    """Random batches of an epoch. Their sizes differ by at most one, so no batch has a single molecule."""
    order = np.random.default_rng((seed, epoch)).permutation(num_molecules)
    return np.array_split(order, num_batches(num_molecules, batch_size))


def fitted_epochs(config: TrainConfig, num_molecules: int) -> TrainConfig:
    """The optimization with the epochs that ``min_updates`` requires for a training split of this size."""
    least = math.ceil(config.min_updates / num_batches(num_molecules, config.batch_size))
    return with_epochs(config, max(config.epochs, least))


def with_epochs(config: TrainConfig, epochs: int) -> TrainConfig:
    """With another number of epochs, of which at most half are frozen, so that the body is also trained."""
    return replace(config, epochs=epochs, frozen_epochs=min(config.frozen_epochs, epochs // 2))


def num_batches(num_molecules: int, batch_size: int) -> int:
    return min(math.ceil(num_molecules / batch_size), num_molecules // 2)
