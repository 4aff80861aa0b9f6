"""``graphormer-sepnorm embed``."""

import time
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.options import ReadOptions
from graphormer_sepnorm.system.signals import leaving_at_once


def embed(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Network: a run folder, a weights file, a name such as foundation, or minimol.",
            autocompletion=shared.model_names,
        ),
    ],
    source: Annotated[str, typer.Argument(metavar="INPUT", help=f"A table: {shared.MOLECULE_TABLES}, or -.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="A file: .npz, .parquet, .csv, .tsv, .xlsx or .sdf.")],
    smiles_column: shared.SmilesColumn = None,
    delimiter: shared.Delimiter = None,
    sheet: Annotated[str | None, typer.Option(help="Sheet of an Excel INPUT.")] = None,
    strip_salts: shared.StripSalts = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run of the same command.")] = False,
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
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
    shared.report_rows(result, time.perf_counter() - started)
