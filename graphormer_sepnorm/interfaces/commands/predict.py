"""``graphormer-sepnorm predict``."""

import time
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.options import Device, Precision, report_rows
from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.system.signals import leaving_at_once


@in_first_process
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
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Predict the targets of a model for every row of a table.

    MODEL is a run folder, a weights file, the name of shipped weights, or the folder of an ensemble. The output has
    the rows and columns of the input, a column per target and "error", which says why a row could not be read; several
    models give their mean, and their standard deviation in columns that end in "_std".

    Example: graphormer-sepnorm predict zinc-subset molecules.csv -o predictions.csv
    """
    *models, source = model_and_input
    if not models:
        raise InputError("name a model and an input: graphormer-sepnorm predict MODEL INPUT -o OUT.csv")
    with leaving_at_once():
        from graphormer_sepnorm.inference.predict import load_predictor
        from graphormer_sepnorm.inference.predict_table import predict_table
        from graphormer_sepnorm.system.device import choose, computing

    started = time.perf_counter()
    with computing(choose(device, precision)):
        result = predict_table(load_predictor(models), source, out, smiles_column, delimiter, strict, resume)
    report_rows(result, time.perf_counter() - started)
