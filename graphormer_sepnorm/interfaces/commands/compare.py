"""``graphormer-sepnorm compare``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.interfaces.commands.options import print_result
from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.system.signals import leaving_at_once


@in_first_process
def compare(
    run: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Run folders; the others are compared with the first.")
    ],
    plot: Annotated[Path | None, typer.Option(help="Picture of the differences to write: .png, .svg or .pdf.")] = None,
) -> None:
    """Compare runs on the test rows that all of them have, by a paired bootstrap of their scores.

    Example: graphormer-sepnorm compare runs/before runs/after --plot difference.png
    """
    with leaving_at_once():
        from graphormer_sepnorm.table_model.compare import (
            check_picture,
            compare_runs,
            comparison_lines,
            plot_comparison,
        )

    if plot is not None:
        check_picture(plot)
    compared = compare_runs(run)
    print("\n".join(comparison_lines(compared)), file=sys.stderr)
    if plot is not None:
        plot_comparison(compared, plot)
    print_result(compared)
