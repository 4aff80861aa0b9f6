"""``graphormer-sepnorm evaluate``."""

import json
from typing import Annotated

import typer

from graphormer_sepnorm.interfaces.commands.options import Device, Precision, Root
from graphormer_sepnorm.system.signals import leaving_at_once


def evaluate(
    run: Annotated[list[str], typer.Argument(help="Run folders, weights files, or names of shipped weights.")],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    root: Root = None,
    as_leaderboard: Annotated[
        bool, typer.Option("--leaderboard", help="Mean and deviation of the test scores of runs that differ in seed.")
    ] = False,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Score a run, or the mean of several, on a split of its dataset, with OGB's evaluators.

    Example: graphormer-sepnorm evaluate runs/zinc --split val
    """
    with leaving_at_once():
        from graphormer_sepnorm.runs.folder import RunFolder
        from graphormer_sepnorm.runs.zoo import resolve_model
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.table_model.evaluate import evaluate_table
        from graphormer_sepnorm.training.experiment import evaluate_run, evaluate_together
        from graphormer_sepnorm.training.sweep import leaderboard

    models = [resolve_model(name) for name in run]
    with computing(choose(device, precision)):
        if as_leaderboard:
            result = leaderboard(models, root)
        elif len(models) > 1:
            result = evaluate_together(models, split, root)
        elif RunFolder(models[0]).stack.exists():
            result = evaluate_table(RunFolder(models[0]), split)
        else:
            result = evaluate_run(models[0], split, root)
    print(json.dumps(result))
