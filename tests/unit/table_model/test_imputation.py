"""Values of censored labels, by hand and by their properties."""

import numpy as np
import pytest
from scipy.stats import norm

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.machines import JITTER, NOISE, Compared, completed
from graphormer_sepnorm.table_model.reference import SHARES
from tests.unit.table_model.test_machines import points, similarities

NAN, INF = np.nan, np.inf
NUMBER = TaskConfig("regression", "rmse", ("y",))


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
    found = completed(compared(known, numbers), labels, np.arange(9)).y[:, 0]
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
    found = [completed(compared(known), each, np.arange(60)).y for each in (above, below)]
    np.testing.assert_allclose(found[0], -found[1], rtol=1e-6)


def test_labels_of_other_molecules_are_neither_read_nor_completed():
    known, y, learnt = points(40), points(40, 3)[:, :1], np.arange(10, 40)
    labels = hidden(y, 0.5)
    changed = Labels(NUMBER, labels.y.copy(), labels.bounds.copy())
    changed.y[:10], changed.bounds[:10] = 77.0, (-INF, INF)
    found = [completed(compared(known), each, learnt).y for each in (labels, changed)]
    np.testing.assert_array_equal(found[0][10:], found[1][10:])
    assert np.isnan(found[0][:10][labels.bounded[:10]]).all() and np.isfinite(found[0][10:]).all()


def test_values_stay_within_the_limits_of_the_target():
    known, y = points(40), points(40, 3)[:, :1]
    task = TaskConfig("regression", "rmse", ("y",), limits=((-9.0, 0.75),))
    labels = hidden(y, 0.5)
    found = completed(compared(known), Labels(task, labels.y, labels.bounds), np.arange(40)).y
    assert found.max() == 0.75 and (found[labels.bounded] >= 0.5).all()


def test_without_bounds_or_without_exact_labels_nothing_is_completed():
    known, plain = points(6), Labels(NUMBER, points(6)[:, :1])
    assert completed(compared(known), plain, np.arange(6)) is plain
    assert np.isnan(completed(compared(known), hidden(plain.y, -9.0), np.arange(6)).y).all()
