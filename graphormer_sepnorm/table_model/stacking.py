"""Stacking: the weights of the members, fitted on their out-of-fold predictions.

Axis letters: K members, M molecules, T targets."""

from dataclasses import replace

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.tables.splits import SPLITTERS, fold_numbers
from graphormer_sepnorm.tables.structures import Structures
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.censored import error_deviation

FOLDS = 5
PRIOR_ROWS = 30.0  # number of molecules that have the same influence as the prior
ROUNDS = 10  # of expectation and maximization
BINDING = 1e4  # penalty that enforces the sum 1


def make_folds(structures: Structures, labels: Labels, split: str, seed: int, count: int = FOLDS) -> Folds:
    """Folds that keep the same molecules together as a split; classes are stratified."""
    splitter = SPLITTERS.get(split, SPLITTERS["random"])
    groups = splitter.groups(structures)
    if len(set(groups)) < 2:
        groups = structures.families
    strata = labels.y if labels.is_classification else None
    return Folds(fold_numbers(groups, strata, min(count, max(2, len(set(groups)))), seed))


def stacking_weights(labels: Labels, out_of_fold: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Weights [K, T] of members that minimize the squared error, shrunk to the prior [K]; each column adds up to 1."""
    prior = prior / prior.sum()
    errors = labels.y - out_of_fold
    if labels.weight is not None:
        errors *= np.sqrt(labels.weight / labels.weight.mean())[:, None]
    if TASKS[labels.task.kind].adds_up:
        shared = simplex_weights(errors.reshape(len(errors), -1), prior)
        return np.repeat(shared[:, None], labels.y.shape[1], axis=1)
    weights = np.stack([simplex_weights(errors[:, :, target], prior) for target in range(labels.y.shape[1])], axis=1)
    if labels.bounds is None:
        return weights
    for _ in range(ROUNDS):
        values = weighted_mean(out_of_fold, weights)
        y = labels.expected(values, error_deviation(labels.y, labels.bounds, values))
        weights = stacking_weights(replace(labels, y=y, bounds=None), out_of_fold, prior)
    return weights


def simplex_weights(errors: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Weights [K] with sum 1 that minimize the weighted sum of errors [K, M]; the prior if all errors are NaN."""
    from scipy.optimize import nnls  # its import takes a while

    rows = errors[:, ~np.isnan(errors).any(axis=0)].T
    scale = np.sqrt((rows**2).mean()) if rows.size else 0.0
    if scale == 0:
        return prior
    pull = np.sqrt(PRIOR_ROWS)
    system = np.vstack([rows / scale, pull * np.eye(len(prior)), np.full((1, len(prior)), BINDING)])
    weights, _ = nnls(system, np.concatenate([np.zeros(len(rows)), pull * prior, [BINDING]]))
    return weights / weights.sum()


def combined(task: TaskConfig, predictions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted prediction [M, T] of members [K, M, T], float64; multiclass probabilities add up to 1."""
    values = weighted_mean(predictions, weights)
    return values / values.sum(axis=1, keepdims=True) if TASKS[task.kind].adds_up else values


def each_by_itself(task: TaskConfig, predictions: np.ndarray) -> np.ndarray:
    """The predictions [K, M, T] of models that have one of the members [K, M, T] each, float64."""
    whole = np.ones((1, predictions.shape[2]))
    return np.stack([combined(task, each[None], whole) for each in predictions])


def weighted_mean(predictions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean [M, T] of predictions [K, M, T] with weights [K, T]; the weight of a NaN goes to the other members."""
    present = np.where(np.isnan(predictions), 0.0, weights[:, None])
    total = present.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (present * np.nan_to_num(predictions)).sum(axis=0) / np.where(total > 0, total, np.nan)
