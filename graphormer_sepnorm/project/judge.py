"""Desirability, probability of success, Pareto rank and expected hypervolume improvement of M molecules by G goals.

The improvement is by how much a molecule moves the front of two or three criteria (Zitzler and Thiele, 1999; Yang et
al., J. Global Optim. 2019): K objectives, P points of a front, B boxes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Literal

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.output.column import PredictedColumn, given
from graphormer_sepnorm.predict.acquisition import expected_improvement
from graphormer_sepnorm.predict.predictors import PredictingModel, Predictions, known_intervals

Kind = Literal["target", "probability", "class", "property", "alerts"]
ALERTS = "alerts"
PROBABILITY = "probability_of_success"
POINTS, ROWS_AT_ONCE = 1024, 256  # of a joint probability
ROWS_OF_VOLUME = 1024
FEWEST, MOST = 2, 3  # objectives of a hypervolume
LEAST_DEVIATION = 1e-12


@dataclass(frozen=True)
class Goal:
    name: str
    of: Kind
    place: int  # number of the target or property
    low: float  # infinite: no limit
    high: float
    zero_low: float  # where the desirability is 0
    zero_high: float
    weight: float = 1.0
    owner: tuple[PredictingModel, int] | None = None  # the model of a target, and its number there

    def values(self, predictions: Predictions) -> np.ndarray:
        if self.of == "property":
            return given(predictions.properties)[:, self.place]
        values = predictions.values[:, self.place].astype(np.float64)
        if self.of == "alerts":
            counts = [text.count("; ") + bool(text) for text in given(predictions.alerts)]
            return np.where(np.isnan(values), np.nan, np.array(counts, np.float64))
        return values

    def desirability(self, values: np.ndarray) -> np.ndarray:
        """1 within the limits, 0 from the zeros on, linear between: float64 [M]."""
        desirable = np.where(np.isnan(values), np.nan, 1.0)
        if np.isfinite(self.low):
            desirable = np.minimum(desirable, ((values - self.zero_low) / (self.low - self.zero_low)).clip(0, 1))
        if np.isfinite(self.high):
            desirable = np.minimum(desirable, ((self.zero_high - values) / (self.zero_high - self.high)).clip(0, 1))
        return desirable

    def ends(self, predictions: Predictions) -> tuple[np.ndarray, np.ndarray]:
        """The limits in standard deviations of the error of a target from its prediction: float64 [M] each."""
        deviation = np.maximum(predictions.spread[:, self.place].astype(np.float64), LEAST_DEVIATION)
        values = self.values(predictions)
        return (self.low - values) / deviation, (self.high - values) / deviation

    def probability(self, predictions: Predictions) -> np.ndarray:
        """The probability that the criterion holds: float64 [M]; 0 or 1 for values that are known without an error."""
        from scipy.special import ndtr  # its import takes a while

        values = self.values(predictions)
        if self.of == "target":
            low, high = self.ends(predictions)
            return ndtr(high) - ndtr(low)
        if self.of == "class":
            return self.desirability(values)
        return np.where(np.isnan(values), np.nan, (self.low <= values) & (values <= self.high))


@dataclass(frozen=True, eq=False)
class Judge:
    """The judge: labels are normal around predictions, errors of one model's targets correlate as out of fold."""

    goals: tuple[Goal, ...]
    correlation: np.ndarray  # float64 [G, G], of errors; 0 where it is unknown
    independent: tuple[tuple[str, str], ...] = ()  # pairs of targets whose correlation is unknown

    @classmethod
    def of(cls, goals: tuple[Goal, ...]) -> "Judge":
        """The judge by some goals; raises InputError if a model has no intervals for goals on its targets."""
        correlation, independent = np.eye(len(goals)), []
        owners = [(place, *goal.owner) for place, goal in enumerate(goals) if goal.of == "target" and goal.owner]
        correlations = {id(model): known_intervals(model).correlation for _, model, _ in owners}
        for (one, model, row), (other, its, column) in combinations(owners, 2):
            if its is model and len(matrix := correlations[id(model)]):
                correlation[one, other] = correlation[other, one] = matrix[row, column]
            else:
                independent.append((goals[one].name, goals[other].name))
        return cls(goals, correlation, tuple(independent))

    def columns(self, is_whole: bool) -> list[PredictedColumn]:
        cells: dict[str, Callable] = {"desirability": self.desirability, PROBABILITY: self.probability}
        if is_whole:
            cells["pareto_rank"] = lambda predictions: pareto_ranks(self.desirabilities(predictions))
        numbers = [PredictedColumn(name, cells=of) for name, of in cells.items()]
        return [*numbers, PredictedColumn("weakest", "text", cells=self.weakest)]

    def desirabilities(self, predictions: Predictions) -> np.ndarray:
        return np.stack([goal.desirability(goal.values(predictions)) for goal in self.goals], axis=1)

    def desirability(self, predictions: Predictions) -> np.ndarray:
        """Weighted geometric mean [M] of the desirabilities by goal (Derringer and Suich, 1980)."""
        weights = np.array([goal.weight for goal in self.goals])
        with np.errstate(divide="ignore"):
            return np.exp(np.log(self.desirabilities(predictions)) @ (weights / weights.sum()))

    def probability(self, predictions: Predictions) -> np.ndarray:
        from scipy.sparse.csgraph import connected_components  # its import takes a while

        chances = np.stack([goal.probability(predictions) for goal in self.goals], axis=1)
        count, group = connected_components(self.correlation != 0)
        for block in (np.flatnonzero(group == number) for number in range(count)):
            if len(block) > 1:
                low, high = np.stack([self.goals[place].ends(predictions) for place in block], axis=2)
                chances[:, block] = 1
                chances[:, block[0]] = joint_probability(low, high, self.correlation[np.ix_(block, block)])
        return chances.prod(axis=1)

    def weakest(self, predictions: Predictions) -> list[str]:
        """The name of the criterion that fails most probably: M texts, "" if none can fail, or without a prediction."""
        chances = np.stack([goal.probability(predictions) for goal in self.goals], axis=1)
        names = np.array([goal.name for goal in self.goals], object)
        return np.where(chances.min(axis=1) < 1, names[chances.argmin(axis=1)], "").tolist()


def joint_probability(low: np.ndarray, high: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """P(low < normals < high) [M], from [M, G], by the same quasi-random points for all (Genz, 1992)."""
    from scipy.special import ndtr, ndtri  # their import takes a while
    from scipy.stats.qmc import Sobol

    count, root = len(correlation), np.linalg.cholesky(correlation)
    points = Sobol(count - 1, scramble=False).random(POINTS).T + 0.5 / POINTS
    parts = []
    for start in range(0, len(low), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        product, drawn = np.ones((len(low[rows]), POINTS)), np.zeros((count, len(low[rows]), POINTS))
        for place in range(count):
            shift = np.tensordot(root[place, :place], drawn[:place], axes=1)
            below, above = (ndtr((end[rows, place, None] - shift) / root[place, place]) for end in (low, high))
            product *= above - below
            if place < count - 1:
                inside = below + points[place] * (above - below)
                drawn[place] = ndtri(inside.clip(np.finfo(float).tiny, 1 - np.finfo(float).eps))
        parts.append(product.mean(axis=1))
    return np.concatenate([np.empty(0), *parts])


def pareto_ranks(scores: np.ndarray) -> np.ndarray:
    """Pareto ranks [M] from 1 on of scores [M, G], higher is better, NaN where one is (Zhang et al., 2015)."""
    numbers, complete = np.full(len(scores), np.nan), ~np.isnan(scores).any(axis=1)
    rows, inverse = np.unique(-scores[complete], axis=0, return_inverse=True)  # none is dominated by one that follows
    fronts: list[list[int]] = []
    ranks = np.zeros(len(rows))
    for number, row in enumerate(rows):
        free = (place for place, front in enumerate(fronts) if not (rows[front] <= row).all(axis=1).any())
        rank = next(free, len(fronts))
        fronts += [[]] * (rank == len(fronts))
        fronts[rank] = [*fronts[rank], number]
        ranks[number] = rank + 1
    numbers[complete] = ranks[inverse.ravel()]
    return numbers


@dataclass(frozen=True, eq=False)
class Hypervolume:
    """The volume that no measured molecule dominates, in boxes, and how much of it a molecule is expected to take."""

    goals: tuple[Goal, ...]
    signs: np.ndarray  # float64 [K], -1 to minimize
    low: np.ndarray  # float64 [B, K], ends of the boxes beyond the front
    high: np.ndarray

    @classmethod
    def of(cls, goals: Sequence[Goal]) -> "Hypervolume":
        """The volume between targets' zeros and training labels; raises InputError without 2 or 3 fit goals."""
        chosen = [goal for goal in goals if goal.of == "target" and np.isfinite(goal.low) != np.isfinite(goal.high)]
        owners = {id(goal.owner[0]): goal.owner[0] for goal in chosen if goal.owner}
        if not FEWEST <= len(chosen) <= MOST or len(owners) != 1:
            needed = f"{FEWEST} or {MOST} criteria with one limit on targets of one model"
            problem = f"{len(chosen)} such criteria on {len(owners)} models"
            raise InputError(f"--by hypervolume needs {needed}; the profile has {problem}")
        trust = next(iter(owners.values())).trust
        if trust is None or trust.rows is None:
            raise InputError("--by hypervolume needs a model that keeps its training labels")
        signs = np.where([np.isfinite(goal.low) for goal in chosen], 1.0, -1.0)
        zeros = [goal.zero_low if sign > 0 else goal.zero_high for goal, sign in zip(chosen, signs, strict=True)]
        labels = trust.rows.labels[:, [goal.owner[1] for goal in chosen if goal.owner]]
        front = signs * labels[~np.isnan(labels).any(axis=1)]
        return cls(tuple(chosen), signs, *boxes_beyond(front, signs * np.array(zeros)))

    def improvement(self, predictions: Predictions) -> np.ndarray:
        """The expected improvement, with independent errors: float64 [M], NaN for what could not be read."""
        mean = np.stack([goal.values(predictions) for goal in self.goals], axis=1) * self.signs
        deviation = np.stack([predictions.spread[:, goal.place] for goal in self.goals], axis=1).astype(np.float64)
        is_open, parts = np.isinf(self.high), [np.empty(0)]
        for start in range(0, len(mean), ROWS_OF_VOLUME):
            rows = slice(start, start + ROWS_OF_VOLUME)
            above_low = expected_improvement(mean[rows, None] - self.low, deviation[rows, None])
            above_high = expected_improvement(mean[rows, None] - np.where(is_open, 0, self.high), deviation[rows, None])
            parts.append((above_low - np.where(is_open, 0, above_high)).prod(axis=2).sum(axis=1))
        return np.concatenate(parts)


def boxes_beyond(points: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Disjoint boxes [B, K] of what is above a reference [K] and below no point [P, K]; higher is better."""
    points = points[(points > reference).all(axis=1)]
    *_, last = reference
    if len(reference) == 1:
        return np.array([[points.max(initial=last)]]), np.array([[np.inf]])
    levels = [np.inf, *np.unique(points[:, -1])[::-1].tolist(), last]
    lows, highs = [], []
    for upper, lower in pairwise(levels):
        low, high = boxes_beyond(points[points[:, -1] >= upper, :-1], reference[:-1])
        lows.append(np.column_stack([low, np.full(len(low), lower)]))
        highs.append(np.column_stack([high, np.full(len(high), upper)]))
    return np.concatenate(lows), np.concatenate(highs)
