"""Commands: parse, call the package, print. The last line of output is one JSON object."""

import contextlib
import functools
import io
import itertools
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import ValidationError

from graphormer_sepnorm.config import first_problem
from graphormer_sepnorm.data.benchmarks import DATASETS
from graphormer_sepnorm.data.dataset import ROOT_VARIABLE
from graphormer_sepnorm.data.labels import TableOptions, table_task
from graphormer_sepnorm.data.prepared_table import TABLE
from graphormer_sepnorm.data.tables import TABLE_KINDS, Row, kind_of, open_table, smiles_of_rows
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.recipes import RECIPES, dataset_config, find_recipe, task_config
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.signals import Interrupted, interruptible
from graphormer_sepnorm.training import experiment
from graphormer_sepnorm.training.finetune import starting_from
from graphormer_sepnorm.training.optimizers import OPTIMIZERS
from graphormer_sepnorm.training.own_table import train_table
from graphormer_sepnorm.training.sweep import leaderboard, paired_difference, train_unfinished

Root = Annotated[
    Path | None, typer.Option(help=f"Folder of the downloaded datasets; also the environment variable {ROOT_VARIABLE}.")
]
RecipeName = Annotated[str, typer.Option(help=f"{', '.join(RECIPES)}, shipped weights, or the config.json of a run.")]


def given(options: dict[str, object]) -> dict[str, object]:
    """The options that are not left to the recipe."""
    return {name: value for name, value in options.items() if value is not None}


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
    task: Annotated[Literal["regression", "classification"], typer.Option(help="Of --csv.")] = "regression",
    split: Annotated[
        Literal["scaffold", "random", "column"], typer.Option(help="How --csv is split, 80:10:10 or by a column.")
    ] = "scaffold",
    split_column: Annotated[str | None, typer.Option(help="Column of --csv that says train, val or test.")] = None,
    balance: Annotated[bool, typer.Option("--balance", help="Make the positives of --csv count as much.")] = False,
    ensemble: Annotated[int, typer.Option(min=1, help="Models to train on --csv, of one seed after the other.")] = 1,
    recipe: RecipeName = "slim",
    norm: Annotated[str | None, typer.Option(help=f"{', '.join(NORMS)}; by default the recipe's.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training molecules; slim's: 20.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Molecules per update; by default the recipe's.")] = None,
    lr: Annotated[float | None, typer.Option(help="Peak learning rate; by default the recipe's.")] = None,
    optimizer: Annotated[str | None, typer.Option(help=f"{', '.join(OPTIMIZERS)}; by default the recipe's.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Of weight matrices; by default the recipe's.")] = None,
    dropout: Annotated[float | None, typer.Option(help="Of each sublayer's output; by default the recipe's.")] = None,
    attention_dropout: Annotated[float | None, typer.Option(help="By default the recipe's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of initialisation, order, dropout and split.")] = None,
    patience: Annotated[int | None, typer.Option(help="Epochs without improvement before the end; 0: never.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder to write; by default runs/DATASET-NORM-SEED.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last completed epoch of --out.")] = False,
    start: Annotated[
        str | None, typer.Option("--from", help="Model to fine-tune under a fresh head; it sets architecture and norm.")
    ] = None,
    freeze: Annotated[int, typer.Option(help="First layers of --from that keep their weights.")] = 0,
) -> None:
    """Train a Graphormer and score its best checkpoint on the test molecules.

    The run folder holds config.json, model.safetensors (the best checkpoint by validation), metrics.jsonl (a line per
    epoch), curves.png and test.json.
    """
    found = find_recipe(recipe)
    optimisation = {
        "epochs": epochs,
        "batch_size": batch_size,
        "lr": lr,
        "optimizer": optimizer,
        "weight_decay": weight_decay,
        "seed": seed,
        "patience": patience,
    }
    train_config = replace(found.train, **given(optimisation))
    if csv is None:
        if more_targets:
            raise InputError(f"unexpected argument {more_targets[0]!r}: only columns of --csv are named without option")
        of_tables = (target_columns, smiles_column, delimiter, split_column, balance, ensemble != 1)
        if any(of_tables) or task != "regression" or split != "scaffold":
            raise InputError(
                "--target-columns, --smiles-column, --delimiter, --task, --split, --split-column, --balance and "
                "--ensemble belong to --csv FILE"
            )
        config = dataset_config(dataset, train_config, norm, found.architecture)
    else:
        if dataset != "sample":
            raise InputError("--dataset and --csv exclude each other")
        targets = (*(target_columns or ()), *(more_targets or ()))
        division = (split, split_column, balance, train_config.seed)
        table = TableOptions(csv, targets, task, smiles_column, delimiter, *division)
        config = task_config(TABLE, "ogb", table_task(table), train_config, norm, found.architecture)
    if start is not None:
        if norm is not None:
            raise InputError("the norm is that of the model that --from names: leave --norm out")
        config = starting_from(config, resolve_model(start), freeze)
    elif freeze:
        raise InputError("--freeze needs --from: only layers of a trained model can keep their weights")
    dropouts = {"dropout": dropout, "attention_dropout": attention_dropout}
    config = replace(config, model=replace(config.model, **given(dropouts)))
    folder = out or Path("runs") / f"{Path(csv or dataset).name}-{config.model.norm}-{config.train.seed}"
    started = time.perf_counter()
    if csv is None:
        result = experiment.train_run(config, folder, root, resume)
    else:
        result = train_table(table, config, folder, ensemble, resume)
        if result["skipped"]:
            print(f"{result['skipped']} rows were skipped: skipped.csv in the run folder says why", file=sys.stderr)
    print(f"{folder}: test {result['metric']} {result['value']:.4f}, {time.perf_counter() - started:.0f} s")
    print(json.dumps(result))


def pretrain(
    smiles: Annotated[list[str], typer.Option(help="Table with molecules: CSV, .smi, SDF, .gz; repeat the option.")],
    out: Annotated[Path, typer.Option(help="Run folder to write.")],
    smiles_column: Annotated[str | None, typer.Option(help="Column of the tables; by default smiles.")] = None,
    size: Annotated[Literal["small", "base"], typer.Option(help="About 1 or 3 million parameters.")] = "small",
    epochs: Annotated[int | None, typer.Option(help="Passes over the molecules; by default 6.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of initialisation, order, dropout and split.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last completed epoch of --out.")] = False,
) -> None:
    """Pre-train a Graphormer on molecules without labels, to be fine-tuned by train --from OUT.

    It learns to predict RDKit's descriptors, which are computed once and kept in the cache.
    """
    from graphormer_sepnorm.training.pretrain import SIZES, pretrain  # its import takes seconds

    train_config = replace(SIZES[size].train, **given({"epochs": epochs, "seed": seed}))
    result = pretrain(smiles, replace(SIZES[size], train=train_config), out, smiles_column, resume)
    if result["skipped"]:
        print(f"{result['skipped']} rows were skipped: they have no molecule that can be read", file=sys.stderr)
    print(json.dumps(result))


def evaluate(
    run: Annotated[list[str], typer.Argument(help="Run folder, weights file, or name of shipped weights.")],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    root: Root = None,
    as_leaderboard: Annotated[
        bool, typer.Option("--leaderboard", help="Mean and deviation of the test scores of runs that differ in seed.")
    ] = False,
) -> None:
    """Score a run's best checkpoint on a split of its dataset, with OGB's evaluators."""
    models = [resolve_model(name) for name in run]
    if as_leaderboard:
        print(json.dumps(leaderboard(models, root)))
    elif len(models) > 1:
        raise InputError("one run is scored at a time; --leaderboard sums several up")
    else:
        print(json.dumps(experiment.evaluate_run(models[0], split, root)))


def sweep(
    dataset: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(DATASETS)}; repeat the option.")],
    norm: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(NORMS)}.")],
    out: Annotated[Path, typer.Option(help="Folder of the run folders, DATASET-NORM-SEED each.")],
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0 to this number - 1.")] = 3,
    recipe: RecipeName = "slim",
    epochs: Annotated[int | None, typer.Option(help="Passes over the training molecules.")] = None,
    root: Root = None,
) -> None:
    """Train every dataset with every norm and seed, as far as it is unfinished, and sum the scores up.

    Interrupted, the same command goes on where it was. The last line has a list of leaderboard rows; those after the
    first of a dataset say how far their scores lie from its, seed by seed, with a 95 % confidence interval.
    """
    found = find_recipe(recipe)
    train_config = found.train if epochs is None else replace(found.train, epochs=epochs)
    groups = [
        {
            out / f"{name}-{chosen}-{seed}": dataset_config(
                name, replace(train_config, seed=seed), chosen, found.architecture
            )
            for seed in range(seeds)
        }
        for name, chosen in itertools.product(dataset, norm)
    ]
    train_unfinished({folder: config for configs in groups for folder, config in configs.items()}, root)
    rows = [leaderboard(list(configs), root) for configs in groups]
    for row in rows:
        first = next(other for other in rows if other["dataset"] == row["dataset"])
        if row is not first:
            row["difference"] = paired_difference(row, first)
    print(json.dumps(rows))


def explain(
    model: Annotated[str, typer.Argument(help="Run folder, weights file, or name of shipped weights.")],
    molecules: Annotated[str, typer.Argument(help="One SMILES, or a table: CSV, .smi or SDF, also gzipped.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="Picture (.svg or .png), or a folder.")],
    method: Annotated[
        str, typer.Option(help="gradients: what raises or lowers the prediction; attention: what the CLS token reads.")
    ] = "gradients",
    target: Annotated[str | None, typer.Option(help="Name of the target; by default the first.")] = None,
    smiles_column: Annotated[str | None, typer.Option(help="Column of a table; by default smiles.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of a table; by default found in its header.")] = None,
) -> None:
    """Draw which atoms a prediction rests on.

    A table gives a picture with a panel per molecule, or a folder with a picture per molecule; its rows that cannot be
    read are named and left out.
    """
    from graphormer_sepnorm.inference import pictures  # its import takes seconds
    from graphormer_sepnorm.inference.explain import Explanation, explain_rows
    from graphormer_sepnorm.inference.pretrained import Graphormer

    is_table = Path(molecules).is_file() or kind_of(molecules) in TABLE_KINDS
    rows = [Row([molecules], molecules)]
    if is_table:
        with open_table(molecules, smiles_column, delimiter) as table:
            rows = list(itertools.islice(table.rows, pictures.MOST_PICTURES + 1))
    pictures.check_output(out, len(rows))
    results = explain_rows(Graphormer.from_pretrained(resolve_model(model)), smiles_of_rows(rows), method, target)
    results |= {number: InputError(row.error) for number, row in enumerate(rows) if row.error}
    explanations = {row: result for row, result in results.items() if isinstance(result, Explanation)}
    if not is_table and not explanations:
        raise results[0]
    for row in sorted(results.keys() - explanations.keys()):
        print(f"row {row} (counted from 0): {results[row]}", file=sys.stderr)
    pictures.write_pictures(out, explanations)
    print(f"{out}: {len(explanations)} of {len(results)} molecules")
    print(json.dumps([{**vars(e), "contributions": e.contributions.tolist()} for e in explanations.values()]))


def predict(
    model_and_input: Annotated[
        list[str],
        typer.Argument(metavar="MODEL... INPUT", help="Models to average, then a table: CSV, .smi, SDF, .gz, or -."),
    ],
    out: Annotated[Path, typer.Option("--output", "-o", help="File to write: .csv, or .tsv for tabs.")],
    smiles_column: Annotated[str | None, typer.Option(help="Column of the input; by default smiles.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of the input; by default found in its header.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be read.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the same command was stopped.")] = False,
) -> None:
    """Predict the targets of a model for every row of a table.

    MODEL is a run folder, a weights file, the name of shipped weights, or the folder of an ensemble. The output has
    the rows and columns of the input, a column per target and "error", which says why a row could not be read; several
    models give their mean, and their standard deviation in columns that end in "_std".
    """
    from graphormer_sepnorm.inference.predict import load_predictor  # joblib and the models are imported when needed
    from graphormer_sepnorm.inference.predict_table import predict_table

    *models, source = model_and_input
    if not models:
        raise InputError("name a model and an input: graphormer-sepnorm predict MODEL INPUT -o OUT.csv")
    started = time.perf_counter()
    result = predict_table(load_predictor(models), source, out, smiles_column, delimiter, strict, resume)
    report_rows(result, time.perf_counter() - started)


def embed(
    model: Annotated[str, typer.Argument(help="Run folder, weights file, or name of shipped weights.")],
    source: Annotated[str, typer.Argument(metavar="INPUT", help="A table: CSV, .smi, SDF, .gz of these, or -.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="File to write: .npz, .parquet or .csv.")],
    smiles_column: Annotated[str | None, typer.Option(help="Column of the input; by default smiles.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of the input; by default found in its header.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the same command was stopped.")] = False,
) -> None:
    """Write the embedding of the CLS token for every row of a table, with its number, SMILES and error."""
    from graphormer_sepnorm.inference.embed_table import embed_table
    from graphormer_sepnorm.inference.predict import load_embedder

    started = time.perf_counter()
    result = embed_table(load_embedder(model), source, out, smiles_column, delimiter, resume)
    report_rows(result, time.perf_counter() - started)


def report_rows(result: dict, seconds: float) -> None:
    """A line for people on standard error, and the result as JSON."""
    read = result["rows"] - result["unreadable"]
    print(f"{result['output']}: {read} of {result['rows']} rows, {result['unreadable']} unreadable", file=sys.stderr)
    print(json.dumps({**result, "seconds": round(seconds, 3)}))


def info(model: Annotated[str, typer.Argument(help="Run folder, weights file, or name of shipped weights.")]) -> None:
    """Say what a model is: architecture, training data, scores, vocabulary, licence."""
    from graphormer_sepnorm.runs.info import as_text, describe_model

    facts = describe_model(resolve_model(model))
    print(as_text(facts))
    print(json.dumps(facts))


def analyze(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Run folders, weights files, or names of shipped weights.")
    ],
    out: Annotated[Path, typer.Option("--output", "-o", help="Picture to write, .png.")],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    root: Root = None,
) -> None:
    """Measure how the CLS embeddings of a split lie in space, and draw several models side by side.

    Singular values and their effective rank (collapse), uniformity (Wang and Isola, 2020) and isotropy.
    """
    from graphormer_sepnorm.inference.analyze import analyze_run
    from graphormer_sepnorm.inference.pictures import plot_cls_geometry

    if out.suffix.lower() != ".png":
        raise InputError(f"the picture is a PNG, so its name ends in .png, not {out.suffix or out.name!r}")
    results = [analyze_run(resolve_model(model), split, root) for model in models]
    plot_cls_geometry(results, out)
    print(f"{out}: {len(results)} models")
    print(json.dumps(results))


def in_first_process(command: Callable[..., None]) -> Callable[..., None]:
    """The command for the first of several processes; the others have nothing to do in it."""

    @functools.wraps(command)
    def run(**options: object) -> None:
        if distributed.rank() == 0:
            command(**options)

    return run


app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
for shared_out in (train, pretrain, evaluate, sweep):
    app.command()(shared_out)
for of_one_process in (explain, predict, embed, info, analyze):
    app.command()(in_first_process(of_one_process))


def guarded(command: Callable[[], None]) -> None:
    """Runs a command; bad input ends with one sentence on standard error and exit code 2, a signal with 128 plus it.

    Of several processes that torchrun started the first alone prints results.
    """
    output = contextlib.nullcontext() if distributed.rank() == 0 else contextlib.redirect_stdout(io.StringIO())
    try:
        with interruptible(), output:
            command()
    except Interrupted as interruption:
        print("; ".join(filter(None, (str(interruption), interruption.advice))), file=sys.stderr)
        sys.exit(interruption.exit_code)
    except InputError as error:
        problem = str(error)
    except ValidationError as error:
        problem = first_problem(error)
    else:
        return
    where = f" in process {distributed.rank()}" if distributed.rank() else ""
    print(f"error{where}: {problem}", file=sys.stderr)
    sys.exit(2)
