"""Norms compared over models and seeds, for the other examples: rows kept as they come, summary, picture.

A row is what was measured with one model, norm and seed. Rows are kept in ``results.json`` as they come, so that a
comparison that was interrupted goes on with the same command. The summary of what is kept, again:

    python examples/comparison.py FOLDER

Axis letters: M examples, D features.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn
from tqdm import tqdm

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.guard import guarded
from graphormer_sepnorm.layers.norms import NormLayer
from graphormer_sepnorm.layers.separate import Model, separate_norms
from graphormer_sepnorm.runs.plots import new_figure, save_png
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.training.sweep import cpu_name

SHARE = "ShareNorm"
CLS_NORMS: dict[str, NormLayer] = {"SepNorm": nn.BatchNorm1d, "LayerNorm on the CLS": nn.LayerNorm}
NORMS = (SHARE, *CLS_NORMS)
CELL = ["model", "norm", "seed"]
RESULTS, PICTURE = "results.json", "results.png"
Parts = dict[str, tuple[np.ndarray, np.ndarray]]
Measure = Callable[[str, str, int], dict[str, float]]


def separated(model: Model, norm: str, only: str) -> Model:
    """The model with the norm of that name in ``NORMS`` on the CLS of all norms whose names match ``only``."""
    return model if norm == SHARE else separate_norms(model, CLS_NORMS[norm], only=only)


def arguments(description: str, out: str, seeds: int = 3) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description.split("\n", 1)[0])
    parser.add_argument("--seeds", type=positive, default=seeds)
    parser.add_argument("--out", type=Path, default=Path(out), help="folder of the results and the picture")
    return parser


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def compare(out: Path, setting: dict, models: Sequence[str], seeds: int, measure: Measure) -> pd.DataFrame:
    """Measures every cell that ``out`` does not hold yet, prints the summary and draws the picture.

    Args:
        out: folder of the results.
        setting: what the rows depend on besides model, norm and seed.
        models: names of the models.
        seeds: their number.
        measure: from model, norm and seed to scores by name.

    Returns:
        A row per cell: ``CELL``, the scores and the minutes it took.

    Raises:
        InputError: ``out`` holds results of another setting, or something else.
    """
    rows = read_rows(out / RESULTS, setting)
    done = {tuple(row[name] for name in CELL) for row in rows}
    cells = [(model, norm, seed) for seed in range(seeds) for model in models for norm in NORMS]
    bar = tqdm([cell for cell in cells if cell not in done])
    for cell in bar:
        bar.set_description(", ".join(map(str, cell)))
        start = time.monotonic()
        scores = measure(*cell)
        minutes = (time.monotonic() - start) / 60
        rows.append(dict(zip(CELL, cell, strict=True)) | scores | {"minutes": minutes})
        content = {"setting": setting, "hardware": cpu_name(), "rows": rows}
        write_atomically(out / RESULTS, json.dumps(content, indent=1).encode())
    table = pd.DataFrame(rows)
    print(markdown(summary(table)))
    draw(table, out / PICTURE)
    return table


def read_rows(path: Path, setting: dict) -> list[dict]:
    """The rows that were kept; raises InputError as ``compare``."""
    if not path.exists():
        return []
    content = read_results(path)
    if content["setting"] != setting:
        found = content["setting"]
        raise InputError(f"{path} holds results of another setting, {found}: name another folder with --out")
    return content["rows"]


def read_results(path: Path) -> dict:
    """``setting``, ``hardware`` and ``rows`` of a file that ``compare`` wrote; raises InputError for another file."""
    try:
        content = json.loads(path.read_text())
        return {name: content[name] for name in ("setting", "hardware", "rows")}
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path} holds no results of an example: name another folder with --out") from None


def scores_of(table: pd.DataFrame) -> list[str]:
    return [name for name in table.columns if name not in CELL]


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """A row per model and norm: means over seeds, and mean differences from ShareNorm, with 95 % intervals, as text."""
    return pd.DataFrame(
        {"model": model, "norm": norm, "seeds": len(rows)}
        | {name: mean_and_gain(table, model, norm, name) for name in scores_of(table)}
        for (model, norm), rows in table.groupby(["model", "norm"], sort=False)
    )


def mean_and_gain(table: pd.DataFrame, model: str, norm: str, score: str) -> str:
    values = table[table.model == model].pivot(index="seed", columns="norm", values=score)
    text = with_interval(values[norm].dropna())
    if norm == SHARE or SHARE not in values:
        return text
    return f"{text} ({with_interval((values[norm] - values[SHARE]).dropna(), '+')})"


def with_interval(values: pd.Series, sign: str = "") -> str:
    """Mean and half the width of its 95 % confidence interval by Student's t; only the mean of one value."""
    mean = f"{values.mean():{sign}.3f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {stats.t.ppf(0.975, len(values) - 1) * stats.sem(values):.3f}"


def markdown(table: pd.DataFrame) -> str:
    lines = [table.columns, ["---"] * table.shape[1], *table.astype(str).to_numpy()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(table: pd.DataFrame, picture: Path) -> None:
    """A panel per score: a point per seed, a line at the mean, by model and norm."""
    scores = [name for name in scores_of(table) if name != "minutes"]
    models = list(dict.fromkeys(table.model))
    columns = min(len(scores), 4)
    rows = -(-len(scores) // columns)
    figure = new_figure(3.4 * columns, 3 * rows + 0.4)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis, score in zip(panels, scores, strict=False):
        for shade, norm in enumerate(NORMS):
            for place, model in enumerate(models):
                values = table[(table.model == model) & (table.norm == norm)][score]
                x = place + (shade - 1) * 0.25
                axis.scatter([x] * len(values), values, s=14, color=f"C{shade}", label=norm if place == 0 else None)
                axis.hlines(values.mean(), x - 0.1, x + 0.1, color=f"C{shade}")
        axis.set_title(score, fontsize=10)
        axis.set_xticks(range(len(models)), models)
        axis.set_xlim(-0.5, len(models) - 0.5)
        axis.grid(axis="y", alpha=0.3)
    for axis in panels[len(scores) :]:
        axis.set_visible(False)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(NORMS), frameon=False)
    save_png(figure, picture)


def linear_probe(parts: Parts, score: str) -> Pipeline:
    """The logistic or ridge regression on standardized features that is best on validation.

    Args:
        parts: features [M, D] and labels [M] of "train" and "val"; numbers that are no integers are regressed.
        score: name of scikit-learn's scorer that chooses the strength of regularization.
    """
    scorer = get_scorer(score)
    fitted = [
        make_pipeline(StandardScaler(), candidate).fit(*parts["train"]) for candidate in candidates(parts["train"][1])
    ]
    return max(fitted, key=lambda model: scorer(model, *parts["val"]))


def candidates(labels: np.ndarray) -> list[BaseEstimator]:
    if np.issubdtype(labels.dtype, np.integer):
        return [LogisticRegression(C=strength, max_iter=200) for strength in (1e-2, 1e-1, 1.0)]
    return [Ridge(strength) for strength in np.logspace(-1, 4, 6)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Summary of the results that an example keeps in a folder.")
    parser.add_argument("folder", type=Path)
    path = parser.parse_args().folder / RESULTS
    if not path.exists():
        raise InputError(f"{path} is not there: name the --out of an example")
    content = read_results(path)
    print(content["hardware"], content["setting"])
    print(markdown(summary(pd.DataFrame(content["rows"]))))


if __name__ == "__main__":
    guarded(main)
