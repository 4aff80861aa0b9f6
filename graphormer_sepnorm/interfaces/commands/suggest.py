"""``graphormer-sepnorm suggest``."""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.interfaces.commands.options import (
    Conditions,
    Delimiter,
    SmilesColumn,
    print_result,
    read_conditions,
    say_unfinished,
)
from graphormer_sepnorm.interfaces.commands.predict import (
    import_library,
    is_for_people,
    read_profile,
    refuse_unknown,
    say_independent,
)
from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.options import Promise
from graphormer_sepnorm.system.signals import leaving_at_once


@in_first_process
def suggest(
    model: Annotated[
        list[str],
        typer.Argument(metavar="MODEL...", help="Run folder of a model of your table; several for a profile of them."),
    ],
    library: Annotated[
        str, typer.Argument(metavar="LIBRARY", help="A table, a folder of tables, or a pattern of them in quotes.")
    ],
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write: .csv, .tsv, .parquet, .xlsx or .sdf.")
    ] = None,
    count: Annotated[int, typer.Option("-n", help="How many molecules.")] = 50,
    target: Annotated[
        str | None, typer.Option(help="Target to optimize; required for a model of several targets.")
    ] = None,
    minimize: Annotated[bool, typer.Option("--minimize/--maximize", help="Direction of the optimization.")] = False,
    profile: Annotated[
        str | None,
        typer.Option(help="File .toml that says what a good molecule is: rank by the probability that it is one."),
    ] = None,
    by: Annotated[
        Promise | None,
        typer.Option(help="How molecules are ranked: by default confidence-bound, or prediction for classes."),
    ] = None,
    best: Annotated[float | None, typer.Option(help="Value to exceed; by default the best training label.")] = None,
    kappa: Annotated[float, typer.Option(help="Number of standard deviations of the confidence bound.")] = 1.0,
    distance: Annotated[float, typer.Option(help="Minimum Tanimoto distance between two molecules; 0: any.")] = 0.3,
    smiles_column: SmilesColumn = None,
    delimiter: Delimiter = None,
    condition: Conditions = None,
    alerts: Annotated[bool, typer.Option("--alerts", help="Name structural alerts in a column.")] = False,
    properties: Annotated[bool, typer.Option("--properties", help="Add weight, logP, TPSA and others.")] = False,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes here; by default one per core.")] = None,
    device: Annotated[str, typer.Option(help="Where each process computes, as in predict.")] = "cpu",
) -> None:
    """Choose the molecules of a library to measure next: promising and diverse ones.

    Molecules are ranked by a confidence bound, by the expected improvement over the best measured value, by their
    predictions, or by the probability that all criteria of a profile hold. They are chosen in this order, except those
    that are closer than --distance (Tanimoto) to one chosen before. Measured molecules are left out, and those with
    elements, charges, sizes or parts that no training molecule has come last. The output has the columns of the library
    and of predict --domain. Without -o, a CSV is printed; a terminal shows the first 10 molecules.

    Example: graphormer-sepnorm suggest runs/mine library.csv -n 50 -o next.csv
    """
    refuse_unknown(model)
    import_library("suggest")
    with leaving_at_once():
        from graphormer_sepnorm.library.part_writer import PartOptions, Selection
        from graphormer_sepnorm.library.suggest import SHOWN, SuggestRequest
        from graphormer_sepnorm.library.suggest import suggest as suggest_molecules
        from graphormer_sepnorm.predict.answers import Answers
        from graphormer_sepnorm.predict.side_by_side import one_model
        from graphormer_sepnorm.runs.numbers import counted
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.table_model.load import load_predicting_model
        from graphormer_sepnorm.tasks import TASKS

    request = SuggestRequest(
        count, by or "confidence-bound", target, minimize, best, kappa, distance, read_profile(profile)
    )
    started, for_people = time.perf_counter(), is_for_people(out)
    with computing(choose("cpu")):
        predictor = load_predicting_model(model).under(read_conditions(condition))
        if not request.profile:
            predictor, target = one_model(predictor, target)
            request = replace(request, target=target)
        say_unfinished(model)
        if request.profile:
            say_independent(request.profile, predictor)
        elif by is None and TASKS[predictor.kind].predicts_probabilities:
            request = replace(request, by="prediction")
            print("ranked by the predicted probability (--by prediction): the model has classes", file=sys.stderr)
        options = PartOptions(
            Selection(""),
            smiles_column=smiles_column,
            delimiter=delimiter,
            answers=Answers(alerts=alerts, properties=properties),
        )
        written = out or Path("-")
        result = suggest_molecules(
            predictor, library, written, request, options, scheduler, workers, device, for_people
        )
    where = "" if result["output"] == "-" else f"{out}: "
    unread = f", {counted(result['unreadable'], 'row')} unreadable" if result["unreadable"] else ""
    print(f"{where}{result['suggested']:,} molecules of {counted(result['rows'], 'row')}{unread}", file=sys.stderr)
    if for_people and result["suggested"] > SHOWN:
        print(f"shown: the first {SHOWN}; -o FILE writes all of them, with all columns", file=sys.stderr)
    for line in lines_on_others(result):
        print(line, file=sys.stderr)
    if result["suggested"] < count:
        print(f"these are all: -n {count:,} is more than the library has of new, readable molecules", file=sys.stderr)
    if where:
        print_result({**result, "seconds": round(time.perf_counter() - started, 3)})


def lines_on_others(result: dict) -> Iterator[str]:
    """Sentences on molecules that were left out, ranked last, or are unlike all training molecules."""
    if result["left_out"]:
        yield f"best rows left out, as measured already or as a repeated molecule: {result['left_out']:,}"
    if result["put_last"]:
        yield (
            "molecules ranked last, with an element, a charge, a size or parts that no training molecule has: "
            f"{result['put_last']:,}, of which {result['suggested_last']:,} are suggested"
        )
    if result["unlike"]:
        yield (
            f"suggested molecules unlike all training molecules (Tanimoto similarity below "
            f"{result['usual_similarity']:.2f}), whose predictions are guesses: {result['unlike']:,} of "
            f"{result['suggested']:,}; the column warning or similarity names them"
        )
