"""``graphormer-sepnorm train``."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from graphormer_sepnorm.config import OPTIONS
from graphormer_sepnorm.dataset import SplitName
from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.options import (
    Balance,
    Device,
    Root,
    Settings,
    SplitColumn,
    SplitSizes,
    TrainingPrecision,
    with_given,
)
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.recipes import RECIPES
from graphormer_sepnorm.system.signals import leaving_at_once
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.training.optimizers import OPTIMIZERS

NETWORKS = 5  # of a table model: one per fold


def train(
    more_targets: Annotated[
        list[str] | None, typer.Argument(metavar="[COLUMN]...", help="Further --target-columns.", show_default=False)
    ] = None,
    dataset: Annotated[str, typer.Option(help=f"One of {', '.join(DATASETS)}.")] = "sample",
    root: Root = None,
    csv: Annotated[str | None, typer.Option(help="Your own table, in place of --dataset: CSV, .gz, or SDF.")] = None,
    smiles_column: Annotated[str | None, typer.Option(help="Column of --csv; by default smiles.")] = None,
    target_columns: Annotated[list[str] | None, typer.Option(help="Columns of --csv to predict.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of --csv; by default found in its header.")] = None,
    task: Annotated[
        Literal["regression", "classification"] | None, typer.Option(help="Of --csv; by default found in its labels.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="That chooses the epoch: mae, rmse or r2; rocauc, prauc, accuracy or logloss; of several classes also "
            "multiclass-accuracy or multiclass-logloss."
        ),
    ] = None,
    loss: Annotated[
        Literal["l1", "mse"] | None,
        typer.Option(help="Of a regression on --csv; by default mse for the metrics rmse and r2, otherwise l1."),
    ] = None,
    target_weights: Annotated[
        str | None, typer.Option(help="What each of --target-columns counts in the loss, such as 1,2,0.5.")
    ] = None,
    split: Annotated[SplitName, typer.Option(help="How --csv is split.")] = "scaffold",
    split_column: SplitColumn = None,
    split_sizes: SplitSizes = None,
    strip_salts: Annotated[
        bool, typer.Option("--strip-salts", help="Read the largest organic part of each molecule of --csv alone.")
    ] = False,
    balance: Balance = False,
    ensemble: Annotated[
        int | None,
        typer.Option(min=1, help=f"Networks to train on --csv, one per fold; by default {NETWORKS}."),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Train on --csv once per fold: every molecule is tested once.")
    ] = None,
    baseline: Annotated[
        bool, typer.Option("--baseline/--no-baseline", help="Let a random forest take part in the model of --csv.")
    ] = True,
    blend: Annotated[
        bool,
        typer.Option("--blend/--no-blend", help="Let other members than networks take part in the model of --csv."),
    ] = True,
    recipe: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(RECIPES)}, shipped weights, or the config.json of a run; "
            "by default foundation for --csv without --norm, otherwise slim.",
            show_default=False,
        ),
    ] = None,
    norm: Annotated[str | None, typer.Option(help=f"{', '.join(NORMS)}; by default the recipe's.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the molecules; by default the recipe's.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Molecules per update; by default the recipe's.")] = None,
    lr: Annotated[float | None, typer.Option(help="Peak learning rate; by default the recipe's.")] = None,
    optimizer: Annotated[str | None, typer.Option(help=f"{', '.join(OPTIMIZERS)}; by default the recipe's.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Of weight matrices; by default the recipe's.")] = None,
    dropout: Annotated[float | None, typer.Option(help="Of each sublayer's output; by default the recipe's.")] = None,
    attention_dropout: Annotated[float | None, typer.Option(help="By default the recipe's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of initialisation, order, dropout and split.")] = None,
    patience: Annotated[int | None, typer.Option(help="Epochs without improvement before the end; 0: never.")] = None,
    settings: Settings = None,
    device: Device = "auto",
    precision: TrainingPrecision = "auto",
    out: Annotated[Path | None, typer.Option(help="Run folder to write; by default runs/DATASET-NORM-SEED.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last completed epoch of --out.")] = False,
    start: Annotated[
        str | None, typer.Option("--from", help="Model to fine-tune under a fresh head; it sets architecture and norm.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Stop after the kernel machine of a table model: seconds, not minutes.")
    ] = False,
    freeze: Annotated[int, typer.Option(help="First layers of --from that keep their weights.")] = 0,
) -> None:
    """Train a Graphormer and score its best checkpoint on the test molecules.

    The run folder holds config.json, model.safetensors (the best checkpoint by validation), metrics.jsonl (a line per
    epoch), curves.png, test.json and predictions.csv (label and prediction of each test molecule).

    Example: graphormer-sepnorm train --dataset zinc-subset --epochs 50 --set train.warmup=0.05 --out runs/zinc
    """
    with leaving_at_once():
        from graphormer_sepnorm.chem.features import FOR_TABLES, without_salts
        from graphormer_sepnorm.recipes import dataset_config, find_recipe, task_config
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.system.torchrun import rank
        from graphormer_sepnorm.table_model.train import Plan, train_folds, train_table
        from graphormer_sepnorm.tables.labels import TableOptions, read_weights, read_whole, table_task, task_of_table
        from graphormer_sepnorm.tables.prepared_table import TABLE
        from graphormer_sepnorm.tables.splits import Sizes, read_sizes
        from graphormer_sepnorm.training.experiment import train_run
        from graphormer_sepnorm.training.finetune import starting_from
        from graphormer_sepnorm.training.settings import in_precision, with_settings

    compute = choose(device)
    if recipe is None:
        recipe = "slim" if csv is None or norm is not None else "foundation"
    found = find_recipe(recipe)
    optimisation = {
        "epochs": epochs,
        "min_updates": None if epochs is None else 0,
        "batch_size": batch_size,
        "lr": lr,
        "optimizer": optimizer,
        "weight_decay": weight_decay,
        "seed": seed,
        "patience": patience,
    }
    train_config = in_precision(with_given(found.train, optimisation), precision)
    if csv is None:
        if more_targets:
            raise InputError(f"unexpected argument {more_targets[0]!r}: only columns of --csv are named without option")
        of_tables = (
            target_columns,
            smiles_column,
            delimiter,
            split_column,
            split_sizes,
            task,
            metric,
            target_weights,
            loss,
            strip_salts,
            balance,
            ensemble,
            folds,
            not baseline,
            not blend,
            quick,
        )
        if any(of_tables) or split != "scaffold":
            raise InputError(
                "--target-columns, --smiles-column, --delimiter, --task, --metric, --loss, --target-weights, --split, "
                "--split-column, --split-sizes, --strip-salts, --balance, --ensemble, --folds, --no-baseline, "
                "--no-blend and --quick belong to --csv FILE"
            )
        config = dataset_config(dataset, train_config, norm, found.architecture)
    else:
        if dataset != "sample":
            raise InputError("--dataset and --csv exclude each other")
        targets = (*(target_columns or ()), *(more_targets or ()))
        sizes = Sizes() if split_sizes is None else read_sizes(split_sizes)
        content = read_whole(csv, smiles_column, delimiter)
        guess = task_of_table(content, targets, task)
        if guess.sentence and rank() == 0:
            print(guess.sentence, file=sys.stderr)
        if loss is not None and "loss" not in OPTIONS[guess.kind]:
            raise InputError("--loss is for --task regression: a classification has its own")
        division = (split, split_column, sizes, balance, train_config.seed)
        loss = loss or TASKS[guess.kind].usual_loss(metric)
        asked = (guess.classes, metric, loss, read_weights(target_weights))
        table = TableOptions(csv, targets, guess.kind, smiles_column, delimiter, *division, *asked, folds or 0)
        featurizer = without_salts(FOR_TABLES) if strip_salts else FOR_TABLES
        config = task_config(TABLE, featurizer, table_task(table), train_config, norm, found.architecture)
    start = start or config.train.start_from
    if start is not None:
        if norm is not None:
            raise InputError(f"the norm is that of {start}, from which training starts: leave --norm out")
        config = starting_from(config, start, freeze)
    elif freeze:
        raise InputError("--freeze needs --from: only layers of a trained model can keep their weights")
    dropouts = {"dropout": dropout, "attention_dropout": attention_dropout}
    config = replace(config, model=with_given(config.model, dropouts))
    config = with_settings(config, settings or ())
    folder = out or Path("runs") / f"{Path(csv or dataset).name}-{config.model.norm}-{config.train.seed}"
    started = time.perf_counter()
    with computing(compute):
        if csv is None:
            result = train_run(config, folder, root, resume)
        else:
            table = replace(table, seed=config.train.seed)
            if config.train.patience:
                raise InputError("--patience is for --dataset: networks on a table train to their last epoch")
            plan = Plan(ensemble or NETWORKS, baseline, blend, quick, resume)
            result = (train_table if folds is None else train_folds)(table, config, folder, plan, content)
            if result["skipped"]:
                print(f"{result['skipped']} rows were skipped: skipped.csv in the run folder says why", file=sys.stderr)
            if result["duplicates"]:
                print(
                    f"{result['duplicates']} molecules stand in several rows, {result['conflicting']} of them with "
                    "labels that contradict each other: duplicates.csv in the run folder names them",
                    file=sys.stderr,
                )
    for line in left_out_lines(result):
        print(line, file=sys.stderr)
    score = f"{result['metric']} {result['value']:.4f}{beside(result)}"
    print(f"{folder}: test {score}, {time.perf_counter() - started:.0f} s")
    print(json.dumps(result))


def left_out_lines(result: dict) -> Iterator[str]:
    """Sentences on what the predictions and the test scores do not count."""
    for member, reason in result.get("left_out_members", {}).items():
        yield f"the {member} takes no part in the model: {reason}"
    yield from result.get("remarks", {}).values()
    for target, facts in result.get("targets", {}).items():
        if "warning" in facts:
            yield f"{target}: {facts['warning']}"
    for target, reason in result.get("left_out", {}).items():
        yield f"{target} is left out of the test {result['metric']}: {reason}"
    censored = {target: count for target, count in result.get("censored", {}).items() if count}
    for target, count in censored.items():
        yield f"{count} test labels of {target} such as <5 say no number: they are left out of the test scores"


def beside(result: dict) -> str:
    """The forest's score in the metric of the model, in brackets; "" if there is none."""
    score = result.get("baseline", {}).get("random_forest", {}).get(result["metric"])
    return "" if score is None else f" (a random forest: {score:.4f})"
