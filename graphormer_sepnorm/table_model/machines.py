"""Kernel machines: a Gaussian process, of classes -1 and 1, averaged with a support vector machine for regression.

With landmarks, the process predicts a regression without the machine. scikit-learn's GaussianProcessRegressor accepts
no kernel matrices; ours follows Rasmussen and Williams, "Gaussian processes for machine learning", 2006, sections 2.2
and 5.4. Axis letters: M molecules, N reference molecules, R training molecules among the M, G groups of similarities,
T targets."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy

from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.table_model.labels import Labels, Target
from graphormer_sepnorm.table_model.reference import SHARES, mixed
from graphormer_sepnorm.tasks.censored import Censored, is_bounded
from graphormer_sepnorm.tasks.scales import limited

COST = 5.0  # C of the support vector machine
MARGIN = 0.05  # epsilon of the support vector machine, in standard deviations of the labels
NOISE = 0.05  # prior noise of the Gaussian process, as a share of the variance of the labels
MOST_ROWS = 600  # largest number of rows that the weights of the groups are fitted to
LEAST_ROWS = 10
LEAST_WEIGHT = 1e-6  # smallest weight of a molecule, relative to the mean weight
DEVIATION = 0.3  # standard deviation of the prior of the logarithms of weights and noise
STEPS = 10  # iterations of the optimizer
FAILED = 1e10  # value for a covariance that is not positive definite
IMPUTED = 10  # rounds of imputation
ROWS_AT_ONCE = 1_000
JITTER = 1e-4  # share of the variance added to that of landmarks: similarities are float32, landmarks may be alike


@dataclass(frozen=True)
class Machines:
    weights: np.ndarray  # float64 [G, T], weights of the groups
    coefficients: np.ndarray  # float64 [N, T], coefficients of the weighted similarities; 0 for an unused molecule
    intercept: np.ndarray  # float64 [T], intercepts

    def __call__(self, similarities: np.ndarray) -> np.ndarray:
        """Values, or decisions above 0 for class 1: float64 [M, T], from similarities [M, G, N]."""
        by_group = np.stack([similarities[:, group] @ self.coefficients for group in range(len(self.weights))])
        return (self.weights[:, None] * by_group).sum(axis=0) + self.intercept


@dataclass(frozen=True)
class Compared:
    """Molecules with their similarities to reference molecules among them."""

    similarities: np.ndarray  # float32 [M, G, N]
    numbers: np.ndarray  # int64 [N], indices of the reference molecules

    @property
    def with_all(self) -> bool:
        return len(self.numbers) == len(self.similarities)

    def among(self, rows: np.ndarray, group: int) -> np.ndarray:
        """The similarities [R, R] of some reference molecules to each other."""
        return self.similarities[rows, group][:, np.searchsorted(self.numbers, rows)]

    def mixed_among(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """As ``among``, summed over groups with weights [G]: float64 [R, R]."""
        parts = (weight * self.among(rows, group) for group, weight in enumerate(weights))
        return sum(parts, np.zeros((len(rows), len(rows))))

    def blocks(self, rows: np.ndarray, weights: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Places among rows and their similarities to the references, float64 [places, N]: blocks limit memory."""
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            yield part, mixed(self.similarities[rows[part]], weights)


def fit_machines(compared: Compared, labels: Labels, learnt: np.ndarray) -> Machines:
    """Fits machines to the exact labels of the molecules ``learnt``; a target without any is predicted as its mean."""
    targets = labels.y.shape[1]
    weights = np.repeat(SHARES[:, None], targets, axis=1)
    coefficients, intercept = np.zeros((len(compared.numbers), targets)), np.zeros(targets)
    for place in range(targets):
        target = labels.target(place)
        exact = np.flatnonzero(~np.isnan(target.y))
        rows = learnt[np.isin(learnt, exact) & (target.weight[learnt] > 0)]
        target = labels.take(rows if len(rows) else exact).target(place)
        if labels.is_classification:
            target = as_numbers(target, labels.task.balance)
        if len(rows):
            solution = solve(compared, rows, target, with_vectors=compared.with_all and not labels.is_classification)
            weights[:, place], coefficients[:, place], intercept[place] = solution
        elif target.weight.sum():
            intercept[place] = np.average(target.y, weights=target.weight)
    return Machines(weights, coefficients, intercept)


def solve(
    compared: Compared, rows: np.ndarray, target: Target, with_vectors: bool
) -> tuple[np.ndarray, np.ndarray, float]:
    weights, noise = learn_weights(compared, rows, target)
    y, mean, deviation = standardized(target.y, target.weight)
    if not compared.with_all:
        return weights, deviation * Landmarks.of(compared, rows, weights, noise, target).solve(y), mean
    similarity, shift = compared.mixed_among(rows, weights), 0.0
    factor = scipy.linalg.cho_factor(similarity + np.diag(noise * noise_factors(target.weight)), lower=True)
    dual = scipy.linalg.cho_solve(factor, y)
    if with_vectors:
        from sklearn.svm import SVR  # its import takes seconds

        machine, vectors, weight = SVR(kernel="precomputed", C=COST, epsilon=MARGIN), np.zeros(len(y)), target.weight
        machine.fit(similarity / weights.sum(), y, sample_weight=weight * weight.sum() / (weight**2).sum())
        vectors[machine.support_] = machine.dual_coef_[0]
        dual, shift = (vectors / weights.sum() + dual) / 2, machine.intercept_[0] / 2
    coefficients = np.zeros(len(compared.numbers))
    coefficients[rows] = deviation * dual
    return weights, coefficients, mean + deviation * shift


def learn_weights(compared: Compared, rows: np.ndarray, target: Target) -> tuple[np.ndarray, float]:
    """Weights of the groups [G] and noise that maximize the likelihood of at most ``MOST_ROWS`` exact labels."""
    exact = np.flatnonzero(~np.isnan(target.y) & np.isin(rows, compared.numbers))
    chosen = exact[evenly(len(exact), MOST_ROWS)]
    if len(chosen) < LEAST_ROWS:
        return SHARES, NOISE
    kernels = np.stack([compared.among(rows[chosen], group) for group in range(len(SHARES))]).astype(np.float64)
    y, _, _ = standardized(target.y[chosen], target.weight[chosen])
    likelihood = Likelihood(kernels, y, noise_factors(target.weight[chosen]), np.append(SHARES, NOISE))
    start, options = np.log(likelihood.prior), {"maxiter": STEPS}
    variances = np.exp(scipy.optimize.minimize(likelihood, start, jac=True, method="L-BFGS-B", options=options).x)
    return variances[:-1], variances[-1]


@dataclass(frozen=True)
class Likelihood:
    """Negative log marginal likelihood of the labels plus the negative log prior of the parameters."""

    kernels: np.ndarray  # float64 [G, R, R]
    y: np.ndarray  # float64 [R], with mean 0 and standard deviation 1
    spread: np.ndarray  # float64 [R], factor of the noise of each label
    prior: np.ndarray  # float64 [G + 1], prior weights of the kernels and prior noise

    def __call__(self, logarithms: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient [G + 1] at the logarithms of weights and noise [G + 1]."""
        parameters = np.exp(logarithms)
        covariance = np.tensordot(parameters[:-1], self.kernels, 1) + np.diag(parameters[-1] * self.spread)
        factor, failed = scipy.linalg.lapack.dpotrf(covariance, lower=1)
        if failed:
            return FAILED, np.zeros_like(logarithms)
        lower = np.tril(scipy.linalg.lapack.dpotri(factor, lower=1)[0])
        inverse = lower + np.tril(lower, -1).T
        coefficients = inverse @ self.y
        rest = inverse - np.outer(coefficients, coefficients)
        slopes = [*(np.vdot(rest, kernel) for kernel in self.kernels), np.diag(rest) @ self.spread]
        offset = (logarithms - np.log(self.prior)) / DEVIATION
        value = 0.5 * (self.y @ coefficients + offset @ offset) + np.log(np.diag(factor)).sum()
        return value, 0.5 * parameters * np.array(slopes) + offset / DEVIATION


def standardized(y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Standardized labels [R], their mean and their standard deviation."""
    mean = np.average(y, weights=weight)
    deviation = np.sqrt(np.average((y - mean) ** 2, weights=weight)) or 1.0
    return (y - mean) / deviation, mean, deviation


def noise_factors(weight: np.ndarray) -> np.ndarray:
    """Factors [R] of the noise of molecules with weights [R]."""
    return 1 / np.maximum(weight / weight.mean(), LEAST_WEIGHT)


def as_numbers(target: Target, balance: bool) -> Target:
    """Classes 0 and 1 as -1 and 1; with ``balance``, both classes get the same total weight."""
    weight = target.weight
    positive, negative = weight[target.y == 1].sum(), weight[target.y == 0].sum()
    if balance and positive and negative:
        weight = weight * np.where(target.y == 1, negative, positive) / (positive + negative)
    return replace(target, y=2 * target.y - 1, weight=weight)


@dataclass(frozen=True)
class Landmarks:
    blocks: Callable[[], Iterator[tuple[slice, np.ndarray]]]
    precision: np.ndarray  # float64 [R], inverse noise variance of each molecule
    factor: tuple[np.ndarray, bool]  # of the equations for the coefficients, as ``cho_factor``

    @classmethod
    def of(cls, compared: Compared, rows: np.ndarray, weights: np.ndarray, noise: float, target: Target) -> "Landmarks":
        """The process of a target of R molecules, with weights [G] of the groups and a noise."""
        blocks, prior = partial(compared.blocks, rows, weights), compared.mixed_among(compared.numbers, weights)
        prior[np.diag_indices_from(prior)] += JITTER * weights.sum()
        # what landmarks do not explain is treated as noise (Snelson and Ghahramani, NeurIPS 2005)
        unexplained = (weights.sum() - squared_norms(scipy.linalg.cholesky(prior, lower=True), blocks())).clip(min=0)
        precision = 1 / (noise * noise_factors(target.weight) + unexplained)
        for part, block in blocks():
            prior += block.T @ (block * precision[part, None])
        return cls(blocks, precision, scipy.linalg.cho_factor(prior, lower=True, overwrite_a=True))

    def solve(self, y: np.ndarray) -> np.ndarray:
        right = sum(block.T @ (y * self.precision)[part] for part, block in self.blocks())
        return scipy.linalg.cho_solve(self.factor, right)

    def rest(self, y: np.ndarray) -> np.ndarray:
        """How far labels [R] are from their prediction, in units of their variance."""
        coefficients = self.solve(y)
        return self.precision * (y - np.concatenate([block @ coefficients for _, block in self.blocks()]))

    @property
    def variance(self) -> np.ndarray:
        """Variance [R] of each label around its prediction from the others."""
        leverage = self.precision * squared_norms(self.factor[0], self.blocks())
        return 1 / (self.precision * (1 - leverage).clip(min=0.001))


def squared_norms(lower: np.ndarray, blocks: Iterator[tuple[slice, np.ndarray]]) -> np.ndarray:
    """Squared norms [R] of the rows of blocks, multiplied by the inverse of a lower triangular matrix."""
    products = (scipy.linalg.solve_triangular(lower, block.T, lower=True) for _, block in blocks)
    return np.concatenate([(each**2).sum(axis=0) for each in products])


def completed(compared: Compared, labels: Labels, learnt: np.ndarray) -> Labels:
    """The labels with values in place of the bounds of the molecules ``learnt``, from their labels only.

    A process predicts each molecule from all others (Rasmussen and Williams, section 5.4.2); a bound becomes the mean
    of this normal distribution beyond it (Buckley and James, Biometrika 1979)."""
    if labels.bounds is None:
        return labels
    y = labels.y.copy()
    for place in range(y.shape[1]):
        target = labels.take(learnt).target(place)
        assert target.bounds is not None
        rows = learnt[(~np.isnan(target.y) | is_bounded(target.y, target.bounds)) & (target.weight > 0)]
        exact = ~np.isnan(y[rows, place])
        if exact.any() and not exact.all():
            y[rows, place] = imputed(compared, rows, labels.take(rows).target(place))
    return replace(labels, y=np.where(np.isnan(labels.y), limited(y, labels.task.limits), y), bounds=None)


def imputed(compared: Compared, rows: np.ndarray, target: Target) -> np.ndarray:
    """The labels [R] of molecules with the indices ``rows``, some of which are censored."""
    assert target.bounds is not None
    weights, noise = learn_weights(compared, rows, target)
    if compared.with_all:
        inverse = np.linalg.inv(compared.mixed_among(rows, weights) + np.diag(noise * noise_factors(target.weight)))
        variance, rest_of = 1 / np.diag(inverse), lambda y: inverse @ y
    else:
        process = Landmarks.of(compared, rows, weights, noise, target)
        variance, rest_of = process.variance, process.rest
    bounded, (low, high) = np.isnan(target.y), target.bounds.T
    values = np.where(bounded, np.where(np.isfinite(low), low, high), target.y)
    for _ in range(IMPUTED):
        y, mean, deviation = standardized(values, target.weight)
        without = mean + deviation * (y - variance * rest_of(y))  # what the other labels predict
        values = np.where(bounded, Censored(target.bounds, without, deviation * np.sqrt(variance)).expected, target.y)
    return values
