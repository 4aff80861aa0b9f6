"""Expected hypervolume improvement: by how much a molecule moves the front of two or three conflicting criteria.

Sources: Zitzler and Thiele, "Multiobjective evolutionary algorithms", IEEE Trans. Evol. Comput. 1999; the formula of
the expectation: Yang et al., "Efficient computation of expected hypervolume improvement using box decomposition
algorithms", J. Global Optim. 2019.

Axis letters: M molecules, K objectives, P points of a front, B boxes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.acquisition import expected_improvement
from graphormer_sepnorm.predict.predictors import Predictions
from graphormer_sepnorm.project.judge import Goal

ROWS_AT_ONCE = 1024
FEWEST, MOST = 2, 3  # objectives


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
            raise InputError(
                f"--by hypervolume needs {FEWEST} or {MOST} criteria with one limit on targets of one model; the "
                f"profile has {len(chosen)} such criteria on {len(owners)} models"
            )
        trust = next(iter(owners.values())).trust
        if trust is None or trust.rows is None:
            raise InputError("--by hypervolume needs a model that keeps its training labels")
        signs = np.where([np.isfinite(goal.low) for goal in chosen], 1.0, -1.0)
        zeros = [goal.zero_low if sign > 0 else goal.zero_high for goal, sign in zip(chosen, signs, strict=True)]
        labels = trust.rows.labels[:, [goal.owner[1] for goal in chosen if goal.owner]]
        front = signs * labels[~np.isnan(labels).any(axis=1)]
        return cls(tuple(chosen), signs, *boxes_beyond(front, signs * np.array(zeros)))

    def improvement(self, found: Predictions) -> np.ndarray:
        """The expected improvement, with independent errors: float64 [M], NaN for what could not be read."""
        mean = np.stack([goal.values(found) for goal in self.goals], axis=1) * self.signs
        deviation = np.stack([found.spread[:, goal.place] for goal in self.goals], axis=1).astype(np.float64)
        is_open, parts = np.isinf(self.high), [np.empty(0)]
        for start in range(0, len(mean), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            above_low, above_high = (
                expected_improvement(mean[rows, None] - ends, deviation[rows, None])
                for ends in (self.low, np.where(is_open, 0, self.high))
            )
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
