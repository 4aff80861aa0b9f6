"""Commands: parse, call the package, print. The last line of output is one JSON object."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from graphormer_sepnorm import runs
from graphormer_sepnorm.config import PRESETS, TrainConfig, first_problem
from graphormer_sepnorm.datasets import DATASETS, ROOT_VARIABLE
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.norms import NORMS

Root = Annotated[
    Path | None, typer.Option(help=f"Folder of the downloaded datasets; also the environment variable {ROOT_VARIABLE}.")
]


def train(
    dataset: Annotated[str, typer.Option(help=f"One of {', '.join(DATASETS)}.")] = "sample",
    root: Root = None,
    norm: Annotated[str, typer.Option(help=f"Norm of the blocks: {', '.join(NORMS)}.")] = "sepnorm",
    preset: Annotated[str, typer.Option(help=f"Size of the model: {', '.join(PRESETS)}.")] = "slim",
    epochs: Annotated[int, typer.Option(help="Passes over the training molecules.")] = TrainConfig.epochs,
    batch_size: Annotated[int, typer.Option(help="Molecules per update.")] = TrainConfig.batch_size,
    lr: Annotated[float, typer.Option(help="Peak learning rate.")] = TrainConfig.lr,
    seed: Annotated[int, typer.Option(help="Seed of initialisation, order and dropout.")] = TrainConfig.seed,
    out: Annotated[Path | None, typer.Option(help="Run folder to write; by default runs/DATASET-NORM-SEED.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last completed epoch of --out.")] = False,
) -> None:
    """Train a Graphormer and score its best checkpoint on the test molecules.

    The run folder holds config.json, model.safetensors (the best checkpoint by validation), metrics.jsonl (a line per
    epoch), curves.png and test.json.
    """
    if preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}, choose one of {', '.join(PRESETS)}")
    train_config = TrainConfig(epochs=epochs, batch_size=batch_size, lr=lr, seed=seed)
    config = runs.dataset_config(dataset, train_config, norm, PRESETS[preset])
    folder = out or Path("runs") / f"{dataset}-{norm}-{seed}"
    started = time.perf_counter()
    result = runs.train_run(config, folder, root, resume)
    print(f"{folder}: test {result['metric']} {result['value']:.4f}, {time.perf_counter() - started:.0f} s")
    print(json.dumps(result))


def evaluate(
    run: Annotated[Path, typer.Argument(help="Run folder or weights file.")],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    root: Root = None,
) -> None:
    """Score a run's best checkpoint on a split of its dataset, with OGB's evaluators."""
    print(json.dumps(runs.evaluate_run(run, split, root)))


app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
app.command()(train)
app.command()(evaluate)


def guarded(command: Callable[[], None]) -> None:
    """Runs a command; bad input ends with one sentence on standard error and exit code 2."""
    try:
        command()
    except InputError as error:
        problem = str(error)
    except ValidationError as error:
        problem = first_problem(error)
    else:
        return
    print(f"error: {problem}", file=sys.stderr)
    sys.exit(2)


def main() -> None:
    guarded(app)


def run_alone(command: Callable) -> None:
    """Runs one command as a script of its own."""
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    alone.command()(command)
    guarded(alone)
