"""``graphormer-sepnorm predict``."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.options import Device, Precision, StripSalts, report_rows
from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.system.signals import leaving_at_once


@in_first_process
def predict(
    model_and_input: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL... INPUT",
            help="Models to average, then a table (CSV, .smi, SDF, .xlsx, .gz, or -) or SMILES.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write: .csv, .tsv for tabs, or - for standard output."),
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
        bool, typer.Option("--domain", help="Compare each row with the training molecules, in three columns.")
    ] = False,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Predict the targets of a model for every row of a table.

    INPUT is a file, or SMILES themselves: what follows the first MODEL and is no file, no folder, no shipped weights.
    Their predictions go to standard output if no file is named.

    MODEL is a run folder, a weights file, the name of shipped weights, or the folder of an ensemble. The output has
    the rows and columns of the input, a column per target and "error", which says why a row could not be read; several
    models give their mean, and their standard deviation in columns that end in "_std". A run folder of train --csv
    also holds a forest that takes part, and what intervals and domain need. --domain adds "similarity", the largest
    Tanimoto similarity to a training molecule, "cls_distance", the smallest distance in the model's own space, and
    "warning", which names elements, charges and sizes that no training molecule has.

    Example: graphormer-sepnorm predict zinc-subset molecules.csv -o predictions.csv

    Example: graphormer-sepnorm predict runs/mine molecules.csv -o predictions.csv --interval 0.9 --domain
    """
    with leaving_at_once():
        from graphormer_sepnorm.inference.predict import load_predictor, stripping_salts
        from graphormer_sepnorm.inference.predict_table import models_and_source, predict_table
        from graphormer_sepnorm.system.device import choose, computing

    models, source = models_and_source(model_and_input)
    if out is None and isinstance(source, str):
        raise InputError("name the file to write: -o OUT.csv, or -o - for standard output")
    started = time.perf_counter()
    with computing(choose(device, precision)):
        predictor = load_predictor(models)
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
