"""The commands on a finished table model: ``export`` and ``update``."""

import shlex
import time
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


def update(
    run: shared.Run,
    table: Annotated[str, typer.Argument(metavar="FILE", help=f"New measurements: {shared.LABELLED_TABLES}.")],
    out: Annotated[
        Path | None, typer.Option(help="Run folder to write; by default RUN-update-1, or the next number.")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Log of predict --log, with earlier predictions.")] = None,
    smiles_column: shared.SmilesColumn = None,
    delimiter: shared.Delimiter = None,
    same_unit: Annotated[
        bool, typer.Option("--same-unit", help="Accept labels that look as if they were in another unit.")
    ] = False,
    device: shared.Device = "auto",
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
        from graphormer_sepnorm.runs.numbers import counted
        from graphormer_sepnorm.system.device import choose, computing

    started = time.perf_counter()
    with computing(choose(device)):
        result = update_run(run, table, out, log, smiles_column, delimiter, same_unit)
    folder = Path(result["out"])
    for target, periods in result["prospective"].items():
        for each in periods:
            inside = f", {each['held']} of {each['intervals']} inside 90 % intervals" if each["intervals"] else ""
            words = f"mean error {each['error']:.3g}, bias {each['bias']:.2g}{inside}"
            shared.tell([f"{each['name']}, {target}: {counted(each['n'], 'measurement')}, {words}"])
    seconds = time.perf_counter() - started
    shared.tell([f"{folder}: {result['split']} {shared.score_words(result)}, {seconds:.0f} s"])
    shared.tell([f"open {shlex.quote(str(folder / PAGE))} in a browser for the predictions over time"])
    shared.print_result(result)
