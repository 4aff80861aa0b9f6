"""``graphormer-sepnorm compare``."""

from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.system.signals import leaving_at_once


def compare(
    run: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders; the others are compared with the first.")
    ],
    plot: Annotated[Path | None, typer.Option(help="Picture of the differences to write: .png, .svg or .pdf.")] = None,
) -> None:
    """Compare runs on the test rows that all of them have, by a paired bootstrap of their scores.

    Example: graphormer-sepnorm compare runs/before runs/after --plot difference.png
    """
    with leaving_at_once():
        from graphormer_sepnorm.table_model import compare as comparing

    if plot is not None:
        comparing.check_picture(plot)
    compared = comparing.compare_runs(run)
    shared.tell(comparing.comparison_lines(compared))
    if plot is not None:
        comparing.plot_comparison(compared, plot)
    shared.print_result(compared)
