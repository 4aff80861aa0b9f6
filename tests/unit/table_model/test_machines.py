"""Machines on similarities, as scikit-learn and plain linear algebra have them."""

import numpy as np
from sklearn.svm import SVR

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.machines import NOISE, fit_machines, standardized
from graphormer_sepnorm.table_model.reference import SHARES

NUMBER = TaskConfig("regression", "rmse", ("y",))


def similarities(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Gaussians of three widths: [M, 3, N]."""
    squares = ((first[:, None] - second) ** 2).sum(axis=2)
    return np.exp(-squares[:, None] / np.array([1.0, 4.0, 9.0])[:, None]).astype(np.float32)


def points(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 2))


def test_numbers_are_the_mean_of_both_machines():
    """Nine molecules are too few to learn weights from, so that those of the prior count."""
    known, asked = points(9), points(4, 1)
    y = 10 + 3 * np.random.default_rng(2).normal(size=9)
    kernel, new = (np.einsum("mgn,g->mn", similarities(each, known), SHARES) for each in (known, asked))
    z = (y - y.mean()) / y.std()
    vectors = SVR(kernel="precomputed", C=5, epsilon=0.05).fit(kernel, z).predict(new)
    process = new @ np.linalg.solve(kernel + NOISE * np.eye(9), z)
    found = fit_machines(similarities(known, known), Labels(NUMBER, y[:, None]))(similarities(asked, known))
    np.testing.assert_allclose(found[:, 0], y.mean() + y.std() * (vectors + process) / 2, rtol=1e-4)


def test_a_group_that_explains_the_labels_gains_weight():
    known = points(100)
    narrow = similarities(known, known)
    narrow[:, 1:] = np.eye(100, dtype=np.float32)[:, None]
    found = fit_machines(narrow, Labels(NUMBER, known.sum(axis=1, keepdims=True)))
    gain = found.weights[:, 0] / SHARES
    assert gain[0] > 1 > gain[1:].max()


def test_a_molecule_of_no_weight_is_not_there():
    known, y = points(40), points(40, 3)[:, :1]
    twice = np.concatenate([known, known])
    weight = np.repeat([1.0, 1e-9], 40)
    asked = points(5, 4)
    plain = fit_machines(similarities(known, known), Labels(NUMBER, y))(similarities(asked, known))
    labels = Labels(NUMBER, np.concatenate([y, y + 9]), weight=weight)
    found = fit_machines(similarities(twice, twice), labels)(similarities(asked, twice))
    np.testing.assert_allclose(found, plain, atol=0.1)


def test_a_target_without_labels_is_0():
    known = points(12)
    y = np.stack([known[:, 0], np.full(12, np.nan)], axis=1)
    found = fit_machines(similarities(known, known), Labels(TaskConfig("regression", "rmse", ("a", "b")), y))
    predicted = found(similarities(known, known))
    assert (predicted[:, 1] == 0).all() and np.isfinite(predicted).all()


def test_order_does_not_matter():
    known, y, asked, order = points(30), points(30, 5)[:, :1], points(6, 6), np.random.default_rng(0).permutation(30)
    plain = fit_machines(similarities(known, known), Labels(NUMBER, y))(similarities(asked, known))
    again = fit_machines(similarities(known[order], known[order]), Labels(NUMBER, y[order]))
    np.testing.assert_allclose(again(similarities(asked, known[order])), plain, atol=2e-3)


def test_standardized_by_hand():
    z, mean, deviation = standardized(np.array([1.0, 5.0]), np.array([3.0, 1.0]))
    assert mean == 2 and deviation == np.sqrt(3) and z.tolist() == [-1 / np.sqrt(3), 3 / np.sqrt(3)]
    assert standardized(np.array([4.0, 4.0]), np.ones(2))[2] == 1
