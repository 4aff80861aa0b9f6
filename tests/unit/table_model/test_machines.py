"""Machines on similarities, as scikit-learn and plain linear algebra have them."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal, norm
from sklearn.svm import SVR

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model import machines
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.machines import JITTER, NOISE, Compared, Likelihood, fit_machines
from graphormer_sepnorm.table_model.reference import SHARES

NUMBER = TaskConfig("regression", "rmse", ("y",))


def similarities(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Gaussians of three widths: [M, 3, N]."""
    squares = ((first[:, None] - second) ** 2).sum(axis=2)
    return np.exp(-squares[:, None] / np.array([1.0, 4.0, 9.0])[:, None]).astype(np.float32)


def points(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 2))


def fitted(similarities: np.ndarray, labels: Labels) -> machines.Machines:
    """Machines on molecules that are all compared with each other and all learnt from."""
    every = np.arange(len(similarities))
    return fit_machines(Compared(similarities, every), labels, every)


def test_numbers_are_the_mean_of_both_machines():
    """Nine molecules are too few to learn weights from, so that those of the prior count."""
    known, asked = points(9), points(4, 1)
    y = 10 + 3 * np.random.default_rng(2).normal(size=9)
    kernel, new = (np.einsum("mgn,g->mn", similarities(each, known), SHARES) for each in (known, asked))
    z = (y - y.mean()) / y.std()
    vectors = SVR(kernel="precomputed", C=5, epsilon=0.05).fit(kernel, z).predict(new)
    process = new @ np.linalg.solve(kernel + NOISE * np.eye(9), z)
    found = fitted(similarities(known, known), Labels(NUMBER, y[:, None]))(similarities(asked, known))
    np.testing.assert_allclose(found[:, 0], y.mean() + y.std() * (vectors + process) / 2, rtol=1e-4)


def test_a_group_that_explains_the_labels_gains_weight():
    known = points(100)
    narrow = similarities(known, known)
    narrow[:, 1:] = np.eye(100, dtype=np.float32)[:, None]
    found = fitted(narrow, Labels(NUMBER, known.sum(axis=1, keepdims=True)))
    gain = found.weights[:, 0] / SHARES
    assert gain[0] > 1 > gain[1:].max()


def test_molecules_of_weight_0_are_not_learnt_from():
    known, y = points(12), points(12, 3)
    none = Labels(TaskConfig("regression", "rmse", ("a", "b")), y, weight=np.zeros(12))
    assert (fitted(similarities(known, known), none)(similarities(known, known)) == 0).all()
    weight = np.repeat([1.0, 0.0], 6)
    part = fitted(similarities(known[:6], known[:6]), Labels(NUMBER, y[:6, :1]))(similarities(known, known[:6]))
    found = fitted(similarities(known, known), Labels(NUMBER, y[:, :1], weight=weight))
    np.testing.assert_allclose(found(similarities(known, known)), part, rtol=1e-6)


def test_what_is_not_learnt_from_does_not_matter():
    known, y, learnt = points(30), points(30, 5)[:, :1], np.arange(5, 30)
    asked = points(6, 6)
    part = fitted(similarities(known[5:], known[5:]), Labels(NUMBER, y[5:]))(similarities(asked, known[5:]))
    whole = fit_machines(Compared(similarities(known, known), np.arange(30)), Labels(NUMBER, y), learnt)
    assert (whole.coefficients[:5] == 0).all()
    np.testing.assert_allclose(whole(similarities(asked, known)), part, rtol=1e-6)


@pytest.mark.parametrize("balance", [False, True])
def test_classes_are_learnt_as_two_numbers(balance):
    """Nine molecules, of which three are of class 1; balanced, these three count as much as the six."""
    known, asked = points(9), points(4, 1)
    y = np.array([1.0, 1, 1, 0, 0, 0, 0, 0, 0])
    kernel, new = (np.einsum("mgn,g->mn", similarities(each, known), SHARES) for each in (known, asked))
    weight = np.where(y == 1, 2.0, 1.0) if balance else np.ones(9)
    mean = np.average(2 * y - 1, weights=weight)
    noise = NOISE * np.diag(weight.mean() / weight)
    task = TaskConfig("classification", "rocauc", ("y",), balance=balance)
    found = fitted(similarities(known, known), Labels(task, y[:, None]))(similarities(asked, known))[:, 0]
    expected = mean + new @ np.linalg.solve(kernel + noise, 2 * y - 1 - mean)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_landmarks_are_a_process_whose_covariance_is_theirs(monkeypatch):
    """What five landmarks do not explain of nine molecules is noise: the same formula, with matrices of the nine."""
    monkeypatch.setattr(machines, "ROWS_AT_ONCE", 4)
    known, asked, numbers = points(9), points(4, 1), np.array([0, 2, 3, 5, 8])
    y = 10 + 3 * np.random.default_rng(2).normal(size=9)
    kernel, new = (np.einsum("mgn,g->mn", similarities(each, known[numbers]), SHARES) for each in (known, asked))
    inverse = np.linalg.inv(kernel[numbers] + JITTER * np.eye(5))
    explained = kernel @ inverse @ kernel.T
    noise = np.diag(NOISE + 1 - np.diag(explained))
    expected = y.mean() + new @ inverse @ kernel.T @ np.linalg.solve(explained + noise, y - y.mean())
    labels = Labels(NUMBER, y[:, None])
    compared = Compared(similarities(known, known[numbers]), numbers)
    found = fit_machines(compared, labels, np.arange(9))(similarities(asked, known[numbers]))
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-5)


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


NAN, INF = np.nan, np.inf


def hidden(y: np.ndarray, limit: np.ndarray | float) -> Labels:
    """Labels [M, 1] that are bounds above a limit."""
    bounds = np.stack([np.where(y > limit, limit, -INF), np.full_like(y, INF)], axis=2)
    return Labels(NUMBER, np.where(y > limit, NAN, y), bounds)


def compared(known: np.ndarray, numbers: np.ndarray | None = None) -> Compared:
    numbers = np.arange(len(known)) if numbers is None else numbers
    return Compared(similarities(known, known[numbers]), numbers)


@pytest.mark.parametrize("numbers", [np.arange(9), np.array([0, 2, 3, 5, 8])], ids=["all", "landmarks"])
def test_a_bound_becomes_what_the_other_labels_lead_to_expect(numbers):
    """Nine molecules are too few to learn weights from. The last label is the mean of the others' process above it."""
    known = points(9)
    y = np.append(10 + 3 * np.random.default_rng(2).normal(size=8), 12.0)[:, None]
    labels = Labels(NUMBER, np.where(np.arange(9)[:, None] == 8, NAN, y), np.tile([-INF, INF], (9, 1, 1)))
    labels.bounds[8, 0, 0] = 12
    found = machines.completed(compared(known, numbers), labels, np.arange(9)).y[:, 0]
    kernel = np.einsum("mgn,g->mn", similarities(known, known), SHARES)
    if len(numbers) < 9:
        part = kernel[:, numbers]
        explained = part @ np.linalg.solve(kernel[np.ix_(numbers, numbers)] + JITTER * np.eye(5), part.T)
        kernel = explained + np.diag(1 - np.diag(explained))
    covariance = kernel + NOISE * np.eye(9)
    mean, deviation = found.mean(), found.std()
    weights = np.linalg.solve(covariance[:8, :8], covariance[:8, 8])
    centre = mean + weights @ (y[:8, 0] - mean)
    spread = deviation * np.sqrt(covariance[8, 8] - weights @ covariance[:8, 8])
    beyond = (12 - centre) / spread
    assert found[8] == pytest.approx(centre + spread * norm.pdf(beyond) / norm.sf(beyond), rel=1e-4)
    np.testing.assert_array_equal(found[:8], y[:8, 0])


def test_a_mirrored_table_has_mirrored_values():
    known, y = points(60), points(60, 3)[:, :1]
    above = hidden(y, 0.5)
    below = Labels(NUMBER, -above.y, -above.bounds[..., ::-1])
    found = [machines.completed(compared(known), each, np.arange(60)).y for each in (above, below)]
    np.testing.assert_allclose(found[0], -found[1], rtol=1e-6)


def test_labels_of_other_molecules_are_neither_read_nor_completed():
    known, y, learnt = points(40), points(40, 3)[:, :1], np.arange(10, 40)
    labels = hidden(y, 0.5)
    changed = Labels(NUMBER, labels.y.copy(), labels.bounds.copy())
    changed.y[:10], changed.bounds[:10] = 77.0, (-INF, INF)
    found = [machines.completed(compared(known), each, learnt).y for each in (labels, changed)]
    np.testing.assert_array_equal(found[0][10:], found[1][10:])
    assert np.isnan(found[0][:10][labels.bounded[:10]]).all() and np.isfinite(found[0][10:]).all()


def test_values_stay_within_the_limits_of_the_target():
    known, y = points(40), points(40, 3)[:, :1]
    task = TaskConfig("regression", "rmse", ("y",), limits=((-9.0, 0.75),))
    labels = hidden(y, 0.5)
    found = machines.completed(compared(known), Labels(task, labels.y, labels.bounds), np.arange(40)).y
    assert found.max() == 0.75 and (found[labels.bounded] >= 0.5).all()


def test_without_bounds_or_without_exact_labels_nothing_is_completed():
    known, plain = points(6), Labels(NUMBER, points(6)[:, :1])
    assert machines.completed(compared(known), plain, np.arange(6)) is plain
    assert np.isnan(machines.completed(compared(known), hidden(plain.y, -9.0), np.arange(6)).y).all()
