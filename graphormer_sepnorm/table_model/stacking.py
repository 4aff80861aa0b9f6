"""How members are weighed: by their predictions for molecules that they did not see.

Axis letters: K members, M molecules, T targets.
"""

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.tables.splits import SPLITTERS, fold_numbers
from graphormer_sepnorm.tables.structures import Structures
from graphormer_sepnorm.tasks import TASKS

FOLDS = 5
PRIOR_ROWS = 30.0  # as many molecules count as much as the prior
BINDING = 1e4  # how strongly weights are held to the sum 1


def make_folds(structures: Structures, labels: Labels, split: str, seed: int, count: int = FOLDS) -> Folds:
    """Folds of the kind of a split: what that holds together stays together.

    Where the split is by a column or by time, and where its groups are fewer than two, the rows of a molecule stay
    together. A table of fewer molecules than folds has a fold for each.

    Args:
        structures: of the M molecules.
        labels: of them; classes are stratified.
        split: a name in ``SPLITTERS``, "column" or "time".
        seed: of the order in which groups are taken.
        count: of the folds.

    Raises:
        InputError: all rows are of one molecule.
    """
    splitter = SPLITTERS.get(split, SPLITTERS["random"])
    groups = splitter.groups(structures)
    if len(set(groups)) < 2:
        groups = structures.families
    strata = labels.y if labels.is_classification else None
    return Folds(fold_numbers(groups, strata, min(count, max(2, len(set(groups)))), seed))


def stacking_weights(labels: Labels, out_of_fold: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The weights of the members for each target: float64 [K, T], at least 0 and with the sum 1.

    They make the squared error of the weighted prediction small, of a classification that of the probabilities. They
    are drawn towards those of the prior, so that a few molecules do not decide. The classes of a multiclass task share
    them.

    Args:
        labels: M molecules; those without an exact label do not count.
        out_of_fold: [K, M, T], by members that did not see the molecule; NaN where there is none.
        prior: [K], above 0, in proportion to what the members are expected to weigh.
    """
    prior = prior / prior.sum()
    errors = labels.y - out_of_fold
    if TASKS[labels.task.kind].adds_up:
        shared = simplex_weights(errors.reshape(len(errors), -1), prior)
        return np.repeat(shared[:, None], labels.y.shape[1], axis=1)
    return np.stack([simplex_weights(errors[:, :, target], prior) for target in range(labels.y.shape[1])], axis=1)


def simplex_weights(errors: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Weights [K] with the sum 1 that make the weighted sum of errors [K, M] small; the prior's where all is NaN."""
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
    """The prediction of members [K, M, T] with weights [K, T]: float64 [M, T]; probabilities of classes add up to 1."""
    values = weighted_mean(predictions, weights)
    return values / values.sum(axis=1, keepdims=True) if TASKS[task.kind].adds_up else values


def weighted_mean(predictions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted mean of members' predictions: float64 [M, T].

    Args:
        predictions: [K, M, T]; where one is NaN the others share its weight, and where all with a weight are NaN, so is
            the mean.
        weights: [K, T].
    """
    present = np.where(np.isnan(predictions), 0.0, weights[:, None])
    total = present.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (present * np.nan_to_num(predictions)).sum(axis=0) / np.where(total > 0, total, np.nan)
