"""Plots of runs."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.censored import is_bounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_PANELS = 9
BINS = 8


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure; sizes in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # its import takes a second
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plot_curves(lines: list[dict[str, float]], picture: Path, metric: str) -> None:
    """Plots training loss and validation metric over the epochs."""
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


def plot_predictions(
    task: TaskConfig, y: np.ndarray, prediction: np.ndarray, picture: Path, bounds: np.ndarray | None = None
) -> None:
    """Plots predictions against labels, a panel per target: a scatter plot, or the ROC curve of probabilities."""
    draw = draw_roc if TASKS[task.kind].predicts_probabilities else draw_parity
    figure = panels_of_targets(task.targets, y, prediction, draw)
    for place, axis in enumerate(figure.axes[: len(task.targets)] if bounds is not None else ()):
        assert bounds is not None
        censored = is_bounded(y[:, place], bounds[:, place])
        for side, marker in enumerate((">", "<")):  # towards the values that a label can have
            ends = np.where(censored, bounds[:, place, side], np.nan)
            axis.scatter(ends, prediction[:, place], s=12, alpha=0.5, linewidths=0, marker=marker, color="tab:orange")
    save_png(figure, picture)


def panels_of_targets(
    targets: tuple[str, ...],
    y: np.ndarray,
    prediction: np.ndarray,
    draw: Callable[["Axes", np.ndarray, np.ndarray], None],
) -> "Figure":
    """One panel for each of the first ``MAX_PANELS`` targets, drawn from its labelled molecules."""
    panels = min(len(targets), MAX_PANELS)
    columns = min(panels, 3)
    rows = -(-panels // columns)
    figure = new_figure(4 * columns, 4 * rows)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis, target, label, predicted in zip(axes, targets, y.T, prediction.T, strict=False):
        labelled = ~np.isnan(label)
        if labelled.any():
            draw(axis, label[labelled], predicted[labelled])
        axis.set_title(target, parse_math=False)
        axis.set_aspect("equal", adjustable="datalim")
    for axis in axes[panels:]:
        axis.set_visible(False)
    return figure


def draw_parity(axis: "Axes", y: np.ndarray, prediction: np.ndarray) -> None:
    ends = [min(y.min(), prediction.min()), max(y.max(), prediction.max())]
    axis.plot(ends, ends, color="tab:gray", linewidth=1)
    axis.scatter(y, prediction, s=9, alpha=0.5, linewidths=0)
    axis.set(xlabel="measured", ylabel="predicted")


def draw_roc(axis: "Axes", y: np.ndarray, prediction: np.ndarray) -> None:
    from sklearn.metrics import roc_curve  # its import takes seconds

    if len(np.unique(y)) < 2:
        return
    false_positive, true_positive, _ = roc_curve(y, prediction)
    axis.plot([0, 1], [0, 1], color="tab:gray", linewidth=1)
    axis.plot(false_positive, true_positive)
    axis.set(xlabel="false positive rate", ylabel="true positive rate")


def binned(x: np.ndarray, y: np.ndarray, least: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The means of ``x`` [M] and ``y`` [M] in up to ``BINS`` bins of equal size, sorted by ``x``.

    Bins have ``least`` values or more, unless there are fewer.
    """
    parts = np.array_split(np.argsort(x, kind="stable"), max(min(BINS, len(x) // least), 1))
    return np.array([x[part].mean() for part in parts]), np.array([y[part].mean() for part in parts])
