"""The kinds of tasks: regression, and binary and multiclass classification. To add one, add a class to ``TASKS``."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, l1_loss, mse_loss

from graphormer_sepnorm.config import Loss, TaskConfig
from graphormer_sepnorm.errors import InputError, did_you_mean, one_of
from graphormer_sepnorm.tasks.metrics import METRICS

PARAMETERS = ("mean", "std", "weights", "pos_weight")
LARGEST_TARGET = 1e18  # its square fits into float32
Calibrated = Literal["intervals", "probabilities"] | None
SMALLEST_SPREAD = 1e-30  # float32 loses precision below 1e-38
LOSSES = {"l1": l1_loss, "mse": mse_loss}
LOG_ODDS = 2.0  # of a class whose label is known


class Task(ABC):
    """A prediction task: loss, predictions and scores.

    Args:
        config: the targets, and the parameters fitted to their labels.
        device: device of its tensors; for other devices they are moved on each use.
    """

    kind: ClassVar[str]  # its name in configs
    metrics: ClassVar[tuple[str, ...]]  # suitable names in ``METRICS``; by default, the first one selects the epoch
    reported: ClassVar[tuple[str, ...]]
    curve_metric: ClassVar[str]  # of training curves where no epoch is selected; defined for labels of any kind
    predicts_probabilities: ClassVar[bool] = True
    adds_up: ClassVar[bool] = False  # predictions of a molecule to 1, so that targets cannot be predicted separately
    calibrated_by: ClassVar[Calibrated] = None
    tolerance: ClassVar[float] = 0.0  # standard deviations of a target by which labels of one molecule may differ

    def __init__(self, config: TaskConfig, device: torch.device | str = "cpu"):
        self.config = config
        self.metric = METRICS[one_of("metric", config.metric, METRICS)]
        tensors = [torch.tensor(getattr(config, name), dtype=torch.float32).to(device) for name in PARAMETERS]
        self.mean, self.std, self.weights, self.pos_weight = tensors

    @classmethod
    def find_metric(cls, name: str | None) -> str:
        """The name of a metric that suits the task, None for the default; raises InputError for any other."""
        if name is None:
            return cls.metrics[0]
        if name not in cls.metrics:
            choices = ", ".join(cls.metrics) + did_you_mean(name, cls.metrics)
            raise InputError(f"metric {name!r} does not score a {cls.kind}: choose one of {choices}")
        return name

    @staticmethod
    def usual_loss(metric: str | None) -> Loss:
        """The default loss for a metric; "l1" stands for the only loss of a kind without choice."""
        return "mse" if metric in ("rmse", "r2") else "l1"  # metrics of a regression

    def loss(self, output: Tensor, y: Tensor, bounds: Tensor | None = None, weight: Tensor | None = None) -> Tensor:
        """Mean loss over the labels, weighted by target.

        Args:
            output: [B, tasks] of the model.
            y: [B, tasks], NaN where a label is missing.
            bounds: [B, tasks, 2] bounds of censored labels of a regression; predictions between them have zero loss.
            weight: [B] weights of the molecules; None: equal weights.

        Raises:
            InputError: the labels have another shape than the output, to which they would be broadcast.
        """
        if y.shape != output.shape:
            shapes = f"the labels are {list(y.shape)}, the output {list(output.shape)}"
            raise InputError(f"{shapes}: give both the same shape")
        y = y.to(torch.promote_types(output.dtype, torch.float32))  # others would round the scale
        counts = self.counts(y, bounds, weight)
        total = counts.sum()
        return (self.losses(output, y, bounds) * counts).sum() / total.masked_fill(total == 0, 1)

    def counts(self, y: Tensor, bounds: Tensor | None = None, weight: Tensor | None = None) -> Tensor:
        """Weight of each label in the mean: [B, tasks], 0 or False where there is none."""
        labelled = ~y.isnan()
        if bounds is not None:
            labelled = labelled | bounds.isfinite().any(dim=2)
        counts = labelled * self.weights.to(y) if self.config.weights else labelled
        return counts if weight is None else counts * weight[:, None]

    @abstractmethod
    def losses(self, output: Tensor, y: Tensor, bounds: Tensor | None) -> Tensor:
        """The loss of each label [B, tasks]; undefined where there is none."""

    @abstractmethod
    def predict(self, output: Tensor) -> Tensor:
        """Converts model output [B, tasks] to values on the original scale of the targets, or to probabilities."""

    @abstractmethod
    def output_of(self, y: Tensor) -> Tensor:
        """Model output [B, tasks] whose prediction is close to the labels y [B, tasks]; NaN where one is missing."""

    def fitted(self, y: np.ndarray, weight: np.ndarray | None = None) -> TaskConfig:
        """The config with parameters fitted to training targets [M, tasks] of molecules with sample weights [M]."""
        if np.isnan(y).all(axis=0).any():
            raise InputError("a target has no labels in the training split")
        return self.fit(y.astype(np.float64), np.ones(len(y)) if weight is None else weight)

    @abstractmethod
    def fit(self, y: np.ndarray, weight: np.ndarray) -> TaskConfig: ...

    @property
    def is_fitted(self) -> bool:
        return True

    def check_labels(self, name: str, labels: np.ndarray, split: str) -> None:  # noqa: B027
        """Raises InputError for labels [M] of a target, none missing, that are invalid for the task; else any suits."""

    def check_targets(self, y: np.ndarray, split: str) -> None:
        """Raises InputError unless there are molecules, and all labels are finite and valid for ``check_labels``."""
        if len(y) == 0:
            raise InputError(f"the {split} split has no molecules")
        for name, column in zip(self.config.targets, y.T, strict=True):
            if len(infinite := np.flatnonzero(np.isinf(column))):
                raise InputError(f"target {name} of {split} molecule {infinite[0]} (counted from 0) is infinite")
            self.check_labels(name, column[~np.isnan(column)], split)

    def check_learnable(self, y: np.ndarray) -> None:
        """Raises InputError unless training targets [M, tasks] have labels, differ, and suit float32."""
        self.check_targets(y, "training")
        if len(empty := np.flatnonzero(np.isnan(y).all(axis=0))):
            raise InputError(f"target {self.config.targets[empty[0]]} has no labels in the training split")
        lowest, highest = np.nanmin(y, axis=0), np.nanmax(y, axis=0)
        if np.all(lowest == highest):
            name, value = self.config.targets[0], lowest[0]
            raise InputError(f"target {name} is {value:g} for every training molecule: there is nothing to learn")
        if np.abs([lowest, highest]).max() > LARGEST_TARGET:
            raise InputError(f"a training target is beyond {LARGEST_TARGET:g}: put the targets on another scale")
        spread = np.subtract(highest, lowest, dtype=np.float64)
        if ((spread > 0) & (spread < SMALLEST_SPREAD)).any():
            raise InputError(f"labels of a training target differ by less than {SMALLEST_SPREAD:g}: use another scale")

    def check_scorable(self, y: np.ndarray, split: str) -> None:
        self.check_targets(y, split)
        if np.isnan(y).all():
            raise InputError(f"target {self.config.targets[0]} has no labels in the {split} split")
        try:
            self.metric(y, np.nan_to_num(y))
        except InputError as error:
            raise InputError(f"{split} split: {error}") from None

    def left_out(self, y: np.ndarray) -> dict[str, str]:
        return {self.config.targets[place]: reason for place, reason in self.metric.undefined(y).items()}

    @classmethod
    def scores(cls, y: np.ndarray, prediction: np.ndarray) -> dict[str, float | None]:
        values = {name: METRICS[name].or_nan(y, prediction) for name in cls.reported}
        return {name: None if np.isnan(value) else value for name, value in values.items()}


class Regression(Task):
    """Absolute or squared errors on standardized targets; labels may be censored."""

    kind = "regression"
    metrics = ("mae", "rmse", "r2")
    reported = ("mae", "rmse", "r2", "spearman")
    curve_metric = "mae"
    predicts_probabilities = False
    calibrated_by = "intervals"
    tolerance = 0.5

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
        std = np.where(np.nanmin(y, axis=0) < np.nanmax(y, axis=0), np.nanstd(y, axis=0), 1.0)
        return replace(self.config, mean=tuple(np.nanmean(y, axis=0).tolist()), std=tuple(std.tolist()))

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
        """Negatives per positive of each target, by sample weights, if it is balanced; 1 if one has none."""
        positives, negatives = weight @ (y == 1), weight @ (y == 0)
        both = (positives > 0) & (negatives > 0)
        ratios = np.where(both, negatives / np.where(both, positives, 1), 1.0)
        return replace(self.config, pos_weight=tuple(ratios.tolist()) if self.config.balance else ())

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


TASKS: dict[str, type[Task]] = {task.kind: task for task in (Regression, Classification, Multiclass)}
