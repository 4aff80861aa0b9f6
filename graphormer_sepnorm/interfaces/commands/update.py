"""``graphormer-sepnorm update``."""

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.interfaces.commands.options import (
    LABELLED_TABLES,
    Delimiter,
    Device,
    SmilesColumn,
    predicting_names,
    print_result,
    score_words,
)
from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.runs.numbers import counted
from graphormer_sepnorm.system.signals import leaving_at_once


@in_first_process
def update(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Run folder of a table model.", autocompletion=predicting_names)
    ],
    table: Annotated[str, typer.Argument(metavar="FILE", help=f"New measurements: {LABELLED_TABLES}.")],
    out: Annotated[
        Path | None, typer.Option(help="Run folder to write; by default RUN-update-1, or the next number.")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Log of predict --log, with earlier predictions.")] = None,
    smiles_column: SmilesColumn = None,
    delimiter: Delimiter = None,
    same_unit: Annotated[
        bool, typer.Option("--same-unit", help="Accept labels that look as if they were in another unit.")
    ] = False,
    device: Device = "auto",
) -> None:
    """Score a model on new measurements, and fit it again to all rows.

    FILE has the columns of the table of RUN, and only new rows. RUN predicts them first: prospective.csv in --out keeps
    these predictions, and over-time.html shows errors, bias and coverage by month or update, with an alarm where chance
    does not explain them. Then a model with the settings of RUN is fitted to all rows. RUN stays as it is. After an
    interruption, repeat the command.

    Example: graphormer-sepnorm update runs/assay november.csv
    """
    with leaving_at_once():
        from graphormer_sepnorm.project.update import PAGE, update_run
        from graphormer_sepnorm.system.device import choose, computing

    started = time.perf_counter()
    with computing(choose(device)):
        result = update_run(run, table, out, log, smiles_column, delimiter, same_unit)
    folder = Path(result["out"])
    for target, periods in result["prospective"].items():
        for each in periods:
            inside = f", {each['held']} of {each['intervals']} inside 90 % intervals" if each["intervals"] else ""
            words = f"mean error {each['error']:.3g}, bias {each['bias']:.2g}{inside}"
            print(f"{each['name']}, {target}: {counted(each['n'], 'measurement')}, {words}", file=sys.stderr)
    seconds = time.perf_counter() - started
    print(f"{folder}: {result['split']} {score_words(result)}, {seconds:.0f} s", file=sys.stderr)
    print(f"open {shlex.quote(str(folder / PAGE))} in a browser for the predictions over time", file=sys.stderr)
    print_result(result)
