"""The kinds of tasks: regression, and binary and multiclass classification. To add one, add a class to ``TASKS``."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, l1_loss, mse_loss

from graphormer_sepnorm.config import Loss, TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tasks.base import Calibrated, Task

LOSSES = {"l1": l1_loss, "mse": mse_loss}
LOG_ODDS = 2.0  # of a class whose label is known


class Regression(Task):
    """Absolute or squared errors on standardized targets; labels may be censored."""

    kind = "regression"
    metrics = ("mae", "rmse", "r2")
    reported = ("mae", "rmse", "r2", "spearman")
    curve_metric = "mae"
    predicts_probabilities = False
    calibrated_by = "intervals"
    tolerance = 0.5

    @classmethod
    def usual_loss(cls, metric: str | None) -> Loss:
        return "mse" if metric in ("rmse", "r2") else "l1"

    def losses(self, output: Tensor, y: Tensor, bounds: Tensor | None) -> Tensor:
        target = self.scale(y)
        if bounds is not None:
            lower, upper = (self.scale(bound) for bound in bounds.unbind(dim=2))
            target = target.where(~y.isnan(), output.detach().clamp(lower, upper))
        return LOSSES[self.config.loss](output, target.nan_to_num(), reduction="none")

    def scale(self, y: Tensor) -> Tensor:
        self.check_fitted()
        return (y - self.mean.to(y)) / self.std.to(y)

    def predict(self, output: Tensor) -> Tensor:
        self.check_fitted()
        return output * self.std.to(output) + self.mean.to(output)

    output_of = scale

    def fit(self, y: np.ndarray, weight: np.ndarray) -> TaskConfig:
        """Computes means and standard deviations; the standard deviation of a constant target is set to 1."""
        varies = np.nanmin(y, axis=0) < np.nanmax(y, axis=0)
        std = np.where(varies, np.nanstd(y, axis=0), 1.0)
        return replace(self.config, mean=tuple(np.nanmean(y, axis=0).tolist()), std=tuple(std.tolist()))

    def check_labels(self, name: str, labels: np.ndarray, split: str) -> None:
        """Accepts any number."""

    @property
    def is_fitted(self) -> bool:
        return bool(self.config.mean and self.config.std)

    def check_fitted(self) -> None:
        if not self.is_fitted:
            raise InputError("the task has no mean and std of its targets: use the config that task.fitted(y) returns")


class Classification(Task):
    """Binary classification: a probability for each target, by binary cross-entropy; positives may weigh more."""

    kind = "classification"
    metrics = ("rocauc", "prauc", "accuracy", "logloss")
    reported = ("rocauc", "prauc", "accuracy")
    curve_metric = "logloss"
    calibrated_by: ClassVar[Calibrated] = "probabilities"

    def losses(self, output: Tensor, y: Tensor, bounds: Tensor | None) -> Tensor:
        weight = self.pos_weight.to(y) if self.config.pos_weight else None
        return binary_cross_entropy_with_logits(output, y.nan_to_num(), pos_weight=weight, reduction="none")

    def predict(self, output: Tensor) -> Tensor:
        return output.sigmoid()

    def output_of(self, y: Tensor) -> Tensor:
        return LOG_ODDS * (2 * y - 1)

    def fit(self, y: np.ndarray, weight: np.ndarray) -> TaskConfig:
        return replace(self.config, pos_weight=positive_weights(y, weight) if self.config.balance else ())

    def check_labels(self, name: str, labels: np.ndarray, split: str) -> None:
        if not np.isin(labels, (0, 1)).all():
            raise InputError(f"target {name} has labels other than 0 and 1 in the {split} split")


class Multiclass(Classification):
    """One of several classes, the targets, with one-hot labels, by softmax cross-entropy."""

    kind = "multiclass"
    metrics = ("rocauc", "prauc", "multiclass-accuracy", "multiclass-logloss")
    reported = ("rocauc", "multiclass-accuracy", "multiclass-logloss")
    curve_metric = "multiclass-logloss"
    adds_up = True
    calibrated_by = None

    def losses(self, output: Tensor, y: Tensor, bounds: Tensor | None) -> Tensor:
        return -y.shape[1] * y.nan_to_num() * output.log_softmax(dim=1)

    def predict(self, output: Tensor) -> Tensor:
        return output.softmax(dim=1)


def positive_weights(y: np.ndarray, weight: np.ndarray) -> tuple[float, ...]:
    """Negatives per positive of each target of ``y`` [M, tasks], by their sample weights [M]; 1 if one has none."""
    positives, negatives = weight @ (y == 1), weight @ (y == 0)
    both = (positives > 0) & (negatives > 0)
    return tuple(np.where(both, negatives / np.where(both, positives, 1), 1.0).tolist())


TASKS: dict[str, type[Task]] = {task.kind: task for task in (Regression, Classification, Multiclass)}
