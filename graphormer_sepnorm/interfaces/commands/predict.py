"""``graphormer-sepnorm predict``."""

import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.options import Device, Precision, StripSalts, report_rows
from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.system.signals import leaving_at_once

OF_LIBRARY = ("--scheduler", "--workers", "--columns", "--keep-top", "--threshold", "--by", "--lowest")


@in_first_process
def predict(
    model_and_input: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL... INPUT",
            help="Models to average, then a table (CSV, .smi, SDF, .xlsx, .parquet, .gz, or -) or SMILES.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write: .csv, .tsv, .parquet, .xlsx, or - to print; of a library, a folder."
        ),
    ] = None,
    smiles_column: Annotated[str | None, typer.Option(help="Column of the input; by default smiles.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of the input; by default found in its header.")] = None,
    strip_salts: StripSalts = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be read.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the same command was stopped.")] = False,
    interval: Annotated[
        float | None, typer.Option(help="Confidence, such as 0.9, of intervals in columns NAME_low and NAME_high.")
    ] = None,
    domain: Annotated[
        bool, typer.Option("--domain", help="Compare each row with the training molecules, in more columns.")
    ] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    scheduler: Annotated[str | None, typer.Option(help="Of a library: address of a Dask scheduler.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Of a library: processes here; by default one a core.")
    ] = None,
    columns: Annotated[list[str] | None, typer.Option(help="Of a library: columns to keep; by default all.")] = None,
    keep_top: Annotated[int | None, typer.Option(min=1, help="Of a library: keep so many of the best rows.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Of a library: keep rows that reach it.")] = None,
    by: Annotated[str | None, typer.Option(help="Of a library: target that rows are kept by.")] = None,
    lowest: Annotated[bool, typer.Option("--lowest", help="Of a library: the lower, the better.")] = False,
) -> None:
    """Predict the targets of a model for every row of a table.

    INPUT is a file, or SMILES themselves: what follows the first MODEL and is no file, no folder, no shipped weights.
    Their predictions go to standard output if no file is named.

    MODEL is a run folder, a weights file, the name of shipped weights, or the folder of an ensemble. The output has
    the rows and columns of the input, a column per target and "error", which says why a row could not be read; several
    models give their mean, and their standard deviation in columns that end in "_std". A run folder of train --csv
    also holds what intervals and domain need. --domain adds "nearest", the most similar training molecule,
    "similarity", its Tanimoto similarity, "cls_distance", the smallest distance in the model's own space, and
    "warning", which names elements, charges and sizes that no training molecule has.

    A library is a folder, or a pattern in quotes such as "library/*.parquet": each of its files becomes a Parquet file
    in the folder -o, on all cores or on a Dask cluster; the same command goes on where it was stopped. One Parquet file
    is a library where -o is a folder, and a table where -o is a file.

    Example: graphormer-sepnorm predict zinc-subset molecules.csv -o predictions.csv
    """
    with leaving_at_once():
        from graphormer_sepnorm.inference.predict import stripping_salts
        from graphormer_sepnorm.inference.predict_table import models_and_source, predict_table
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.table_model.load import load_predicting_model
        from graphormer_sepnorm.tables.formats import is_library

    models, source = models_and_source(model_and_input)
    of_library = isinstance(source, str) and is_library(source, out)
    if of_library and out is None:
        raise InputError("name the folder to write: -o SCORES")
    if out is None and isinstance(source, str):
        raise InputError("name the file to write: -o OUT.csv, or -o - for standard output")
    started = time.perf_counter()
    refuse_tables(models)
    if of_library:
        if strip_salts:
            raise InputError("--strip-salts is for one table, not for a library")
        with computing(choose("cpu")):
            predictor = load_predicting_model(models)
        library = import_library()
        selection = library.choose_rows(predictor, by, keep_top, threshold, lowest)
        options = library.Options(
            selection, columns and tuple(columns), smiles_column, delimiter, strict, precision, interval, domain
        )
        result = library.predict_library(predictor, source, out, options, scheduler, workers, device)
    else:
        refuse_options_of_library(scheduler, workers, columns, keep_top, threshold, by, lowest or None)
        with computing(choose(device, precision)):
            predictor = load_predicting_model(models)
            if strip_salts:
                stripping_salts(predictor)
            result = predict_table(
                predictor,
                source,
                out or Path("-"),
                smiles_column,
                delimiter,
                strict,
                resume,
                interval=interval,
                domain=domain,
            )
        if result["unfamiliar"]:
            rows = result["unfamiliar"]
            where = "the column warning says what" if domain else "--domain says what"
            print(f"{rows} rows have what no training molecule has, so trust them less: {where}", file=sys.stderr)
    report_rows(result, time.perf_counter() - started)


def import_library() -> ModuleType:
    """The module that predicts libraries; raises InputError where what it stands on is not installed."""
    try:
        with leaving_at_once():
            from graphormer_sepnorm.library import run as library
    except ModuleNotFoundError as error:
        raise InputError(
            f"a library needs {error.name}, which is not installed: pip install 'graphormer_sepnorm[scale]'"
        ) from None
    return library


def refuse_tables(models: list[str]) -> None:
    """Raises InputError if a table stands where a model should: a pattern without quotes becomes all that it names."""
    from graphormer_sepnorm.tables.formats import is_table_name

    if tables := [model for model in models if is_table_name(model) and not Path(model).is_dir()]:
        raise InputError(f'{tables[0]} is no model: put a pattern of files in quotes, such as "library/*.parquet"')


def refuse_options_of_library(*values: object) -> None:
    """Raises InputError if an option is given that does nothing for one table."""
    if any(value is not None for value in values):
        raise InputError(f"{', '.join(OF_LIBRARY)} are for a library: a folder, a Parquet file or a pattern in quotes")
