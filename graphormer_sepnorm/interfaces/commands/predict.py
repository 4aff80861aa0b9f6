"""``graphormer-sepnorm predict``."""

import sys
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
    interval: Annotated[
        float | None, typer.Option(help="Confidence, such as 0.9, of intervals in columns NAME_low and NAME_high.")
    ] = None,
    domain: Annotated[
        bool, typer.Option("--domain", help="Compare each row with the training molecules, in three columns.")
    ] = False,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Predict the targets of a model for every row of a table.

    MODEL is a run folder, a weights file, the name of shipped weights, or the folder of an ensemble. The output has
    the rows and columns of the input, a column per target and "error", which says why a row could not be read; several
    models give their mean, and their standard deviation in columns that end in "_std". A run folder of train --csv
    also holds a forest that takes part, and what intervals and domain need. --domain adds "similarity", the largest
    Tanimoto similarity to a training molecule, "cls_distance", the smallest distance in the model's own space, and
    "warning", which names elements, charges and sizes that no training molecule has.

    Example: graphormer-sepnorm predict zinc-subset molecules.csv -o predictions.csv

    Example: graphormer-sepnorm predict runs/mine molecules.csv -o predictions.csv --interval 0.9 --domain
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
        predictor = load_predictor(models)
        result = predict_table(
            predictor, source, out, smiles_column, delimiter, strict, resume, interval=interval, domain=domain
        )
    if result["unfamiliar"]:
        rows = result["unfamiliar"]
        where = "the column warning says what" if domain else "--domain says what"
        print(f"{rows} rows have what no training molecule has, so trust them less: {where}", file=sys.stderr)
    report_rows(result, time.perf_counter() - started)
