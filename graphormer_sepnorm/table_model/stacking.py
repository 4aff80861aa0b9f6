"""Weights of the members, fitted on their out-of-fold predictions, and the expected size of errors, learned from these.

The signs of a large error are the disagreement of the members, the distance to the training molecules, and the errors
for the nearest of them. Axis letters: K members, M molecules, N reference molecules, T targets, S signs."""

from dataclasses import dataclass, replace

import numpy as np
import scipy

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.tables.splits import SPLITTERS, Structures, fold_numbers
from graphormer_sepnorm.tasks import TASKS

FOLDS = 5
PRIOR_ROWS = 30.0  # number of molecules that have the same influence as the prior
ROUNDS = 10  # of expectation and maximization
BINDING = 1e4  # penalty that enforces the sum 1
SIGNS = 3
SHARPNESS = 8  # power of the similarity that weighs the error of a training molecule
BACKGROUND = 5 * 0.3**SHARPNESS  # weight of the mean error: that of five molecules of similarity 0.3
LEAST_DISTANCE = 0.001  # added to a distance, so that its logarithm is finite
LEAST_ERROR = 0.03  # share of the mean error that is added to a disagreement
RIDGE = 0.01  # penalty of the regression
NO_ERROR = 1e-12  # stands in for a mean error of 0
CALIBRATED = 0.05, 0.99  # quantiles of the out-of-fold expected errors that limit expected errors
DEVIATION = np.sqrt(np.pi / 2)  # standard deviation of normal errors over their mean absolute value


def make_folds(structures: Structures, labels: Labels, split: str, seed: int, count: int = FOLDS) -> Folds:
    """Folds that keep the same molecules together as a split; classes are stratified."""
    groups = SPLITTERS.get(split, SPLITTERS["random"]).groups(structures)
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
        return np.repeat(simplex_weights(errors.reshape(len(errors), -1), prior)[:, None], labels.y.shape[1], axis=1)
    weights = np.stack([simplex_weights(errors[:, :, target], prior) for target in range(labels.y.shape[1])], axis=1)
    if labels.bounds is None:
        return weights
    for _ in range(ROUNDS):
        completed = replace(labels, y=labels.expected(weighted_mean(out_of_fold, weights)), bounds=None)
        weights = stacking_weights(completed, out_of_fold, prior)
    return weights


def simplex_weights(errors: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Weights [K] with sum 1 that minimize the weighted sum of errors [K, M]; the prior if all errors are NaN."""
    rows = errors[:, ~np.isnan(errors).any(axis=0)].T
    scale = np.sqrt((rows**2).mean()) if rows.size else 0.0
    if scale == 0:
        return prior
    pull = np.sqrt(PRIOR_ROWS)
    system = np.vstack([rows / scale, pull * np.eye(len(prior)), np.full((1, len(prior)), BINDING)])
    weights, _ = scipy.optimize.nnls(system, np.concatenate([np.zeros(len(rows)), pull * prior, [BINDING]]))
    return weights / weights.sum()


@dataclass(frozen=True)
class Stacked:
    by_member: np.ndarray  # float64 [K, M, T], predictions of the members
    values: np.ndarray  # float64 [M, T], their weighted means
    spread: np.ndarray  # float64 [M, T], expected standard deviation of the error; of probabilities, of the members

    @classmethod
    def of(cls, task: TaskConfig, by_member: np.ndarray, weights: np.ndarray) -> "Stacked":
        """Members with weights [K, T]; the spread is their weighted standard deviation around the mean."""
        values = combined(task, by_member, weights)
        spread = np.sqrt((weights[:, None] * np.nan_to_num(by_member - values) ** 2).sum(axis=0))
        return cls(by_member, values, spread)


def combined(task: TaskConfig, predictions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted prediction [M, T] of members [K, M, T], float64; multiclass probabilities add up to 1."""
    values = weighted_mean(predictions, weights)
    return values / values.sum(axis=1, keepdims=True) if TASKS[task.kind].adds_up else values


def each_by_itself(task: TaskConfig, predictions: np.ndarray) -> np.ndarray:
    """The predictions [K, M, T] of models that have one of the members [K, M, T] each, float64."""
    return np.stack([combined(task, each[None], np.ones((1, each.shape[1]))) for each in predictions])


def weighted_mean(predictions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean [M, T] of predictions [K, M, T] with weights [K, T]; the weight of a NaN goes to the other members."""
    present = np.where(np.isnan(predictions), 0.0, weights[:, None])
    total = present.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (present * np.nan_to_num(predictions)).sum(axis=0) / np.where(total > 0, total, np.nan)


@dataclass(frozen=True)
class Difficulty:
    """A model of the expected size of errors, limited to the range out of fold, for which intervals are calibrated."""

    coefficients: np.ndarray  # float64 [1 + S, T], the intercept and the coefficients of the signs' logarithms
    errors: np.ndarray  # float64 [N, T], absolute out-of-fold errors of the training molecules; NaN: no label
    limits: np.ndarray  # float64 [2, T], the smallest and the largest expected standard deviation

    def __call__(self, disagreement: np.ndarray, similarity: np.ndarray) -> np.ndarray:
        """The expected standard deviation [M, T] of the error; ``similarity`` is [M, N], or [M, 0] if it is unknown."""
        values = signs(disagreement, similarity, self.errors)
        expected = DEVIATION * np.exp(self.coefficients[0] + np.einsum("smt,st->mt", values, self.coefficients[1:]))
        return expected.clip(*self.limits)

    def fits(self, targets: int) -> bool:
        return self.errors.shape[1] == targets and not (self.errors < 0).any()


def fit_difficulty(
    error: np.ndarray, disagreement: np.ndarray, similarity: np.ndarray, numbers: np.ndarray
) -> Difficulty:
    """Fits to out-of-fold errors [M, T], NaN without a label; ``numbers`` [N] are the reference molecules."""
    size = np.abs(error)
    values = signs(disagreement, similarity, size[numbers])
    coefficients = [fit_logarithm(values[:, :, target].T, column) for target, column in enumerate(size.T)]
    without = np.array([[0.0], [np.inf]]).repeat(error.shape[1], axis=1)
    difficulty = Difficulty(np.stack(coefficients, axis=1), size[numbers], without)
    expected = difficulty(disagreement, similarity)
    columns = [each[rows] if rows.any() else each for each, rows in zip(expected.T, ~np.isnan(error.T), strict=True)]
    return replace(difficulty, limits=np.stack([np.quantile(each, CALIBRATED) for each in columns], axis=1))


def fit_logarithm(signs: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Intercept and coefficients [1 + S] of a Poisson regression of sizes [M] on signs [M, S]."""
    from sklearn.linear_model import PoissonRegressor  # its import takes seconds

    rows = np.flatnonzero(~np.isnan(size))
    mean = size[rows].mean() if len(rows) else 0.0
    coefficients = np.zeros(1 + signs.shape[1])
    if mean < NO_ERROR:
        coefficients[0] = np.log(NO_ERROR)
        return coefficients
    centre, scale = signs[rows].mean(axis=0), signs[rows].std(axis=0)
    scale[scale < NO_ERROR] = np.inf  # a constant sign gets the coefficient 0
    regression = PoissonRegressor(alpha=RIDGE, max_iter=1_000).fit((signs[rows] - centre) / scale, size[rows] / mean)
    coefficients[1:] = regression.coef_ / scale
    coefficients[0] = regression.intercept_ + np.log(mean) - coefficients[1:] @ centre
    return coefficients


def of_other_folds(similarity: np.ndarray, folds: Folds, numbers: np.ndarray) -> np.ndarray:
    """Similarities [M, N] to the molecules with the indices ``numbers``, 0 within a fold; [M, 0] stays as it is."""
    if not similarity.shape[1]:
        return similarity
    return np.where(folds.numbers[:, None] == folds.numbers[numbers], 0, similarity)


def signs(disagreement: np.ndarray, similarity: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Logarithms of the signs of a large error: float64 [S, M, T]; without similarities, the last two are 0."""
    measured = ~np.isnan(errors)
    mean = np.nan_to_num(errors).sum(axis=0) / np.maximum(measured.sum(axis=0), 1)
    least = np.maximum(LEAST_ERROR * mean, NO_ERROR)
    table = np.zeros((SIGNS, *disagreement.shape))
    table[0] = np.log(np.nan_to_num(disagreement) + least)
    if similarity.shape[1]:
        table[1] = np.log((1 - similarity.max(axis=1)).clip(min=0) + LEAST_DISTANCE)[:, None]
        near = similarity**SHARPNESS
        sizes = np.nan_to_num(errors).astype(similarity.dtype)
        table[2] = np.log((near @ sizes + BACKGROUND * mean) / (near @ measured + BACKGROUND) + least)
    return table
