"""Metrics of predictions for a whole split. M molecules of a split, K classes."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from graphormer_sepnorm.errors import InputError


@dataclass(frozen=True)
class Metric:
    """A score of a whole split, in float64 for any type, as squares of 1e-23 are 0 in float32."""

    score: Callable[[np.ndarray, np.ndarray], float]  # of labels [M] and predictions [M] of one target, none missing
    higher_is_better: bool
    title: str

    def __call__(self, y: np.ndarray, prediction: np.ndarray) -> float:
        """The mean score over targets [M, tasks] that have one; raises the first reason if none has."""
        found = self.by_target(y, prediction)
        scores = [score for score in found if not isinstance(score, InputError)]
        if not scores:
            raise found[0]  # type: ignore[misc]  # they are all reasons
        return float(np.mean(scores))

    def by_target(self, y: np.ndarray, prediction: np.ndarray) -> list[float | InputError]:
        """The score of each target, or the reason why it has none."""
        found: list[float | InputError] = []
        for column, predicted in zip(y.T, prediction.T, strict=True):
            try:
                found.append(self.of_rows(~np.isnan(column), column, predicted, "a target has no labels in this split"))
            except InputError as error:
                found.append(error)
        return found

    def or_nan(self, y: np.ndarray, prediction: np.ndarray) -> float:
        with contextlib.suppress(InputError):
            return self(y, prediction)
        return float("nan")

    def of_rows(self, rows: np.ndarray, y: np.ndarray, prediction: np.ndarray, problem: str) -> float:
        """The score of some rows, bool [M]; raises InputError with the problem if there are none."""
        if not rows.any():
            raise InputError(f"{problem}, so it cannot be scored")
        return float(self.score(y[rows].astype(np.float64), prediction[rows].astype(np.float64)))

    def undefined(self, y: np.ndarray) -> dict[int, str]:
        """The targets without a score, by their column in ``y`` [M, tasks], with the reason."""
        found = enumerate(self.by_target(y, np.nan_to_num(y)))
        return {place: str(reason) for place, reason in found if isinstance(reason, InputError)}

    def improves(self, value: float, best: float | None) -> bool:
        return best is None or (value > best if self.higher_is_better else value < best)


@dataclass(frozen=True)
class ClassesMetric(Metric):
    """A score of one-hot labels [M, K] and probabilities [M, K], of all classes together."""

    def __call__(self, y: np.ndarray, prediction: np.ndarray) -> float:
        return self.of_rows(~np.isnan(y).any(axis=1), y, prediction, "no molecule of this split has a class")

    def undefined(self, y: np.ndarray) -> dict[int, str]:
        return {}


def of_sklearn(name: str, y: np.ndarray, prediction: np.ndarray, **options: Any) -> float:
    from sklearn import metrics  # its import takes seconds

    return getattr(metrics, name)(y, prediction, **options)


def roc_auc(y: np.ndarray, prediction: np.ndarray) -> float:
    if len(np.unique(y)) < 2:
        raise InputError("ROC-AUC needs both classes, and this split has labels of only one")
    return of_sklearn("roc_auc_score", y, prediction)


def r_squared(y: np.ndarray, prediction: np.ndarray) -> float:
    if len(np.unique(y)) < 2:
        raise InputError("R2 needs labels that differ")
    return of_sklearn("r2_score", y, prediction)


def spearman(y: np.ndarray, prediction: np.ndarray) -> float:
    from scipy.stats import spearmanr  # its import takes a while

    if min(len(np.unique(y)), len(np.unique(prediction))) < 2:
        raise InputError("a correlation of ranks needs labels and predictions that differ")
    return spearmanr(y, prediction).statistic


def pr_auc(y: np.ndarray, prediction: np.ndarray) -> float:
    if not y.any():
        raise InputError("PR-AUC needs a positive label")
    return of_sklearn("average_precision_score", y, prediction)


def classes_log_loss(y: np.ndarray, prediction: np.ndarray) -> float:
    """Mean cross-entropy of the probabilities, normalized to add up to 1."""
    probabilities = prediction / prediction.sum(axis=1, keepdims=True)
    return of_sklearn("log_loss", y.argmax(axis=1), probabilities, labels=np.arange(y.shape[1]))


METRICS = {
    "mae": Metric(lambda y, predicted: np.abs(y - predicted).mean(), False, "MAE"),
    "rmse": Metric(lambda y, predicted: np.sqrt(np.mean((y - predicted) ** 2)), False, "RMSE"),
    "r2": Metric(r_squared, True, "R2"),
    "spearman": Metric(spearman, True, "Spearman"),
    "rocauc": Metric(roc_auc, True, "ROC-AUC"),
    "prauc": Metric(pr_auc, True, "PR-AUC"),
    "accuracy": Metric(lambda y, predicted: np.mean((predicted >= 0.5) == (y > 0.5)), True, "accuracy"),
    "logloss": Metric(partial(of_sklearn, "log_loss", labels=[0, 1]), False, "log loss"),
    "multiclass-accuracy": ClassesMetric(
        lambda y, predicted: np.mean(predicted.argmax(axis=1) == y.argmax(axis=1)), True, "accuracy"
    ),
    "multiclass-logloss": ClassesMetric(classes_log_loss, False, "log loss"),
}
