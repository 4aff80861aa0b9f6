"""``graphormer-sepnorm embed``."""

import time
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.interfaces.commands.options import (
    Delimiter,
    Device,
    Precision,
    SmilesColumn,
    StripSalts,
    model_names,
    report_rows,
)
from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.options import ReadOptions
from graphormer_sepnorm.system.signals import leaving_at_once


@in_first_process
def embed(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Run folder, weights file, name of shipped weights, or minimol.",
            autocompletion=model_names,
        ),
    ],
    source: Annotated[str, typer.Argument(metavar="INPUT", help="A table: CSV, .smi, SDF, .xlsx, .parquet, or -.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="A file: .npz, .parquet, .csv, .tsv, .xlsx or .sdf.")],
    smiles_column: SmilesColumn = None,
    delimiter: Delimiter = None,
    sheet: Annotated[str | None, typer.Option(help="Sheet of an Excel INPUT.")] = None,
    strip_salts: StripSalts = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run of the same command.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Write the embedding of the CLS token for every row of a table, with its number, SMILES and error.

    With minimol as the model, the embeddings of MiniMol, for pretrain --teacher; that needs the extra "teacher".

    Example: graphormer-sepnorm embed foundation molecules.csv -o embeddings.npz
    """
    with leaving_at_once():
        from graphormer_sepnorm.output.embed_table import embed_table, find_embedder
        from graphormer_sepnorm.predict.predictors import stripping_salts
        from graphormer_sepnorm.system.device import choose, computing

    started = time.perf_counter()
    with computing(choose(device, precision)):
        embedder = find_embedder(model)
        if strip_salts:
            stripping_salts(embedder)
        result = embed_table(embedder, source, out, ReadOptions(smiles_column, delimiter, sheet, resume=resume))
    report_rows(result, time.perf_counter() - started)
