"""Pictures of runs."""

import io
import json
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from graphormer_sepnorm.files import write_atomically


def plot_curves(metrics: Path, picture: Path, metric: str) -> None:
    """Draws training loss and validation metric over the epochs.

    Args:
        metrics: ``metrics.jsonl`` of a run.
        picture: PNG to write.
        metric: name of the validation metric.
    """
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    epochs = [line["epoch"] for line in lines]
    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    marker = "o" if len(lines) == 1 else None
    axes.plot(epochs, [line["train_loss"] for line in lines], label="training loss", color="tab:gray", marker=marker)
    axes.plot(epochs, [line["val_metric"] for line in lines], label=f"validation {metric}", marker=marker)
    axes.set_xlabel("epoch")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    content = io.BytesIO()
    figure.savefig(content, dpi=120, format="png")
    write_atomically(picture, content.getvalue())
