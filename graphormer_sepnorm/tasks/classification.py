"""Binary classification: a probability for each target."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tasks.base import Calibrated, Task

LOG_ODDS = 2.0  # of a class whose label is known


class Classification(Task):
    """Binary cross-entropy of each target; positives may have a larger weight."""

    kind = "classification"
    metrics = ("rocauc", "prauc", "accuracy", "logloss")
    reported = ("rocauc", "prauc", "accuracy")
    calibrated_by: ClassVar[Calibrated] = "probabilities"

    def losses(self, output: Tensor, y: Tensor, bounds: Tensor | None) -> Tensor:
        weight = self.pos_weight.to(y) if self.config.pos_weight else None
        return binary_cross_entropy_with_logits(output, y.nan_to_num(), pos_weight=weight, reduction="none")

    def predict(self, output: Tensor) -> Tensor:
        return output.sigmoid()

    def output_of(self, y: Tensor) -> Tensor:
        return LOG_ODDS * (2 * y - 1)

    def fit(self, y: np.ndarray) -> TaskConfig:
        """Computes the weight of positives if they are balanced."""
        return replace(self.config, pos_weight=positive_weights(y) if self.config.balance else ())

    def check_labels(self, name: str, labels: np.ndarray, split: str) -> None:
        if not np.isin(labels, (0, 1)).all():
            raise InputError(f"target {name} has labels other than 0 and 1 in the {split} split")


def positive_weights(y: np.ndarray) -> tuple[float, ...]:
    """Negatives per positive of each target of ``y`` [M, tasks]; 1 if all labels are the same."""
    positives, negatives = np.nansum(y == 1, axis=0), np.nansum(y == 0, axis=0)
    both = (positives > 0) & (negatives > 0)
    return tuple(np.where(both, negatives / np.maximum(positives, 1), 1.0).tolist())
