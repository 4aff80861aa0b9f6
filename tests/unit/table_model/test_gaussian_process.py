"""The marginal likelihood: as scipy has it, its gradient, and what is learnt by it."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal

from graphormer_sepnorm.table_model.machines import FAILED, Likelihood

PRIOR = np.array([0.5, 0.3, 0.05])


def likelihood(seed: int = 0, count: int = 30) -> Likelihood:
    random = np.random.default_rng(seed)
    points = random.normal(size=(2, count, 3))
    kernels = np.exp(-((points[:, :, None] - points[:, None]) ** 2).sum(axis=3) / 8)
    return Likelihood(kernels, random.normal(size=count), random.uniform(0.5, 2, count), PRIOR)


def test_it_is_the_density_of_a_normal_distribution_and_of_the_prior():
    found = likelihood()
    parameters = np.array([0.4, 0.6, 0.1])
    covariance = 0.4 * found.kernels[0] + 0.6 * found.kernels[1] + 0.1 * np.diag(found.spread)
    density = multivariate_normal(np.zeros(30), covariance).logpdf(found.y)
    prior = (np.log(parameters / PRIOR) ** 2).sum() / (2 * 0.3**2)
    assert found(np.log(parameters))[0] == pytest.approx(prior - density - 15 * np.log(2 * np.pi))


@pytest.mark.parametrize("seed", range(3))
def test_its_gradient_is_that_of_finite_differences(seed):
    found = likelihood(seed)
    place = np.log([0.3, 0.4, 0.1])
    gradient = found(place)[1]
    assert check_grad(lambda at: found(at)[0], lambda at: found(at)[1], place) < 1e-5 * np.linalg.norm(gradient)


def test_a_covariance_that_is_none_is_no_likelihood():
    wrong = Likelihood(-np.eye(3)[None], np.zeros(3), np.ones(3), np.array([1.0, 0.1]))
    value, gradient = wrong(np.zeros(2) - [0, 5])
    assert value == FAILED and (gradient == 0).all()
