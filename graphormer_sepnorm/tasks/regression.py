"""Regression: trained on standardized labels, with predictions on their original scale."""

from dataclasses import replace
from typing import Literal

import numpy as np
from torch import Tensor
from torch.nn.functional import l1_loss, mse_loss

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.tasks.base import Task

LOSSES = {"l1": l1_loss, "mse": mse_loss}


class Regression(Task):
    """Absolute or squared errors on scaled targets; labels may be censored."""

    kind = "regression"
    metrics = ("mae", "rmse", "r2")
    reported = ("mae", "rmse", "r2", "spearman")
    predicts_probabilities = False
    calibrated_by = "intervals"
    tolerance = 0.5

    @classmethod
    def usual_loss(cls, metric: str | None) -> Literal["l1", "mse"]:
        """Squared errors for metrics of squared errors."""
        return "mse" if metric in ("rmse", "r2") else "l1"

    def losses(self, output: Tensor, y: Tensor, bounds: Tensor | None) -> Tensor:
        target = self.scale(y)
        if bounds is not None:
            lower, upper = (self.scale(bound) for bound in bounds.unbind(dim=2))
            target = target.where(~y.isnan(), output.detach().clamp(lower, upper))
        return LOSSES[self.config.loss](output, target.nan_to_num(), reduction="none")

    def scale(self, y: Tensor) -> Tensor:
        return (y - self.mean.to(y)) / self.std.to(y)

    def predict(self, output: Tensor) -> Tensor:
        return output * self.std.to(output) + self.mean.to(output)

    def output_of(self, y: Tensor) -> Tensor:
        return self.scale(y)

    def fit(self, y: np.ndarray) -> TaskConfig:
        """Computes means and standard deviations; the standard deviation of a constant target is set to 1."""
        std = np.nanstd(y, axis=0)
        std = np.where(std > 0, std, 1.0)
        return replace(self.config, mean=tuple(np.nanmean(y, axis=0).tolist()), std=tuple(std.tolist()))

    def check_labels(self, name: str, labels: np.ndarray, split: str) -> None:
        """Accepts any number."""

    @property
    def is_fitted(self) -> bool:
        return bool(self.config.mean and self.config.std)
