"""What a task optimises and how it is scored: loss, target scale, metric and its direction.

Axis letters: B molecules of a batch, M molecules of a split.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, l1_loss

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError


@dataclass(frozen=True)
class Metric:
    """A score of a whole split.

    Attributes:
        score: labels [M] and predictions [M] of one target, none missing, to a number.
        higher_is_better: its direction.
    """

    score: Callable[[np.ndarray, np.ndarray], float]
    higher_is_better: bool

    def __call__(self, y: np.ndarray, prediction: np.ndarray) -> float:
        """The mean over targets of the score over labelled molecules.

        Args:
            y: [M, tasks], NaN where a label is missing.
            prediction: [M, tasks].

        Raises:
            InputError: a target has no labels, or its score is undefined for them.
        """
        scores = []
        for column, predicted in zip(y.T, prediction.T, strict=True):
            labelled = ~np.isnan(column)
            if not labelled.any():
                raise InputError("a target has no labels in this split, so it cannot be scored")
            scores.append(self.score(column[labelled], predicted[labelled]))
        return float(np.mean(scores))

    def improves(self, value: float, best: float | None) -> bool:
        if best is None:
            return True
        return value > best if self.higher_is_better else value < best


def mean_absolute_error(y: np.ndarray, prediction: np.ndarray) -> float:
    """By OGB's evaluator of PCQM4Mv2."""
    from ogb.lsc import PCQM4Mv2Evaluator  # its import takes seconds

    return float(PCQM4Mv2Evaluator().eval({"y_true": y, "y_pred": prediction})["mae"])


def roc_auc(y: np.ndarray, prediction: np.ndarray) -> float:
    """By OGB's evaluator of ogbg-molhiv."""
    from ogb.graphproppred import Evaluator  # its import takes seconds

    if len(np.unique(y)) < 2:
        raise InputError("ROC-AUC needs both classes, and this split has labels of one alone")
    table = {"y_true": y.reshape(-1, 1), "y_pred": prediction.reshape(-1, 1)}
    return float(Evaluator("ogbg-molhiv").eval(table)["rocauc"])


METRICS = {
    "mae": Metric(mean_absolute_error, higher_is_better=False),
    "rocauc": Metric(roc_auc, higher_is_better=True),
}


def fit_scale(task: TaskConfig, y: np.ndarray) -> TaskConfig:
    """The task with the mean and standard deviation of the training targets, for regression.

    Args:
        y: [M, tasks] training targets, NaN where missing.

    Raises:
        InputError: a target without any label, or with an infinite one.
    """
    if np.isinf(y).any():
        raise InputError("a training target is infinite")
    if np.isnan(y).all(axis=0).any():
        raise InputError("a target has no labels in the training split")
    if task.kind == "classification":
        return task
    std = np.nanstd(y, axis=0)
    return replace(task, mean=tuple(np.nanmean(y, axis=0).tolist()), std=tuple(np.where(std > 0, std, 1.0).tolist()))


class Task:
    """Loss and predictions of a task."""

    def __init__(self, config: TaskConfig):
        self.config = config
        self.metric = METRICS[config.metric]

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Mean loss over the labels that are there: L1 on scaled targets, or binary cross-entropy.

        Args:
            output: [B, tasks] of the model.
            y: [B, tasks], NaN where a label is missing.
        """
        labelled = ~y.isnan()
        if self.config.kind == "classification":
            losses = binary_cross_entropy_with_logits(output, y.nan_to_num(), reduction="none")
        else:
            losses = l1_loss(output, self.scale(y).nan_to_num(), reduction="none")
        return (losses * labelled).sum() / labelled.sum().clamp(min=1)

    def scale(self, y: Tensor) -> Tensor:
        return (y - y.new_tensor(self.config.mean)) / y.new_tensor(self.config.std)

    def predict(self, output: Tensor) -> Tensor:
        """Model output [B, tasks] to values on the targets' own scale, or to probabilities."""
        if self.config.kind == "classification":
            return output.sigmoid()
        return output * output.new_tensor(self.config.std) + output.new_tensor(self.config.mean)
