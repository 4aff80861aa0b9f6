"""Desirabilities, probabilities, Pareto ranks and hypervolumes by hand, and expectations by sampling."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from graphormer_sepnorm.predict.predictors import Predictions
from graphormer_sepnorm.project.judge import Goal, Hypervolume, Judge, boxes_beyond, joint_probability, pareto_ranks

INF = np.inf


def found(values, spread=0.5, alerts=None, properties=None) -> Predictions:
    values = np.array(values, np.float64)
    whole = np.full(values.shape, spread)
    return Predictions(values, whole, [""] * len(values), [""] * len(values), alerts=alerts, properties=properties)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((8, INF, 6, INF), {5: 0, 6: 0, 7: 0.5, 8: 1, 9: 1}),
        ((-INF, 1, -INF, 3), {0: 1, 1: 1, 1.5: 0.75, 3: 0, 4: 0}),
        ((1, 3, 0, 7), {-1: 0, 0.5: 0.5, 1: 1, 3: 1, 4: 0.75, 6: 0.25, 8: 0}),
    ],
)
def test_a_desirability_is_a_ramp(ends, expected):
    goal = Goal("a", "target", 0, *ends)
    assert goal.desirability(np.array(list(expected), np.float64)).tolist() == list(expected.values())
    assert np.isnan(goal.desirability(np.array([np.nan]))).all()


def test_desirabilities_are_multiplied_with_weights():
    """0.5 with weight 2 and 0.25 with weight 1: the third root of 1/16."""
    goals = (Goal("a", "target", 0, 8, INF, 6, INF, 2), Goal("b", "target", 1, -INF, 1, -INF, 3))
    asked = found([[7, 2.5], [9, 0], [6, 0], [np.nan, np.nan]])
    assert Judge(goals, np.eye(2)).desirability(asked)[:3] == pytest.approx([(1 / 16) ** (1 / 3), 1, 0])
    assert np.isnan(Judge(goals, np.eye(2)).desirability(asked)[3])


def test_independent_criteria_hold_with_the_product_of_their_probabilities():
    """A number within limits, a class, a probability that is known, a property and the number of alerts."""
    goals = (
        Goal("a", "target", 0, 1, 3, 0, 4),
        Goal("b", "class", 1, 1, INF, 0, INF),
        Goal("c", "probability", 2, 0.5, INF, 0, INF),
        Goal("MolWt", "property", 0, -INF, 300, -INF, 400),
        Goal("alerts", "alerts", 0, -INF, 1, -INF, 3),
    )
    values = [[1.5, 0.8, 0.6]] * 5 + [[np.nan] * 3]
    values[1] = [1.5, 0.8, 0.4]
    properties = np.array([[300.0], [200], [301], [200], [200], [np.nan]])
    asked = found(values, 0.5, ["x: a", "", "", "x: a; y: b", "x: a", ""], properties)
    judge, chance = Judge(goals, np.eye(5)), 0.8 * (norm.cdf(3) - norm.cdf(-1))
    probabilities = judge.probability(asked)
    assert probabilities[:5] == pytest.approx([chance, 0, 0, 0, chance]) and np.isnan(probabilities[5])
    assert judge.weakest(asked) == ["b", "c", "MolWt", "alerts", "b", ""]
    assert judge.desirability(asked)[0] == pytest.approx(0.8**0.2)


def test_correlated_criteria_hold_together_more_often():
    goals = (Goal("a", "target", 0, 1, INF, 0, INF), Goal("b", "target", 1, 1, INF, 0, INF))
    correlation = np.array([[1, 0.6], [0.6, 1]])
    both = multivariate_normal.cdf([0.0, 0.0], cov=correlation)
    assert both == pytest.approx(0.25 + np.arcsin(0.6) / (2 * np.pi), abs=1e-4)  # Sheppard's formula
    assert Judge(goals, correlation).probability(found([[1, 1]]))[0] == pytest.approx(both, abs=1e-3)
    assert Judge(goals, np.eye(2)).probability(found([[1, 1]]))[0] == pytest.approx(0.25)


def test_joint_probabilities_are_those_of_scipy():
    random = np.random.default_rng(0)
    low, high = random.normal(-1, 1, (6, 4)), random.normal(1.5, 1, (6, 4))
    high[:, 2], low[:3, 0] = INF, -INF
    low = np.minimum(low, high)
    root = random.normal(size=(4, 6))
    covariance = root @ root.T
    size = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(size, size)
    expected = [multivariate_normal.cdf(h, cov=correlation, lower_limit=l) for l, h in zip(low, high, strict=True)]  # noqa: E741
    assert joint_probability(low, high, correlation) == pytest.approx(expected, abs=2e-3)
    assert np.isnan(joint_probability(np.full((1, 4), np.nan), np.full((1, 4), np.nan), correlation)).all()


def test_pareto_ranks_are_those_of_repeated_search():
    scores = np.random.default_rng(1).integers(0, 6, (80, 3)).astype(np.float64)
    scores[7] = np.nan
    expected, rank = np.full(80, np.nan), 0
    left = set(range(80)) - {7}

    def is_dominated(one: int) -> bool:
        return any((scores[a] >= scores[one]).all() and (scores[a] > scores[one]).any() for a in left)

    while left:
        rank += 1
        best = {one for one in left if not is_dominated(one)}
        expected[list(best)] = rank
        left -= best
    assert np.array_equal(pareto_ranks(scores), expected, equal_nan=True) and rank > 3
    assert pareto_ranks(np.empty((0, 2))).tolist() == []


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
