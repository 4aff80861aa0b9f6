"""The commands on unmeasured molecules: ``predict``, ``suggest`` and ``embed``."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from graphormer_sepnorm.errors import InputError, not_installed
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.interfaces.commands.shared import ANSWERS, COMPUTING, OUTPUT, FieldsOf, argument, option
from graphormer_sepnorm.options import AS_FOUND, Answers, Option, Promise, ReadOptions, changed
from graphormer_sepnorm.runs.numbers import counted
from graphormer_sepnorm.system.signals import leaving_at_once

if TYPE_CHECKING:
    from graphormer_sepnorm.predict.predictors import PredictingModel
    from graphormer_sepnorm.project.profile import Profile

RANKING, BY = "Ranking", "By default confidence-bound, or prediction for classes."
RankedBy = Annotated[Promise | None, option(BY, panel=RANKING)]
NETWORK = "Network: a run folder, a weights file, a name such as foundation, or minimol."
FILE = "A file: .csv, .tsv, .parquet, .xlsx, .sdf"
WHAT = f"Each MODEL is a {shared.MODEL}. INPUT is SMILES, or a table: {shared.MOLECULE_TABLES}, or - for CSV."


@dataclass(frozen=True)
class LibraryOptions:
    scheduler: Annotated[str | None, Option("Address of a Dask scheduler.")] = None
    workers: Annotated[int | None, Option("Processes here; by default one per core.")] = None
    columns: Annotated[tuple[str, ...], Option("Columns of the input to keep; by default all.")] = ()
    keep_top: Annotated[int | None, Option("Keep the best N rows.")] = None
    threshold: Annotated[float | None, Option("Least prediction of rows to keep; with --lowest, the highest.")] = None
    by: Annotated[str | None, Option("Target for --keep-top and --threshold.")] = None
    lowest: Annotated[bool, Option("Keep low predictions instead of high ones.")] = False

    def __post_init__(self) -> None:
        for name, number in (("--workers", self.workers), ("--keep-top", self.keep_top)):
            if number is not None and number < 1:
                raise InputError(f"{name} {number} is less than 1")


def predict(
    *,
    model_and_input: Annotated[list[str], argument("MODEL... INPUT", WHAT, shared.predicting_names)],
    out: Annotated[Path | None, option(f"{FILE}, or -; of a library, a folder.", *OUTPUT, panel=ANSWERS)] = None,
    answers: Annotated[Answers, FieldsOf(Answers, panel=ANSWERS)],
    profile: shared.Profile = None,
    log: Annotated[Path | None, option("CSV to add the predictions to, for the command update.", panel=ANSWERS)] = None,
    reading: Annotated[ReadOptions, FieldsOf(ReadOptions, panel=shared.READING)],
    strip_salts: shared.StripSalts = False,
    condition: shared.Conditions = None,
    library: Annotated[LibraryOptions, FieldsOf(LibraryOptions, panel="For a library")],
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
) -> None:
    """Predict properties of molecules: of every row of a table, or of SMILES.

    Without -o, predictions of SMILES are printed: as lines on a terminal, else as CSV.

    The output has the rows and columns of the input, a column per target, and "error" with the reason if a row cannot
    be read. Several models get columns of their own; networks of the same targets are averaged, with their standard
    deviation in columns that end in "_std". --interval and --domain need admet, adme or a run folder of train FILE.
    --domain adds the most similar training molecule, similarity and distance, and "warning", which names what no
    training molecule has.

    A library is a folder, or a pattern in quotes such as "library/*.parquet". Each of its files becomes a Parquet file
    in the folder -o, on all cores or on a Dask cluster; after an interruption, repeat the command to continue.

    Example: graphormer-sepnorm predict adme molecules.csv -o predictions.csv
    """
    from graphormer_sepnorm.output.columns import PredictionColumns
    from graphormer_sepnorm.output.predict_table import models_and_source, predict_table
    from graphormer_sepnorm.project.log import log_into
    from graphormer_sepnorm.runs.zoo import card_endpoints, resolve_model
    from graphormer_sepnorm.table_model.load import digests_of
    from graphormer_sepnorm.tables.formats import is_library
    from graphormer_sepnorm.tables.formats.text import refuse_missing
    from graphormer_sepnorm.tables.prepared_table import learnt_column

    models, source = models_and_source(model_and_input)
    judge, conditions, started = begin(models, profile), shared.read_conditions(condition), time.perf_counter()
    of_library, for_people = isinstance(source, str) and is_library(source, out), out is None and sys.stdout.isatty()
    if of_library and log is not None:
        raise InputError("--log is for tables and SMILES, not for a library")
    if of_library and reading.sheet is not None:
        raise InputError("--sheet is for a workbook, not for a library")
    if of_library and out in (None, Path("-")):
        raise InputError("name the folder to write: -o SCORES")
    if not of_library and (misplaced := changed(library)):
        names, verb = ", ".join(misplaced), "is" if len(misplaced) == 1 else "are"
        raise InputError(f"{names} {verb} for a library: a folder, a Parquet file or a pattern in quotes")
    if isinstance(source, str) and not of_library and reading.smiles_column is None:
        column = learnt_column(map(resolve_model, models), source, reading.delimiter, reading.sheet)
        reading = replace(reading, smiles_column=column)
    if out is None and isinstance(source, str):
        refuse_missing(source)
        raise InputError("name the file to write: -o OUT.csv, or -o - for standard output")
    if of_library:
        check_library("a library")
    with shared.computing(*(("cpu",) if of_library else (device, precision))):
        predictor, digests = load_for(models, strip_salts, conditions, judge), digests_of(models)
        if of_library:
            from graphormer_sepnorm.library import part_writer as parts
            from graphormer_sepnorm.library import run

            targets = PredictionColumns(predictor, answers).targets
            rows = run.choose_rows(targets, library.by, library.keep_top, library.threshold, library.lowest)
            of_rows = (tuple(library.columns) or None, reading.smiles_column, reading.delimiter, reading.strict)
            options = parts.PartOptions(rows, *of_rows, precision, answers, profile=judge)
            where = parts.Processes(library.scheduler, library.workers, device)
            result = run.predict_library(predictor, str(source), out or Path("-"), options, where)
        else:
            cards = [card_endpoints(resolve_model(model)) for model in models] if for_people else []
            meanings = {target: of for each in cards for target, of in each.items()} if for_people else None
            watch = None if log is None else log_into(log, predictor, ", ".join(models), digests)
            told = (meanings, judge, watch, about(models, out))
            result = predict_table(predictor, source, out or Path("-"), reading, answers, *told)
            shared.tell(lines_on_rows(result, predictor, answers))
    if for_people:
        shared.tell([f"{result['rows'] - result['unreadable']} of {result['rows']} molecules predicted"])
    else:
        shared.report_rows(result | {"digest": ", ".join(digests.values())}, time.perf_counter() - started)


def begin(models: list[str], profile: str | None) -> "Profile | None":
    """The profile in a file, if any; raises InputError for names that are no models."""
    from graphormer_sepnorm.project.profile import Profile
    from graphormer_sepnorm.runs.zoo import resolve_model
    from graphormer_sepnorm.tables.formats import is_table_name

    for model in models:
        if is_table_name(model) and not Path(model).is_dir():  # as when the shell expands a pattern without quotes
            advice = 'name the model first, and put a pattern of files in quotes, such as "library/*.parquet"'
            raise InputError(f"{model} is a table, not a model: {advice}")
        resolve_model(model)
    return None if profile is None else Profile.read(profile)


def load_for(
    models: list[str], strip_salts: bool, conditions: dict[str, str], judge: "Profile | None" = None
) -> "PredictingModel":
    """Loads models, to predict under conditions that are the same for all molecules.

    Says if training is unfinished, and which errors the probability of success takes as independent, as nothing is
    known of their correlation.
    """
    with leaving_at_once():
        from graphormer_sepnorm.predict.predictors import stripping_salts
        from graphormer_sepnorm.predict.side_by_side import parts_of
        from graphormer_sepnorm.table_model.load import load_predicting_model, unfinished

    predictor = load_predicting_model(models).under(conditions)
    shared.tell(unfinished(models))
    for model in parts_of(predictor) if strip_salts else ():
        stripping_salts(model)
    if judge and (pairs := judge.judge(predictor).independent):
        names = ", ".join(dict.fromkeys(name for pair in pairs for name in pair))
        shared.tell([f"taken as independent, as their correlation is unknown: the errors of {names}"])
    return predictor


def about(models: list[str], out: Path | None) -> list[tuple[str, str]]:
    """Facts about the origin of predictions, for a workbook; none for another file."""
    if out is None or out.suffix.lower() != ".xlsx":
        return []
    from graphormer_sepnorm.table_model.evaluate import about_models

    return about_models(models)


def lines_on_rows(result: dict, predictor: "PredictingModel", answers: Answers) -> Iterator[str]:
    """Sentences on rows outside the domain of the training molecules, values below 0, and a table without rows."""
    from graphormer_sepnorm.predict.side_by_side import SideBySide

    if rows := result["unfamiliar"]:
        count = f"{counted(rows, 'row')} {'is' if rows == 1 else 'are'}"
        unjudged = " (similarity is not judged): --domain adds similarity and the column warning"
        columns = "columns that end with warning" if isinstance(predictor, SideBySide) else "column warning"
        least, where = ("", f": see the {columns}") if answers.domain else ("at least ", unjudged)
        some = " of at least one target" if len(predictor.targets) > 1 else ""
        yield f"{least}{count} outside the domain of the training molecules{some}{where}"
    yield from (f"{counted(rows, 'row')}: {sentence}" for sentence, rows in result["missing_conditions"].items())
    if places := [f"{column} in {counted(rows, 'row')}" for column, rows in result["below_zero"].items() if rows]:
        advice = "read them as small positive values, or train with --log10, which predicts no negative values"
        yield f"below 0, although all training labels are above 0: {', '.join(places)}; {advice}"
    if not result["rows"]:
        yield "the input has a header but no rows"


def check_library(purpose: str) -> None:
    """Raises InputError if a package that predicts libraries is not installed."""
    try:
        import graphormer_sepnorm.library.run  # noqa: F401
    except ModuleNotFoundError as error:
        raise not_installed(purpose, str(error.name), "scale") from None


def suggest(
    model: Annotated[list[str], argument("MODEL...", "Run folder of train FILE; several for a profile of them.")],
    library: Annotated[str, argument("LIBRARY", "A table, a folder of tables, or a pattern of them in quotes.")],
    out: Annotated[Path | None, option(f"{FILE}.", *OUTPUT, panel=ANSWERS)] = None,
    count: Annotated[int, option("How many molecules.", "-n", panel=ANSWERS)] = 50,
    alerts: Annotated[bool, option("Name structural alerts in a column.", "--alerts", panel=ANSWERS)] = False,
    properties: Annotated[bool, option("Add weight, logP, TPSA and others.", "--properties", panel=ANSWERS)] = False,
    profile: shared.Profile = None,
    target: Annotated[str | None, option("Target to optimize, required if there are several.", panel=RANKING)] = None,
    minimize: Annotated[bool, option("Direction of the optimization.", "--minimize/--maximize", panel=RANKING)] = False,
    by: RankedBy = None,
    best: Annotated[float | None, option("Value to exceed; by default the best training label.", panel=RANKING)] = None,
    kappa: Annotated[float, option("Number of standard deviations of the confidence bound.", panel=RANKING)] = 1.0,
    distance: Annotated[float, option("Minimum Tanimoto distance between two molecules; 0: any.", panel=RANKING)] = 0.3,
    reading: shared.ReadingText = AS_FOUND,
    condition: shared.Conditions = None,
    scheduler: Annotated[str | None, option("Address of a Dask scheduler.", panel=COMPUTING)] = None,
    workers: Annotated[int | None, option("Processes here; by default one per core.", panel=COMPUTING, min=1)] = None,
    device: Annotated[str, option("Where each process computes, as in predict.", panel=COMPUTING)] = "cpu",
) -> None:
    """Choose the molecules of a library to measure next: promising and diverse ones.

    Molecules are chosen in the order of --by or of a profile, except those that are closer than --distance (Tanimoto)
    to one chosen before. Measured molecules are left out, and those with elements, charges, sizes or parts that no
    training molecule has come last. The output has the columns of the library and of predict --domain. Without -o, a
    CSV is printed; a terminal shows the first 10 molecules.

    Example: graphormer-sepnorm suggest runs/mine library.csv -n 50 -o next.csv
    """
    judge = begin(model, profile)
    check_library("suggest")
    from graphormer_sepnorm.library.part_writer import PartOptions, Processes, Selection
    from graphormer_sepnorm.library.suggest import SHOWN, SuggestRequest
    from graphormer_sepnorm.library.suggest import suggest as suggest_molecules
    from graphormer_sepnorm.predict.side_by_side import one_model
    from graphormer_sepnorm.tasks import TASKS

    request = SuggestRequest(count, by or "confidence-bound", target, minimize, best, kappa, distance, judge)
    started, for_people = time.perf_counter(), out is None and sys.stdout.isatty()
    with shared.computing("cpu"):
        predictor = load_for(model, False, shared.read_conditions(condition), judge)
        if judge is None:
            predictor, target = one_model(predictor, target)
            request = replace(request, target=target)
            if by is None and TASKS[predictor.kind].predicts_probabilities:
                request = replace(request, by="prediction")
                shared.tell(["ranked by the predicted probability (--by prediction): the model has classes"])
        answers = Answers(alerts=alerts, properties=properties)
        options = PartOptions(Selection(""), None, reading.smiles_column, reading.delimiter, answers=answers)
        told = (Processes(scheduler, workers, device), for_people, about(model, out))
        result = suggest_molecules(predictor, library, out or Path("-"), request, options, *told)
    shared.tell(lines_on_suggestions(result, count, SHOWN if for_people else count))
    if result["output"] != "-":
        shared.print_result({**result, "seconds": round(time.perf_counter() - started, 3)})


def lines_on_suggestions(result: dict, asked: int, most_shown: int) -> Iterator[str]:
    """How many molecules are suggested, and why others are not; a terminal shows ``most_shown`` of them."""
    suggested, where = result["suggested"], "" if result["output"] == "-" else f"{result['output']}: "
    unread = f", {counted(result['unreadable'], 'row')} unreadable" if result["unreadable"] else ""
    yield f"{where}{suggested:,} molecules of {counted(result['rows'], 'row')}{unread}"
    if suggested > most_shown:
        yield f"shown: the first {most_shown}; -o FILE writes all of them, with all columns"
    if result["left_out"]:
        yield f"best rows left out, as measured already or as a repeated molecule: {result['left_out']:,}"
    if result["put_last"]:
        count = f"{result['put_last']:,}, of which {result['suggested_last']:,} are suggested"
        yield f"ranked last, with an element, a charge, a size or parts that no training molecule has: {count}"
    if result["unlike"]:
        limit = f"Tanimoto similarity below {result['usual_similarity']:.2f}"
        count = f"{result['unlike']:,} of {suggested:,}; the column warning or similarity names them"
        yield f"suggested molecules outside the domain ({limit}), whose predictions are guesses: {count}"
    if suggested < asked:
        yield f"these are all: -n {asked:,} is more than the library has of new, readable molecules"


def embed(
    model: Annotated[str, argument("MODEL", NETWORK, shared.model_names)],
    source: Annotated[str, argument("INPUT", f"A table: {shared.MOLECULE_TABLES}, or -.")],
    out: Annotated[Path, option("A file: .npz, .parquet, .csv, .tsv, .xlsx or .sdf.", *OUTPUT)],
    reading: Annotated[ReadOptions, FieldsOf(ReadOptions, without=("strict",), panel=shared.READING)] = AS_FOUND,
    strip_salts: shared.StripSalts = False,
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
) -> None:
    """Write the embedding of the CLS token for every row of a table, with its number, SMILES and error.

    With minimol as the model, the embeddings of MiniMol, for pretrain --teacher; that needs the extra "teacher".

    Example: graphormer-sepnorm embed foundation molecules.csv -o embeddings.npz
    """
    from graphormer_sepnorm.output.embed_table import embed_table, find_embedder
    from graphormer_sepnorm.predict.predictors import stripping_salts

    started = time.perf_counter()
    with shared.computing(device, precision):
        embedder = find_embedder(model)
        if strip_salts:
            stripping_salts(embedder)
        result = embed_table(embedder, source, out, reading)
    shared.report_rows(result, time.perf_counter() - started)
