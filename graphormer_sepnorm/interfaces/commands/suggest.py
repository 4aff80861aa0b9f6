import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.interfaces.commands import predict as predicting
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.interfaces.commands.shared import ANSWERS, COMPUTING, option
from graphormer_sepnorm.options import Promise
from graphormer_sepnorm.system.signals import leaving_at_once

RANKING = "Ranking"


def suggest(
    model: Annotated[
        list[str],
        typer.Argument(metavar="MODEL...", help="Run folder of a model of your table; several for a profile of them."),
    ],
    library: Annotated[
        str, typer.Argument(metavar="LIBRARY", help="A table, a folder of tables, or a pattern of them in quotes.")
    ],
    out: Annotated[
        Path | None, option(ANSWERS, "File to write: .csv, .tsv, .parquet, .xlsx or .sdf.", "--output", "-o")
    ] = None,
    count: Annotated[int, option(ANSWERS, "How many molecules.", "-n")] = 50,
    alerts: Annotated[bool, option(ANSWERS, "Name structural alerts in a column.", "--alerts")] = False,
    properties: Annotated[bool, option(ANSWERS, "Add weight, logP, TPSA and others.", "--properties")] = False,
    profile: shared.Profile = None,
    target: Annotated[
        str | None, option(RANKING, "Target to optimize; required for a model of several targets.")
    ] = None,
    minimize: Annotated[bool, option(RANKING, "Direction of the optimization.", "--minimize/--maximize")] = False,
    by: Annotated[
        Promise | None,
        option(RANKING, "How molecules are ranked: by default confidence-bound, or prediction for classes."),
    ] = None,
    best: Annotated[float | None, option(RANKING, "Value to exceed; by default the best training label.")] = None,
    kappa: Annotated[float, option(RANKING, "Number of standard deviations of the confidence bound.")] = 1.0,
    distance: Annotated[float, option(RANKING, "Minimum Tanimoto distance between two molecules; 0: any.")] = 0.3,
    smiles_column: shared.SmilesColumn = None,
    delimiter: shared.Delimiter = None,
    condition: shared.Conditions = None,
    scheduler: Annotated[str | None, option(COMPUTING, "Address of a Dask scheduler.")] = None,
    workers: Annotated[int | None, option(COMPUTING, "Processes here; by default one per core.", min=1)] = None,
    device: Annotated[str, option(COMPUTING, "Where each process computes, as in predict.")] = "cpu",
) -> None:
    """Choose the molecules of a library to measure next: promising and diverse ones.

    Molecules are ranked by a confidence bound, by the expected improvement over the best measured value, by their
    predictions, or by the probability that all criteria of a profile hold. They are chosen in this order, except those
    that are closer than --distance (Tanimoto) to one chosen before. Measured molecules are left out, and those with
    elements, charges, sizes or parts that no training molecule has come last. The output has the columns of the library
    and of predict --domain. Without -o, a CSV is printed; a terminal shows the first 10 molecules.

    Example: graphormer-sepnorm suggest runs/mine library.csv -n 50 -o next.csv
    """
    predicting.refuse_unknown(model)
    predicting.import_library("suggest")
    with leaving_at_once():
        from graphormer_sepnorm.library.part_writer import PartOptions, Selection
        from graphormer_sepnorm.library.suggest import SHOWN, SuggestRequest
        from graphormer_sepnorm.library.suggest import suggest as suggest_molecules
        from graphormer_sepnorm.predict.answers import Answers
        from graphormer_sepnorm.predict.side_by_side import one_model
        from graphormer_sepnorm.runs.numbers import counted
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.tasks import TASKS

    request = SuggestRequest(
        count, by or "confidence-bound", target, minimize, best, kappa, distance, predicting.read_profile(profile)
    )
    started, for_people = time.perf_counter(), predicting.is_for_people(out)
    with computing(choose("cpu")):
        predictor = predicting.load_for(model, False, shared.read_conditions(condition))
        if not request.profile:
            predictor, target = one_model(predictor, target)
            request = replace(request, target=target)
        if request.profile:
            predicting.say_independent(request.profile, predictor)
        elif by is None and TASKS[predictor.kind].predicts_probabilities:
            request = replace(request, by="prediction")
            shared.tell(["ranked by the predicted probability (--by prediction): the model has classes"])
        answers = Answers(alerts=alerts, properties=properties)
        options = PartOptions(Selection(""), smiles_column=smiles_column, delimiter=delimiter, answers=answers)
        scheduling = (scheduler, workers, device, for_people)
        result = suggest_molecules(predictor, library, out or Path("-"), request, options, *scheduling)
    where = "" if result["output"] == "-" else f"{out}: "
    unread = f", {counted(result['unreadable'], 'row')} unreadable" if result["unreadable"] else ""
    shared.tell([f"{where}{result['suggested']:,} molecules of {counted(result['rows'], 'row')}{unread}"])
    if for_people and result["suggested"] > SHOWN:
        shared.tell([f"shown: the first {SHOWN}; -o FILE writes all of them, with all columns"])
    shared.tell(lines_on_others(result))
    if result["suggested"] < count:
        shared.tell([f"these are all: -n {count:,} is more than the library has of new, readable molecules"])
    if where:
        shared.print_result({**result, "seconds": round(time.perf_counter() - started, 3)})


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
