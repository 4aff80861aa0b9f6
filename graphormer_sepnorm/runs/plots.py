"""Plots of runs."""

import io
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
    from matplotlib.figure import Figure  # its import takes a second

    return Figure(figsize=(width, height), layout="constrained")


def plot_curves(lines: list[dict[str, float]], picture: Path, metric: str) -> None:
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
    task: TaskConfig, y: np.ndarray, prediction: np.ndarray, folder: Path, bounds: np.ndarray | None = None
) -> None:
    """Plots predictions against labels, a panel per target: ``parity.png``, or ``roc.png`` of probabilities."""
    is_roc = TASKS[task.kind].predicts_probabilities
    panels = min(len(task.targets), MAX_PANELS)
    columns = min(panels, 3)
    rows = -(-panels // columns)
    figure = new_figure(4 * columns, 4 * rows)
    for place in range(panels):
        axis = figure.add_subplot(rows, columns, place + 1)
        label, predicted = y[:, place], prediction[:, place]
        if is_roc:
            draw_roc(axis, label, predicted)
        else:
            draw_parity(axis, label, predicted, None if bounds is None else bounds[:, place])
        axis.set_title(task.targets[place], parse_math=False)
        axis.set_aspect("equal", adjustable="datalim")
    save_png(figure, folder / ("roc.png" if is_roc else "parity.png"))


def draw_parity(axis: "Axes", y: np.ndarray, prediction: np.ndarray, bounds: np.ndarray | None = None) -> None:
    """Exact labels as points, and bounds as triangles towards the values that a label can have."""
    measured, arrows = at_bounds(y, bounds)
    ends = np.nanmin([y, prediction]), np.nanmax([y, prediction])
    axis.plot(ends, ends, color="tab:gray", linewidth=1)
    for arrow, marker in ((0, "o"), (1, ">"), (-1, "<")):
        rows, color = arrows == arrow, "tab:orange" if arrow else "tab:blue"
        axis.scatter(measured[rows], prediction[rows], 10, color, marker=marker, alpha=0.5, linewidths=0)
    axis.set(xlabel="measured", ylabel="predicted")


def at_bounds(y: np.ndarray, bounds: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Labels [M], or in their place their bounds [M, 2]; and 1 for values above, -1 for values below, otherwise 0."""
    if bounds is None:
        return y, np.zeros(len(y))
    arrows = np.where(is_bounded(y, bounds), np.isfinite(bounds) @ [1.0, -1.0], 0)
    return np.where(arrows > 0, bounds[:, 0], np.where(arrows < 0, bounds[:, 1], y)), arrows


def roc_of(y: np.ndarray, probability: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """False and true positive rates of known labels [M]; None if they are all equal."""
    from sklearn.metrics import roc_curve  # its import takes seconds

    labelled = ~np.isnan(y)
    return roc_curve(y[labelled], probability[labelled])[:2] if len(np.unique(y[labelled])) == 2 else None


def draw_roc(axis: "Axes", y: np.ndarray, probability: np.ndarray) -> None:
    if (rates := roc_of(y, probability)) is not None:
        axis.plot([0, 1], [0, 1], color="tab:gray", linewidth=1)
        axis.plot(*rates)
        axis.set(xlabel="false positive rate", ylabel="true positive rate")


def binned(x: np.ndarray, y: np.ndarray, least: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The means of ``x`` and ``y`` [M] in up to ``BINS`` bins of equal size, of at least ``least``, sorted by ``x``."""
    parts = np.array_split(np.argsort(x, kind="stable"), max(min(BINS, len(x) // least), 1))
    return np.array([x[part].mean() for part in parts]), np.array([y[part].mean() for part in parts])
