"""Hypervolumes by hand, and expectations by sampling."""

import numpy as np
import pytest

from graphormer_sepnorm.predict.predictors import Predictions
from graphormer_sepnorm.project.judge import Goal, Hypervolume, boxes_beyond

INF = np.inf


def volume_taken(point, front, reference) -> float:
    """The volume between a reference and a point that no point of the front dominates, on a grid of cells of size 1."""
    cells = np.stack(np.meshgrid(*(np.arange(low, 12) for low in reference), indexing="ij"), axis=-1)
    cells = cells.reshape(-1, len(reference)) + 0.5
    taken = (cells < point).all(axis=1)
    return float((taken & ~(cells[:, None] < front).all(axis=2).any(axis=1)).sum())


@pytest.mark.parametrize("axes", [2, 3])
def test_boxes_are_what_no_point_dominates(axes):
    random = np.random.default_rng(axes)
    for count in (0, 1, 2, 7):
        front, reference = random.integers(0, 10, (count, axes)).astype(float), np.full(axes, 1.0)
        low, high = boxes_beyond(front, reference)
        for point in random.integers(2, 12, (5, axes)).astype(float):
            parts = (np.minimum(high, point) - low).clip(0).prod(axis=1)
            assert parts.sum() == volume_taken(point, front, reference)


def test_the_expectation_is_that_of_samples():
    """The first number is to be high, the second low; the front has two molecules."""
    goals = (Goal("a", "target", 0, 8, INF, 5, INF), Goal("b", "target", 1, -INF, 1, -INF, 3))
    low, high = boxes_beyond(np.array([[7.0, -2.0], [6.0, -1.0]]), np.array([5.0, -3.0]))
    volume = Hypervolume(goals, np.array([1.0, -1.0]), low, high)
    values, spread = np.array([[7.5, 1.5], [6.0, 2.5], [np.nan, np.nan], [4.0, 4.0]]), np.array([[0.5, 0.8]] * 4)
    found = volume.improvement(Predictions(values, spread, [""] * 4, [""] * 4))
    assert np.isnan(found[2])
    drawn = np.random.default_rng(0).normal(size=(200_000, 2))
    for row in (0, 1, 3):
        points = (values[row] + spread[row] * drawn) * [1, -1]
        parts = (np.minimum(high, points[:, None]) - low).clip(0).prod(axis=2).sum(axis=1)
        assert found[row] == pytest.approx(parts.mean(), rel=0.02, abs=1e-3)
    certain = Predictions(np.array([[8.0, 1.0]]), np.zeros((1, 2)), [""], [""])
    assert volume.improvement(certain) == pytest.approx([3 * 2 - 3])  # the front has 2 x 1 + 1 x 2 - 1 x 1
