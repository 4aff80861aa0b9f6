"""What predicts from similarities: a support vector machine, and of numbers its mean with a Gaussian process.

Axis letters: M molecules, N training molecules, G groups of similarities, T targets.
"""

from dataclasses import dataclass

import numpy as np

from graphormer_sepnorm.inference.trust import evenly
from graphormer_sepnorm.table_model.gaussian_process import Likelihood, solve_process
from graphormer_sepnorm.table_model.labels import Labels, Target
from graphormer_sepnorm.table_model.reference import SHARES, mixed

COST = 5.0  # C of the support vector machine
MARGIN = 0.05  # its epsilon, in standard deviations of the labels
NOISE = 0.05  # of the Gaussian process, as far as nothing is known, in the variance of the labels
MOST_ROWS = 600  # that the weights of the groups are learnt from
LEAST_ROWS = 10
LEAST_WEIGHT = 1e-6  # of a molecule, over their mean
ROUNDS = 3  # in which labels of which only bounds are known follow the prediction


@dataclass(frozen=True)
class Machines:
    """The machines of all targets.

    Attributes:
        weights: float64 [G, T], of the groups.
        coefficients: float64 [N, T], of the weighted similarities; 0 for a molecule that does not take part.
        intercept: float64 [T].
    """

    weights: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray

    def __call__(self, similarities: np.ndarray) -> np.ndarray:
        """Numbers, or decisions above 0 for class 1: float64 [M, T], from similarities [M, G, N]."""
        by_group = np.stack([similarities[:, group] @ self.coefficients for group in range(len(self.weights))])
        return (self.weights[:, None] * by_group).sum(axis=0) + self.intercept


def fit_machines(similarities: np.ndarray, labels: Labels) -> Machines:
    """Fits to labelled molecules with similarities [N, G, N]; a target without labels is predicted as 0."""
    targets = labels.y.shape[1]
    weights = np.repeat(SHARES[:, None], targets, axis=1)
    coefficients, intercept = np.zeros_like(labels.y), np.zeros(targets)
    for place in range(targets):
        target = labels.target(place)
        rows = target.known
        if not len(rows):
            continue
        known, among = target.take(rows), take(similarities, rows, rows)
        if labels.is_classification:
            solved = solve_classes(mixed(among, SHARES), known, labels.task.balance)
        else:
            weights[:, place], noise = learn_weights(among, known)
            solved = solve_numbers(mixed(among, weights[:, place]), weights[:, place].sum(), noise, known)
        coefficients[rows, place], intercept[place] = solved
    return Machines(weights, coefficients, intercept)


def take(similarities: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The similarities of some molecules and some others, all groups of them."""
    return similarities[np.ix_(rows, np.arange(similarities.shape[1]), columns)]


def learn_weights(similarities: np.ndarray, target: Target) -> tuple[np.ndarray, float]:
    """Weights of the groups [G] and the noise: those that make the exact labels likely, of at most ``MOST_ROWS``."""
    exact = np.flatnonzero(~np.isnan(target.y))
    rows = exact[evenly(len(exact), MOST_ROWS)]
    if len(rows) < LEAST_ROWS:
        return SHARES, NOISE
    kernels = np.ascontiguousarray(take(similarities, rows, rows).swapaxes(0, 1), np.float64)
    y, _, _ = standardized(target.y[rows], target.weight[rows])
    found = Likelihood(kernels, y, spread(target.weight[rows]), np.append(SHARES, NOISE)).most_likely()
    return found[:-1], found[-1]


def standardized(y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Labels [N] less their mean and over their standard deviation, and both of these."""
    mean = np.average(y, weights=weight)
    deviation = np.sqrt(np.average((y - mean) ** 2, weights=weight)) or 1.0
    return (y - mean) / deviation, mean, deviation


def spread(weight: np.ndarray) -> np.ndarray:
    """By which the noise of molecules with weights [N] is multiplied: [N]."""
    return 1 / np.maximum(weight / weight.mean(), LEAST_WEIGHT)


def solve_numbers(similarity: np.ndarray, total: float, noise: float, target: Target) -> tuple[np.ndarray, float]:
    """Coefficients [N] and the intercept of a regression; labels known by bounds follow the prediction in rounds.

    Args:
        similarity: [N, N], the weighted sum over groups.
        total: of the weights of the groups. The support vector machine sees the similarity over it.
        noise: of the Gaussian process.
        target: labels, known exactly or by bounds.
    """
    exact = ~np.isnan(target.y)
    covariance = similarity + np.diag(noise * spread(target.weight))
    prediction: np.ndarray | float = 0.0
    if exact.any() and target.weight[exact].sum():
        prediction = np.average(target.y[exact], weights=target.weight[exact])
    for _ in range(1 if exact.all() else ROUNDS):
        y, mean, deviation = standardized(target.filled(prediction), target.weight)
        vectors, shift = solve_vectors(similarity / total, y, target.weight)
        coefficients = deviation * (vectors / total + solve_process(covariance, y)) / 2
        intercept = mean + deviation * shift / 2
        prediction = similarity @ coefficients + intercept
    return coefficients, intercept


def solve_vectors(similarity: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients [N] and the intercept of a support vector machine of standardized labels."""
    from sklearn.svm import SVR  # its import takes seconds

    machine = SVR(kernel="precomputed", C=COST, epsilon=MARGIN).fit(similarity, y, sample_weight=weight)
    coefficients = np.zeros(len(y))
    coefficients[machine.support_] = machine.dual_coef_[0]
    return coefficients, machine.intercept_[0]


def solve_classes(similarity: np.ndarray, target: Target, balance: bool) -> tuple[np.ndarray, float]:
    """Coefficients [N] and the intercept of a decision, above 0 for class 1; 1 or -1 where there is one class."""
    from sklearn.svm import SVC  # its import takes seconds

    coefficients = np.zeros(len(target.y))
    if len(np.unique(target.y)) < 2:
        return coefficients, 2 * target.y[0] - 1
    machine = SVC(kernel="precomputed", C=COST, class_weight="balanced" if balance else None)
    machine.fit(similarity, target.y, sample_weight=target.weight)
    coefficients[machine.support_] = machine.dual_coef_[0]
    return coefficients, machine.intercept_[0]
