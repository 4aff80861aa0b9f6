from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.recipes import FROM_RANDOM_WEIGHTS
from graphormer_sepnorm.system.signals import leaving_at_once


def sweep(
    dataset: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(DATASETS)}.")],
    norm: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(NORMS)}.")],
    out: Annotated[Path, typer.Option(help="Folder of the run folders, DATASET-NORM-SEED each.")],
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0 to this number - 1.")] = 3,
    recipe: Annotated[
        str,
        typer.Option(help=f"{', '.join(FROM_RANDOM_WEIGHTS)}, that of shipped weights, or the config.json of a run."),
    ] = "slim",
    epochs: Annotated[int | None, typer.Option(help="Passes over the training molecules.")] = None,
    settings: shared.Settings = None,
    root: shared.Root = None,
    device: shared.Device = "auto",
    precision: shared.TrainingPrecision = "auto",
) -> None:
    """Train every dataset with every norm and seed, skip finished runs, and summarize the scores.

    After an interruption, the same command continues. The last line has a list of leaderboard rows. For each norm
    after the first of a dataset, a row also has the mean difference from the first, paired by seed, with a 95 %
    confidence interval.

    Example: graphormer-sepnorm sweep --dataset zinc-subset --norm sepnorm sharenorm --out runs/norms
    """
    with leaving_at_once():
        from graphormer_sepnorm.recipes import find_recipe
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.training.settings import in_precision, with_given
        from graphormer_sepnorm.training.sweep import sweep

    chosen = find_recipe(recipe)
    train = in_precision(with_given(chosen.train, {"epochs": epochs}), precision)
    with computing(choose(device)):
        rows = sweep(dataset, norm, range(seeds), replace(chosen, train=train), out, root, settings or ())
    shared.print_result(rows, is_told=False)
