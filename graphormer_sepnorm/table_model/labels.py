"""Labels that members are fitted to, and their division into folds. Axis letters: M molecules, T targets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.training_rows import FAR
from graphormer_sepnorm.tables.label_text import bounds_of
from graphormer_sepnorm.tables.labels import LabelledRow
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.censored import Censored, error_deviation, is_bounded


class CannotLearn(InputError):
    """A member cannot be fitted to a table and is left out."""


@dataclass(frozen=True)
class Labels:
    task: TaskConfig
    y: np.ndarray  # float64 [M, T], NaN where a label is missing or not known exactly
    bounds: np.ndarray | None = None  # float64 [M, T, 2], smallest and largest possible value of each label
    weight: np.ndarray | None = None  # float64 [M], sample weights; None: all are equal
    names: np.ndarray | None = None  # texts [M]

    def __len__(self) -> int:
        return len(self.y)

    @property
    def is_classification(self) -> bool:
        return TASKS[self.task.kind].predicts_probabilities

    def take(self, rows: np.ndarray) -> "Labels":
        kept = (None if part is None else part[rows] for part in (self.bounds, self.weight, self.names))
        return Labels(self.task, self.y[rows], *kept)

    def counting(self) -> "Labels":
        if self.weight is None:
            return self
        counts = self.weight[:, None] > 0
        bounds = None if self.bounds is None else np.where(counts[..., None], self.bounds, [-np.inf, np.inf])
        return replace(self, y=np.where(counts, self.y, np.nan), bounds=bounds)

    def expected(self, values: np.ndarray) -> np.ndarray:
        """The labels [M, T]; a censored one becomes its expectation around predictions, by the size of their errors."""
        if self.bounds is None:
            return self.y
        deviation = error_deviation(self.y, self.bounds, values)
        return np.where(self.bounded, Censored(self.bounds, values, deviation).expected, self.y)

    def error(self, values: np.ndarray, factor: float = 1.0) -> np.ndarray:
        """The errors [M, T] of predictions; of a censored label, their expected size, as ``expected``, by a factor."""
        error = self.y - values
        if self.bounds is None:
            return error
        deviation = factor * error_deviation(self.y, self.bounds, values)
        return np.where(self.bounded, Censored(self.bounds, values, deviation).absolute_error, error)

    @property
    def bounded(self) -> np.ndarray:
        return np.zeros(self.y.shape, bool) if self.bounds is None else is_bounded(self.y, self.bounds)

    def differences(self) -> "Labels":
        if not self.task.offset:
            return self
        offset = np.array(self.task.offset)
        bounds = None if self.bounds is None else self.bounds - offset[:, None]
        return replace(self, task=self.task.differences, y=self.y - offset, bounds=bounds)

    def target(self, place: int) -> "Target":
        bounds = None if self.bounds is None else self.bounds[:, place]
        return Target(self.y[:, place], bounds, np.ones(len(self)) if self.weight is None else self.weight)


def with_offset(task: TaskConfig) -> TaskConfig:
    """The task of a regression with an ``offset`` for labels that are far from 0, in standard deviations."""
    far = [abs(mean) > FAR * std for mean, std in zip(task.mean, task.std, strict=True)]
    offset = (float(round(mean)) if is_far else 0.0 for mean, is_far in zip(task.mean, far, strict=True))
    return replace(task, offset=tuple(offset)) if any(far) else task


def label_arrays(rows: Sequence[LabelledRow]) -> tuple[np.ndarray, np.ndarray | None]:
    """The labels [M, T] of table rows and their bounds [M, T, 2], as in ``Labels``."""
    y = np.array([row.labels for row in rows], np.float64)
    if not any(row.bounds for row in rows):
        return y, None
    return y, np.array([[bounds_of(row.bounds.get(place, "")) for place in range(y.shape[1])] for row in rows])


@dataclass(frozen=True)
class Target:
    y: np.ndarray  # float64 [M], NaN where a label is missing or not known exactly
    bounds: np.ndarray | None  # float64 [M, 2] as in ``Labels``, or None
    weight: np.ndarray  # float64 [M]


@dataclass(frozen=True)
class Folds:
    numbers: np.ndarray  # int64 [M], the fold that predicts each molecule; -1: it is only learnt, in every fold

    def __len__(self) -> int:
        return int(self.numbers.max(initial=-1)) + 1

    @property
    def predicted(self) -> np.ndarray:
        return np.flatnonzero(self.numbers >= 0)

    @property
    def predict_all(self) -> bool:
        """Whether each molecule is predicted by a fold; otherwise only the validation molecules are."""
        return bool((self.numbers >= 0).all())

    def parts(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each fold, the indices of its training molecules (outside) and of the molecules to predict (inside)."""
        insides = (self.numbers == fold for fold in range(len(self)))
        return [(np.flatnonzero(~inside), np.flatnonzero(inside)) for inside in insides]
