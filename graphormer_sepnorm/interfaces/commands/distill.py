"""``graphormer-sepnorm distill``."""

import time
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.system.signals import leaving_at_once


def distill(
    run: shared.Run,
    library: Annotated[str, typer.Argument(metavar="LIBRARY", help="Table of molecules like those to predict.")],
    out: Annotated[Path, typer.Option(help="Folder for the student.")],
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the molecules.")] = 12,
    smiles_column: shared.SmilesColumn = None,
    device: shared.Device = "auto",
) -> None:
    """Train a small network that imitates a model of your table, to predict libraries of millions with it.

    The student learns the predictions of the model for the molecules of LIBRARY and for the training molecules. Tens of
    thousands of molecules are best, analogues of those to predict. Its intervals are calibrated on the test rows of
    RUN, and both are scored on them. After an interruption, the same command continues.

    Example: graphormer-sepnorm distill runs/assay library.smi --out runs/student
    """
    with leaving_at_once():
        from graphormer_sepnorm.runs.folder import RunFolder
        from graphormer_sepnorm.runs.zoo import resolve_model
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.table_model.distill import distill as distill_model
        from graphormer_sepnorm.table_model.model import TableModel
        from graphormer_sepnorm.tables.formats import rows_of

    started, source = time.perf_counter(), RunFolder(resolve_model(run))
    if not source.stack.exists():
        raise InputError(f"{run} is not the run folder of one table model: name a run of train FILE")
    smiles = [row.smiles for row in rows_of(library, smiles_column)]
    with computing(choose(device)):
        result = distill_model(TableModel.load(source.path), source, smiles, out, epochs)
    shared.print_result({**result, "output": str(out), "seconds": round(time.perf_counter() - started, 1)})
