"""Gaussian process on a weighted sum of kernels, with weights and noise from the marginal likelihood.

scikit-learn's GaussianProcessRegressor accepts no kernel matrices. Source: Rasmussen and Williams, "Gaussian processes
for machine learning", 2006, sections 2.2 and 5.4. Axis letters: P kernels, N molecules."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

DEVIATION = 0.3  # standard deviation of the prior of the logarithms of weights and noise
STEPS = 10  # iterations of the optimizer
FAILED = 1e10  # value for a covariance that is not positive definite


@dataclass(frozen=True)
class Likelihood:
    """Negative log marginal likelihood of the labels plus the negative log prior of the parameters."""

    kernels: np.ndarray  # float64 [P, N, N]
    y: np.ndarray  # float64 [N], with mean 0 and standard deviation 1
    spread: np.ndarray  # float64 [N], factor of the noise of each label
    prior: np.ndarray  # float64 [P + 1], prior weights of the kernels and prior noise

    def __call__(self, logarithms: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient [P + 1] at the logarithms of weights and noise [P + 1]."""
        from scipy.linalg import lapack  # its import takes a while

        parameters = np.exp(logarithms)
        factor, failed = lapack.dpotrf(self.covariance(parameters), lower=1)
        if failed:
            return FAILED, np.zeros_like(logarithms)
        lower = np.tril(lapack.dpotri(factor, lower=1)[0])
        inverse = lower + np.tril(lower, -1).T
        coefficients = inverse @ self.y
        rest = inverse - np.outer(coefficients, coefficients)
        slopes = [*(np.vdot(rest, kernel) for kernel in self.kernels), np.diag(rest) @ self.spread]
        offset = (logarithms - np.log(self.prior)) / DEVIATION
        value = 0.5 * (self.y @ coefficients + offset @ offset) + np.log(np.diag(factor)).sum()
        return value, 0.5 * parameters * np.array(slopes) + offset / DEVIATION

    def covariance(self, parameters: np.ndarray) -> np.ndarray:
        return np.tensordot(parameters[:-1], self.kernels, 1) + np.diag(parameters[-1] * self.spread)

    def most_likely(self) -> np.ndarray:
        from scipy.optimize import minimize  # its import takes a while

        found = minimize(self, np.log(self.prior), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
        return np.exp(found.x)


def solve_process(covariance: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Coefficients [N] of a process's mean, from the covariance [N, N] and the centered labels [N]."""
    from scipy.linalg import cho_factor, cho_solve

    return cho_solve(cho_factor(covariance, lower=True), y)


def unexplained(prior: np.ndarray, blocks: Iterable[tuple[slice, np.ndarray]], variance: float) -> np.ndarray:
    """The variance [R] that landmarks do not explain, treated as noise (Snelson and Ghahramani, NeurIPS 2005)."""
    from scipy.linalg import cholesky, solve_triangular  # their import takes a while

    factor = cholesky(prior, lower=True)
    explained = [(solve_triangular(factor, block.T, lower=True) ** 2).sum(axis=0) for _, block in blocks]
    return (variance - np.concatenate(explained)).clip(min=0)


def factor_landmarks(
    prior: np.ndarray, blocks: Iterable[tuple[slice, np.ndarray]], precision: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Cholesky factor, as ``cho_factor``, of the equations for the coefficients [N] of a process on landmarks."""
    from scipy.linalg import cho_factor  # its import takes a while

    total = prior.copy()
    for part, block in blocks:
        total += block.T @ (block * precision[part, None])
    return cho_factor(total, lower=True, overwrite_a=True)
