"""``graphormer-sepnorm export``."""

from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.system.signals import leaving_at_once


def export(
    run: shared.Run,
    out: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; it ends in .gsn.")],
    licence: Annotated[str | None, typer.Option(help="Licence of the model, such as CC-BY-4.0, for its card.")] = None,
) -> None:
    """Write a table model into one file, to share it.

    predict, explain, suggest, evaluate, serve and info open FILE as they open RUN, and so does load_model in Python. It
    has the training molecules and their labels, because the model predicts from them. Opening the file
    runs no code of its author.

    Example: graphormer-sepnorm export runs/assay assay.gsn --licence CC-BY-4.0
    """
    with leaving_at_once():
        from graphormer_sepnorm.project.export import export_model

    result = export_model(run, out, licence)
    molecules = f"{result['training_molecules']:,} training molecules and their labels"
    size = f"{result['bytes'] / 1e6:.1f} MB"
    shared.tell([f"{out}: {size}; whoever has it can read the {molecules}", f"licence: {result['licence']}"])
    shared.print_result(result)
