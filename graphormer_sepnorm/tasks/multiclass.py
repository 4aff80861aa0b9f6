"""Multiclass classification: one of several classes, whose probabilities add up to 1."""

from torch import Tensor

from graphormer_sepnorm.tasks.classification import Classification


class Multiclass(Classification):
    """Softmax cross-entropy; the targets are the classes, with one-hot labels."""

    kind = "multiclass"
    metrics = ("rocauc", "prauc", "multiclass-accuracy", "multiclass-logloss")
    reported = ("rocauc", "multiclass-accuracy", "multiclass-logloss")
    adds_up = True
    calibrated_by = None

    def losses(self, output: Tensor, y: Tensor, bounds: Tensor | None) -> Tensor:
        return -y.shape[1] * y.nan_to_num() * output.log_softmax(dim=1)

    def predict(self, output: Tensor) -> Tensor:
        return output.softmax(dim=1)
