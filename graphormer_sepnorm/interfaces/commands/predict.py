"""``graphormer-sepnorm predict``."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphormer_sepnorm.errors import InputError, not_installed
from graphormer_sepnorm.interfaces.commands.expanding import expanded
from graphormer_sepnorm.interfaces.commands.options import (
    MOLECULE_TABLES,
    Conditions,
    Device,
    Precision,
    StripSalts,
    predicting_names,
    read_conditions,
    report_rows,
    say_unfinished,
)
from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.options import Option, ReadOptions, changed
from graphormer_sepnorm.predict.answers import Answers
from graphormer_sepnorm.system.signals import leaving_at_once

if TYPE_CHECKING:
    from graphormer_sepnorm.predict.predictors import PredictingModel
    from graphormer_sepnorm.project.profile import Profile


@dataclass(frozen=True)
class LibraryOptions:
    """Options for predicting a library and selecting its rows."""

    scheduler: Annotated[str | None, Option("Library: address of a Dask scheduler.")] = None
    workers: Annotated[int | None, Option("Library: processes here; by default one per core.")] = None
    columns: Annotated[tuple[str, ...], Option("Library: columns to keep; by default all.")] = ()
    keep_top: Annotated[int | None, Option("Library: keep the best N rows.")] = None
    threshold: Annotated[
        float | None, Option("Library: keep rows whose prediction is at least this; with --lowest, at most.")
    ] = None
    by: Annotated[str | None, Option("Library: target for --keep-top and --threshold.")] = None
    lowest: Annotated[bool, Option("Library: keep low predictions instead of high ones.")] = False

    def __post_init__(self) -> None:
        for name, number in (("--workers", self.workers), ("--keep-top", self.keep_top)):
            if number is not None and number < 1:
                raise InputError(f"{name} {number} is less than 1")


@expanded
@in_first_process
def predict(
    *,
    model_and_input: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL... INPUT",
            autocompletion=predicting_names,
            help=f"Models, then SMILES or a table: {MOLECULE_TABLES}, or - for CSV on standard input.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A file: .csv, .tsv, .parquet, .xlsx, .sdf, or - to print; of a library, a folder.",
        ),
    ] = None,
    reading: ReadOptions,
    answers: Answers,
    profile: Annotated[
        str | None,
        typer.Option(help="File .toml that says what a good molecule is; add the probability that it is one."),
    ] = None,
    strip_salts: StripSalts = False,
    condition: Conditions = None,
    log: Annotated[
        Path | None, typer.Option(help="CSV on this machine to add the predictions to, for the command update.")
    ] = None,
    device: Device = "auto",
    precision: Precision = "auto",
    library: LibraryOptions,
) -> None:
    """Predict the targets of a model for every row of a table.

    MODEL is a run folder, a weights file or the name of shipped weights. INPUT is a table or one or more SMILES.
    Without -o, predictions of SMILES are printed: as lines on a terminal, else as CSV.

    The output has the rows and columns of the input, a column per target, and "error" with the reason if a row cannot
    be read. Several models get columns of their own, which begin with the model's name where two would be equal;
    networks of the same targets are averaged, with their standard deviation in columns that end in "_std". --interval
    and --domain need admet, adme or a run folder of train FILE. --domain adds "nearest", the most similar training
    molecule, "similarity", its Tanimoto similarity, "cls_distance", the smallest distance between embeddings, and
    "warning", which names what no training molecule has, such as an element, a charge or a size.

    A library is a folder, or a pattern in quotes such as "library/*.parquet". Each of its files becomes a Parquet file
    in the folder -o, on all cores or on a Dask cluster; after an interruption, repeat the command to continue. One
    Parquet file is a library if -o is a folder, and a table if -o is a file.

    Example: graphormer-sepnorm predict adme molecules.csv -o predictions.csv
    """
    with leaving_at_once():
        from graphormer_sepnorm.output.predict_table import models_and_source
        from graphormer_sepnorm.runs.zoo import card_endpoints, resolve_model
        from graphormer_sepnorm.tables.formats import is_library

    models, source = models_and_source(model_and_input)
    refuse_unknown(models)
    judge = read_profile(profile)
    load, started = partial(load_for, models, strip_salts, read_conditions(condition)), time.perf_counter()
    if isinstance(source, str) and is_library(source, out):
        if log is not None:
            raise InputError("--log is for tables and SMILES, not for a library")
        if reading.sheet is not None:
            raise InputError("--sheet is for a workbook, not for a library")
        result = library_predictions(load, source, out, reading, answers, judge, library, device, precision)
    else:
        if given := changed(library):
            verb = "is" if len(given) == 1 else "are"
            raise InputError(
                f"{', '.join(given)} {verb} for a library: a folder, a Parquet file or a pattern in quotes"
            )
        facts = [card_endpoints(resolve_model(model)) for model in models] if is_for_people(out) else []
        meanings = {target: of for each in facts for target, of in each.items()} if is_for_people(out) else None
        named = None if log is None else (log, ", ".join(models))
        result = table_predictions(load, source, out, reading, answers, judge, device, precision, meanings, named)
    if is_for_people(out):
        print(f"{result['rows'] - result['unreadable']} of {result['rows']} molecules predicted", file=sys.stderr)
    else:
        report_rows(result, time.perf_counter() - started)


def is_for_people(out: Path | None) -> bool:
    """Whether predictions go to a terminal and no output was named."""
    return out is None and sys.stdout.isatty()


def load_for(models: list[str], strip_salts: bool, conditions: dict[str, str]) -> "PredictingModel":
    """Loads models, to predict under conditions that are the same for all molecules; says if training is unfinished."""
    with leaving_at_once():
        from graphormer_sepnorm.predict.predictors import stripping_salts
        from graphormer_sepnorm.predict.side_by_side import parts_of
        from graphormer_sepnorm.table_model.load import load_predicting_model

    predictor = load_predicting_model(models).under(conditions)
    say_unfinished(models)
    for model in parts_of(predictor) if strip_salts else ():
        stripping_salts(model)
    return predictor


def library_predictions(
    load: Callable[[], "PredictingModel"],
    source: str,
    out: Path | None,
    reading: ReadOptions,
    answers: Answers,
    profile: "Profile | None",
    asked: LibraryOptions,
    device: str,
    precision: Literal["auto", "float32", "bfloat16"],
) -> dict:
    """Predicts a library into a folder."""
    with leaving_at_once():
        from graphormer_sepnorm.output.columns import PredictionColumns
        from graphormer_sepnorm.system.device import choose, computing

    if out is None or str(out) == "-":
        raise InputError("name the folder to write: -o SCORES")
    with computing(choose("cpu")):
        predictor = load()
    library = import_library()
    say_independent(profile, predictor)
    targets = PredictionColumns(predictor, answers).targets
    selection = library.choose_rows(targets, asked.by, asked.keep_top, asked.threshold, asked.lowest)
    of_rows = (tuple(asked.columns) or None, reading.smiles_column, reading.delimiter, reading.strict)
    options = library.PartOptions(selection, *of_rows, precision, answers, profile=profile)
    return library.predict_library(predictor, source, out, options, asked.scheduler, asked.workers, device)


def table_predictions(
    load: Callable[[], "PredictingModel"],
    source: str | list[str],
    out: Path | None,
    reading: ReadOptions,
    answers: Answers,
    profile: "Profile | None",
    device: str,
    precision: Literal["auto", "float32", "bfloat16"],
    meanings: dict[str, dict] | None,
    log: tuple[Path, str] | None = None,
) -> dict:
    """Predicts a table into a file, and reports the number of rows outside the training domain.

    Arguments are as in ``predict`` and ``predict_table``; ``log`` has a file and the name of the model.
    """
    with leaving_at_once():
        from graphormer_sepnorm.output.predict_table import predict_table
        from graphormer_sepnorm.predict.side_by_side import SideBySide
        from graphormer_sepnorm.runs.numbers import counted
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.tables.formats import refuse_missing

    if out is None and isinstance(source, str):
        refuse_missing(source)
        raise InputError("name the file to write: -o OUT.csv, or -o - for standard output")
    with computing(choose(device, precision)):
        say_independent(profile, predictor := load())
        watch = None
        if log is not None:
            from graphormer_sepnorm.project.log import log_into

            watch = log_into(log[0], predictor, log[1])
        result = predict_table(predictor, source, out or Path("-"), reading, answers, meanings, profile, watch)
    if rows := result["unfamiliar"]:
        count = f"{counted(rows, 'row')}{' of this call' * reading.resume} {'is' if rows == 1 else 'are'}"
        unjudged = " (similarity is not judged): --domain adds similarity and the column warning"
        columns = "columns that end with _warning" if isinstance(predictor, SideBySide) else "column warning"
        least, where = ("", f": see the {columns}") if answers.domain else ("at least ", unjudged)
        print(f"{least}{count} outside the training domain{where}", file=sys.stderr)
    if places := [f"{column} in {counted(rows, 'row')}" for column, rows in result["below_zero"].items() if rows]:
        print(
            f"below 0, although all training labels are above 0: {', '.join(places)}; read them as small positive "
            "values, or train with --log10, which predicts no negative values",
            file=sys.stderr,
        )
    if not result["rows"]:
        print("the input has a header but no rows", file=sys.stderr)
    return result


def read_profile(path: str | None) -> "Profile | None":
    """The profile in a file; None without one."""
    with leaving_at_once():
        from graphormer_sepnorm.project.profile import Profile

    return None if path is None else Profile.read(path)


def say_independent(profile: "Profile | None", predictor: "PredictingModel") -> None:
    """Says which errors the probability of success takes as independent, because their correlation is not known."""
    if profile and (pairs := profile.judge(predictor).independent):
        names = ", ".join(dict.fromkeys(name for pair in pairs for name in pair))
        print(f"taken as independent, as their correlation is unknown: the errors of {names}", file=sys.stderr)


def import_library(purpose: str = "a library") -> ModuleType:
    """The module that predicts libraries; raises InputError if one of its dependencies is not installed.

    Args:
        purpose: what needs it, for the message.
    """
    try:
        with leaving_at_once():
            from graphormer_sepnorm.library import run as library
    except ModuleNotFoundError as error:
        raise not_installed(purpose, str(error.name), "scale") from None
    return library


def refuse_unknown(models: list[str]) -> None:
    """Raises InputError for a model that does not exist, before anything else is asked for."""
    from graphormer_sepnorm.runs.zoo import resolve_model
    from graphormer_sepnorm.tables.formats import is_table_name

    for model in models:
        if is_table_name(model) and not Path(model).is_dir():  # as when the shell expands a pattern without quotes
            raise InputError(
                f"{model} is a table, not a model: name the model first, and put a pattern of files in quotes, such "
                'as "library/*.parquet"'
            )
        resolve_model(model)
