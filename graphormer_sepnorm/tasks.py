"""What a task optimises and how it is scored: loss, target scale, metric and its direction.

Axis letters: B molecules of a batch, M molecules of a split.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, l1_loss, mse_loss

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError

LARGEST_TARGET = 1e18  # its square is still a float32
SMALLEST_SPREAD = 1e-30  # float32 loses digits below 1e-38
LOSSES = {"l1": l1_loss, "mse": mse_loss}


@dataclass(frozen=True)
class Metric:
    """A score of a whole split.

    Whatever the types of labels and predictions, it is computed in float64: in float32 squares of 1e-23 are 0.

    Attributes:
        score: labels [M] and predictions [M] of one target, none missing, to a number.
        higher_is_better: its direction.
    """

    score: Callable[[np.ndarray, np.ndarray], float]
    higher_is_better: bool

    def __call__(self, y: np.ndarray, prediction: np.ndarray) -> float:
        """The mean over targets of the score over labelled molecules; targets that ``undefined`` names are left out.

        Args:
            y: [M, tasks], NaN where a label is missing.
            prediction: [M, tasks].

        Raises:
            InputError: no target has a score; the reason is that of the first.
        """
        scores, reasons = [], []
        for column, predicted in zip(y.T, prediction.T, strict=True):
            try:
                scores.append(self.of_target(column, predicted))
            except InputError as error:
                reasons.append(error)
        if not scores:
            raise reasons[0]
        return float(np.mean(scores))

    def of_target(self, y: np.ndarray, prediction: np.ndarray) -> float:
        """The score of one target, labels [M] with NaN where missing; raises InputError where it is undefined."""
        labelled = ~np.isnan(y)
        if not labelled.any():
            raise InputError("a target has no labels in this split, so it cannot be scored")
        return self.score(y[labelled].astype(np.float64), prediction[labelled].astype(np.float64))

    def undefined(self, y: np.ndarray) -> dict[int, str]:
        """The targets, by their column in ``y`` [M, tasks], that have no score, with the reason."""
        reasons = {}
        for place, column in enumerate(y.T):
            try:
                self.of_target(column, np.nan_to_num(column))
            except InputError as error:
                reasons[place] = str(error)
        return reasons

    def improves(self, value: float, best: float | None) -> bool:
        if best is None:
            return True
        return value > best if self.higher_is_better else value < best


@dataclass(frozen=True)
class ClassesMetric(Metric):
    """A score of a whole split that looks at all classes of a molecule together.

    Attributes:
        score: labels [M, K] of 0 and a single 1 per row and probabilities [M, K] to a number.
        higher_is_better: its direction.
    """

    def __call__(self, y: np.ndarray, prediction: np.ndarray) -> float:
        labelled = ~np.isnan(y).any(axis=1)
        if not labelled.any():
            raise InputError("no molecule of this split has a class, so it cannot be scored")
        return self.score(y[labelled].astype(np.float64), prediction[labelled].astype(np.float64))

    def undefined(self, y: np.ndarray) -> dict[int, str]:
        return {}


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


def log_loss(y: np.ndarray, prediction: np.ndarray) -> float:
    """Cross-entropy of predicted probabilities, by scikit-learn; defined for labels of one class too."""
    from sklearn import metrics  # its import takes seconds

    return float(metrics.log_loss(y, prediction, labels=[0, 1]))


def root_mean_squared_error(y: np.ndarray, prediction: np.ndarray) -> float:
    return float(np.sqrt(np.mean((y - prediction) ** 2)))


def r_squared(y: np.ndarray, prediction: np.ndarray) -> float:
    """Coefficient of determination, by scikit-learn."""
    from sklearn import metrics

    if len(np.unique(y)) < 2:
        raise InputError("R2 needs labels that differ")
    return float(metrics.r2_score(y, prediction))


def pr_auc(y: np.ndarray, prediction: np.ndarray) -> float:
    """Average precision, by scikit-learn."""
    from sklearn import metrics

    if not y.any():
        raise InputError("PR-AUC needs a positive label")
    return float(metrics.average_precision_score(y, prediction))


def accuracy(y: np.ndarray, prediction: np.ndarray) -> float:
    """Share of the labels that lie on the side of one half that the prediction lies on."""
    return float(np.mean((prediction > 0.5) == (y > 0.5)))


def classes_accuracy(y: np.ndarray, prediction: np.ndarray) -> float:
    """Share of the molecules whose class is the most probable one."""
    return float(np.mean(prediction.argmax(axis=1) == y.argmax(axis=1)))


def classes_log_loss(y: np.ndarray, prediction: np.ndarray) -> float:
    """Mean cross-entropy of the probabilities, which are made to add up to 1, by scikit-learn."""
    from sklearn import metrics

    probabilities = prediction / prediction.sum(axis=1, keepdims=True)
    return float(metrics.log_loss(y.argmax(axis=1), probabilities, labels=np.arange(y.shape[1])))


METRICS = {
    "mae": Metric(mean_absolute_error, higher_is_better=False),
    "rmse": Metric(root_mean_squared_error, higher_is_better=False),
    "r2": Metric(r_squared, higher_is_better=True),
    "rocauc": Metric(roc_auc, higher_is_better=True),
    "prauc": Metric(pr_auc, higher_is_better=True),
    "accuracy": Metric(accuracy, higher_is_better=True),
    "logloss": Metric(log_loss, higher_is_better=False),
    "multiclass-accuracy": ClassesMetric(classes_accuracy, higher_is_better=True),
    "multiclass-logloss": ClassesMetric(classes_log_loss, higher_is_better=False),
}
# The first one chooses the epoch if nothing else is said.
METRICS_OF = {
    "regression": ("mae", "rmse", "r2"),
    "classification": ("rocauc", "prauc", "accuracy", "logloss"),
    "multiclass": ("rocauc", "prauc", "multiclass-accuracy", "multiclass-logloss"),
}
REPORTED = {
    "regression": ("mae", "rmse", "r2"),
    "classification": ("rocauc", "prauc", "accuracy"),
    "multiclass": ("rocauc", "multiclass-accuracy", "multiclass-logloss"),
}


def find_metric(kind: str, name: str | None) -> str:
    """The name of a metric that suits a kind of task, None for the usual one; raises InputError for another kind's."""
    if name is None:
        return METRICS_OF[kind][0]
    if name not in METRICS_OF[kind]:
        raise InputError(f"metric {name!r} does not score a {kind}: choose one of {', '.join(METRICS_OF[kind])}")
    return name


def all_scores(kind: str, y: np.ndarray, prediction: np.ndarray) -> dict[str, float | None]:
    """The scores that are reported for a kind of task, None where one is undefined; arguments as ``Metric``."""
    scores: dict[str, float | None] = {}
    for name in REPORTED[kind]:
        try:
            scores[name] = METRICS[name](y, prediction)
        except InputError:
            scores[name] = None
    return scores


def fit_scale(task: TaskConfig, y: np.ndarray) -> TaskConfig:
    """The task with what it takes from the training targets: the scale of a regression, the weights of a balance.

    Args:
        y: [M, tasks] training targets, NaN where missing.

    Raises:
        InputError: a target without any label, or with an infinite one.
    """
    if np.isinf(y).any():
        raise InputError("a training target is infinite")
    if np.isnan(y).all(axis=0).any():
        raise InputError("a target has no labels in the training split")
    if task.kind != "regression":
        return replace(task, pos_weight=positive_weights(y) if task.balance else ())
    y = y.astype(np.float64)
    std = np.nanstd(y, axis=0)
    return replace(task, mean=tuple(np.nanmean(y, axis=0).tolist()), std=tuple(np.where(std > 0, std, 1.0).tolist()))


def positive_weights(y: np.ndarray) -> tuple[float, ...]:
    """Negatives per positive of each target of ``y`` [M, tasks]; 1 where all labels are the same."""
    positives, negatives = np.nansum(y == 1, axis=0), np.nansum(y == 0, axis=0)
    both = (positives > 0) & (negatives > 0)
    return tuple(np.where(both, negatives / np.maximum(positives, 1), 1.0).tolist())


def check_targets(task: TaskConfig, y: np.ndarray, split: str) -> None:
    """Raises InputError unless there are molecules, and all labels are finite and, for classification, 0 or 1.

    Args:
        task: names the targets.
        y: [M, tasks], NaN where a label is missing.
        split: its name, for the message.
    """
    if len(y) == 0:
        raise InputError(f"the {split} split has no molecules")
    for name, column in zip(task.targets, y.T, strict=True):
        infinite = np.flatnonzero(np.isinf(column))
        if len(infinite):
            raise InputError(f"target {name} of {split} molecule {infinite[0]} (counted from 0) is infinite")
        if task.kind != "regression" and not np.isin(column[~np.isnan(column)], (0, 1)).all():
            raise InputError(f"target {name} has labels other than 0 and 1 in the {split} split")


def check_learnable(task: TaskConfig, y: np.ndarray) -> None:
    """Raises InputError unless training targets [M, tasks] can be learnt from.

    As ``check_targets``, and if a target has no label, or all are constant.
    """
    check_targets(task, y, "training")
    for name, column in zip(task.targets, y.T, strict=True):
        if np.isnan(column).all():
            raise InputError(f"target {name} has no labels in the training split")
    lowest, highest = np.nanmin(y, axis=0), np.nanmax(y, axis=0)
    if np.all(lowest == highest):
        raise InputError(
            f"target {task.targets[0]} is {lowest[0]:g} for every training molecule: there is nothing to learn"
        )
    if np.abs([lowest, highest]).max() > LARGEST_TARGET:
        raise InputError(f"a training target is beyond {LARGEST_TARGET:g}: put the targets on another scale")
    spread = np.subtract(highest, lowest, dtype=np.float64)
    if ((spread > 0) & (spread < SMALLEST_SPREAD)).any():
        raise InputError(
            f"the labels of a training target differ by less than {SMALLEST_SPREAD:g}: put the targets on another scale"
        )


def check_scorable(task: TaskConfig, y: np.ndarray, split: str) -> None:
    """Raises InputError unless predictions of some target can be scored against the targets [M, tasks] of a split."""
    check_targets(task, y, split)
    if np.isnan(y).all():
        raise InputError(f"target {task.targets[0]} has no labels in the {split} split")
    try:
        METRICS[task.metric](y, np.nan_to_num(y))
    except InputError as error:
        raise InputError(f"{split} split: {error}") from None


def left_out(task: TaskConfig, y: np.ndarray) -> dict[str, str]:
    """The targets that the mean of the scores leaves out for the labels [M, tasks] of a split, with the reason."""
    return {task.targets[place]: reason for place, reason in METRICS[task.metric].undefined(y).items()}


class Task:
    """Loss and predictions of a task.

    Args:
        device: where its numbers lie; elsewhere they are moved for each use.
    """

    def __init__(self, config: TaskConfig, device: torch.device | str = "cpu"):
        self.config = config
        self.metric = METRICS[config.metric]
        named = (config.mean, config.std, config.weights, config.pos_weight)
        self.mean, self.std, self.weights, self.pos_weight = (
            torch.tensor(numbers, dtype=torch.float32).to(device) for numbers in named
        )

    def loss(self, output: Tensor, y: Tensor, bounds: Tensor | None = None) -> Tensor:
        """Mean loss over the labels that are there, each counting what its target weighs.

        L1 or squared on scaled targets, binary cross-entropy, or that of the softmax over classes.

        Args:
            output: [B, tasks] of the model.
            y: [B, tasks], NaN where a label is missing.
            bounds: [B, tasks, 2] of a regression; between them a target whose label is missing costs nothing.
        """
        counts = self.counts(y, bounds)
        total = counts.sum()
        return (self.losses(output, y, bounds) * counts).sum() / total.masked_fill(total == 0, 1)

    def counts(self, y: Tensor, bounds: Tensor | None = None) -> Tensor:
        """How much each label counts in the mean: [B, tasks], 0 or False where there is none."""
        labelled = ~y.isnan()
        if bounds is not None:
            labelled = labelled | bounds.isfinite().any(dim=2)
        return labelled * self.weights.to(y) if self.config.weights else labelled

    def losses(self, output: Tensor, y: Tensor, bounds: Tensor | None) -> Tensor:
        """The loss of each label [B, tasks]; anything where there is none."""
        if self.config.kind == "multiclass":
            return -y.shape[1] * y.nan_to_num() * output.log_softmax(dim=1)
        if self.config.kind == "classification":
            weight = self.pos_weight.to(y) if self.config.pos_weight else None
            return binary_cross_entropy_with_logits(output, y.nan_to_num(), pos_weight=weight, reduction="none")
        target = self.scale(y)
        if bounds is not None:
            lower, upper = (self.scale(bound) for bound in bounds.unbind(dim=2))
            target = target.where(~y.isnan(), output.detach().clamp(lower, upper))
        return LOSSES[self.config.loss](output, target.nan_to_num(), reduction="none")

    def scale(self, y: Tensor) -> Tensor:
        return (y - self.mean.to(y)) / self.std.to(y)

    def predict(self, output: Tensor) -> Tensor:
        """Model output [B, tasks] to values on the targets' own scale, or to probabilities."""
        if self.config.kind == "multiclass":
            return output.softmax(dim=1)
        if self.config.kind == "classification":
            return output.sigmoid()
        return output * self.std.to(output) + self.mean.to(output)
