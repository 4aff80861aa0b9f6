"""Pictures of runs."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.system.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_PANELS = 9


def new_figure(width: float, height: float) -> "Figure":
    """An empty picture, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # its import takes a second
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plot_curves(lines: list[dict[str, float]], picture: Path, metric: str) -> None:
    """Draws training loss and validation metric over the epochs.

    Args:
        lines: the metrics of each epoch of a run.
        picture: PNG to write.
        metric: name of the validation metric.
    """
    epochs = [line["epoch"] for line in lines]
    figure = new_figure(6, 4)
    axes = figure.subplots()
    marker = "o" if len(lines) == 1 else None
    axes.plot(epochs, [line["train_loss"] for line in lines], label="training loss", color="tab:gray", marker=marker)
    axes.plot(epochs, [line["val_metric"] for line in lines], label=f"validation {metric}", marker=marker)
    axes.set_xlabel("epoch")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    save_png(figure, picture)


def save_png(figure: "Figure", picture: Path) -> None:
    content = io.BytesIO()
    figure.savefig(content, dpi=120, format="png")
    write_atomically(picture, content.getvalue())


def plot_predictions(task: TaskConfig, y: np.ndarray, prediction: np.ndarray, picture: Path) -> None:
    """Draws predictions against labels, a panel per target: of a regression the pairs, else the ROC curve.

    Args:
        task: names the kind and the targets, of which the first ``MAX_PANELS`` are drawn.
        y: [M, tasks] labels, NaN where missing.
        prediction: [M, tasks].
        picture: PNG to write.
    """
    draw = draw_parity if task.kind == "regression" else draw_roc
    panels = min(len(task.targets), MAX_PANELS)
    columns = min(panels, 3)
    rows = -(-panels // columns)
    figure = new_figure(4 * columns, 4 * rows)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis, target, label, predicted in zip(axes, task.targets, y.T, prediction.T, strict=False):
        labelled = ~np.isnan(label)
        if labelled.any():
            draw(axis, label[labelled], predicted[labelled])
        axis.set_title(target)
        axis.set_aspect("equal", adjustable="datalim")
    for axis in axes[panels:]:
        axis.set_visible(False)
    save_png(figure, picture)


def draw_parity(axis: "Axes", y: np.ndarray, prediction: np.ndarray) -> None:
    ends = [min(y.min(), prediction.min()), max(y.max(), prediction.max())]
    axis.plot(ends, ends, color="tab:gray", linewidth=1)
    axis.scatter(y, prediction, s=9, alpha=0.5, linewidths=0)
    axis.set_xlabel("measured")
    axis.set_ylabel("predicted")


def draw_roc(axis: "Axes", y: np.ndarray, prediction: np.ndarray) -> None:
    from sklearn.metrics import roc_curve  # its import takes seconds

    if len(np.unique(y)) < 2:
        return
    false_positive, true_positive, _ = roc_curve(y, prediction)
    axis.plot([0, 1], [0, 1], color="tab:gray", linewidth=1)
    axis.plot(false_positive, true_positive)
    axis.set_xlabel("false positive rate")
    axis.set_ylabel("true positive rate")
