"""The commands on models: all but those in ``train`` and ``predict``."""

import math
import shlex
import time
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.interfaces.commands.shared import OUTPUT, argument, option
from graphormer_sepnorm.options import AS_FOUND, changed
from graphormer_sepnorm.runs.numbers import counted, significant
from graphormer_sepnorm.system.signals import interruptible

METHODS = (
    "gradients: atom contributions to the prediction, of kernel and forest by masking atoms; "
    "attention: shares of the CLS token's attention."
)
MEASURES = ("effective_rank", "uniformity", "isotropy")
MOST_DESCRIBED = 3  # molecules whose explanations are printed in words


def evaluate(
    run: Annotated[list[str], argument("RUN...", f"A {shared.MODEL}; several on one dataset.")],
    csv: Annotated[str | None, option("Another table with the target columns, to score a table model on.")] = None,
    split: shared.Split = "test",
    as_leaderboard: Annotated[bool, option("Mean and deviation of test scores over seeds.", "--leaderboard")] = False,
    reading: shared.Reading = AS_FOUND,
    root: shared.Root = None,
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
) -> None:
    """Score a model of your table on its test molecules or on another table, or runs on a dataset.

    Several runs on a dataset are scored by the mean of their predictions. OGB's evaluators score benchmarks.

    Example: graphormer-sepnorm evaluate runs/assay --csv new.csv
    """
    from graphormer_sepnorm.interfaces.commands.sentences import on_evaluation
    from graphormer_sepnorm.runs.folder import RunFolder
    from graphormer_sepnorm.runs.zoo import resolve_model, shipped_tables
    from graphormer_sepnorm.table_model.evaluate import evaluate_new, evaluate_table
    from graphormer_sepnorm.table_model.load import unfinished
    from graphormer_sepnorm.training.experiment import evaluate_run, evaluate_together
    from graphormer_sepnorm.training.sweep import leaderboard

    if csv is None and changed(reading):
        raise InputError("--smiles-column, --delimiter and --sheet belong to --csv FILE")
    if csv is not None and (as_leaderboard or len(run) > 1 or split != "test"):
        raise InputError("--csv scores one model on a whole table: leave --leaderboard, --split and other models out")
    if as_leaderboard and split != "test":
        raise InputError("--leaderboard has the scores of test and validation: leave --split out")
    models = [resolve_model(name) for name in run]
    shared.tell(unfinished(models))
    for name in (each for each in run if each in shipped_tables() and not Path(each).exists()):
        problem = f"{name} comes without test molecules and without the options of its table"
        advice = f"graphormer-sepnorm info {name}, or predict your table and compare the columns"
        raise InputError(f"{problem}: see its scores with {advice}")
    first = RunFolder(models[0], run[0])
    with shared.computing(device, precision):
        if as_leaderboard:
            result = leaderboard(models, root)
        elif len(models) > 1:
            result = evaluate_together(models, split, root)
        elif csv is not None:
            if not first.stack.exists():
                raise InputError(f"--csv requires a table model, which {run[0]} does not hold")
            result = evaluate_new(first, csv, reading.smiles_column, reading.delimiter, reading.sheet)
        else:
            result = evaluate_table(first, split) if first.stack.exists() else evaluate_run(first.path, split, root)
    is_told = isinstance(result, dict) and "value" in result
    if is_told:
        whose = f"mean prediction of {len(run)} runs" if len(run) > 1 else run[0]
        shared.tell(on_evaluation(result, f"{whose}: {csv or split}"))
    shared.print_result(result, is_told)


def compare(
    run: Annotated[list[Path], argument("RUN...", "Run folders; the others are compared with the first.")],
    plot: Annotated[Path | None, option("Picture of the differences to write: .png, .svg or .pdf.")] = None,
) -> None:
    """Compare runs on the test rows that all of them have, by a paired bootstrap of their scores.

    Example: graphormer-sepnorm compare runs/before runs/after --plot difference.png
    """
    from graphormer_sepnorm.table_model import compare as comparing

    if plot is not None:
        comparing.check_picture(plot)
    compared = comparing.compare_runs(run)
    shared.tell(comparing.comparison_lines(compared))
    if plot is not None:
        comparing.plot_comparison(compared, plot)
    shared.print_result(compared)


def explain(
    model: Annotated[str, argument("MODEL", f"A {shared.MODEL}.", shared.predicting_names)],
    molecules: Annotated[list[str], argument("INPUT...", f"SMILES, or one table: {shared.MOLECULE_TABLES}.")],
    out: Annotated[Path | None, option("Picture (.svg, .png), a folder of them, or a table (.csv).", *OUTPUT)] = None,
    method: Annotated[str, option(METHODS)] = "gradients",
    target: Annotated[str | None, option("Name of the target; by default the first.")] = None,
    reading: shared.ReadingText = AS_FOUND,
    condition: shared.Conditions = None,
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
) -> None:
    """Draw the contributions of atoms and fragments to a prediction.

    All members of the model are explained. Without -o, explanations of SMILES are printed. Several molecules give a
    picture with panels, or a folder of pictures; rows of a table that cannot be read are named and left out.

    Example: graphormer-sepnorm explain adme "CC(=O)Oc1ccccc1C(=O)O" -o aspirin.svg
    """
    from graphormer_sepnorm.explain.explain_table import explain_table
    from graphormer_sepnorm.explain.pictures import fragments_text, sum_text
    from graphormer_sepnorm.output.column import shown_decimals
    from graphormer_sepnorm.table_model.explain import explain_rows
    from graphormer_sepnorm.table_model.load import load_predicting_model, unfinished

    with shared.computing(device, precision):
        predictor = load_predicting_model([model]).under(shared.read_conditions(condition))
        shared.tell(unfinished([model]))
        explain = partial(explain_rows, predictor, method=method, target=target, decimals=shown_decimals(predictor))
        where = (reading.smiles_column, reading.delimiter, predictor.asked_conditions)
        explanations, problems = explain_table(explain, molecules, out, *where)
    shared.tell(f"row {row + 1} (counted from 1): {problem}" for row, problem in sorted(problems.items()))
    count = len(explanations) + len(problems)
    for row, each in islice(explanations.items(), MOST_DESCRIBED):
        name = f"{each.name or f'row {row + 1}'}: " if count > 1 else ""
        total = "" if each.baseline is None else sum_text(each, each.baseline)
        shared.tell([name + "; ".join(filter(None, (each.caption, total, fragments_text(each))))])
    if len(explanations) > MOST_DESCRIBED:
        shared.tell([f"and {len(explanations) - MOST_DESCRIBED:,} more"])
    if out is not None:
        shared.tell([f"{out}: {len(explanations):,} of {count:,} molecules"])
    shared.print_result([each.facts() for each in explanations.values()])


def info(
    model: Annotated[str | None, argument("MODEL", f"A {shared.MODEL}.", shared.model_names)] = None,
    cache: Annotated[bool, option("List the contents of the cache and its limit.", "--cache")] = False,
) -> None:
    """Describe a model: what it predicts, training data, scores, licence.

    With --cache: list the cache folder, its entries (latest last) and its size limit, which
    GRAPHORMER_SEPNORM_CACHE_GB sets. Beyond the limit, the entries unused for longest are removed.

    Example: graphormer-sepnorm info adme
    """
    if (model is None) != cache:
        raise InputError("name a model, or give --cache" + (", and not both" if cache else ""))
    from graphormer_sepnorm.runs import zoo
    from graphormer_sepnorm.runs.info import facts_text
    from graphormer_sepnorm.system.files import cache_root, entries, limit_bytes
    from graphormer_sepnorm.table_model.evaluate import describe_any

    if model is None:
        stores, limit = entries(), limit_bytes()
        for entry in stores:
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
            shared.tell([f"{used} {entry.bytes / 1e6:12,.1f} MB  {entry.path.relative_to(cache_root())}"])
        total, is_limited = sum(entry.bytes for entry in stores), math.isfinite(limit)
        most = f" of at most {limit / 1e9:g} GB" if is_limited else ""
        shared.tell([f"{cache_root()}: {total / 1e6:,.1f} MB{most}"])
        facts = {"cache": str(cache_root()), "entries": len(stores), "bytes": total}
        shared.print_result({**facts, "limit": int(limit) if is_limited else None})
        return
    place = zoo.resolve_model(model)
    facts = describe_any(place)
    if endpoints := zoo.card_endpoints(place):
        facts["endpoints"] = endpoints
    is_shipped = model in zoo.shipped_models() | zoo.shipped_tables() and not Path(model).exists()
    facts["model"] = facts["model"] if is_shipped or Path(model).is_dir() else model
    shared.tell([facts_text(facts | {"model": f"{model}, shipped with the package"} if is_shipped else facts)])
    shared.print_result(facts)


def export(
    run: shared.Run,
    file: Annotated[Path | None, argument("FILE", "File to write; it ends in .gsn.")] = None,
    out: Annotated[Path | None, option("The same as FILE.", *OUTPUT)] = None,
    licence: Annotated[str | None, option("Licence of the model, such as CC-BY-4.0, for its card.")] = None,
) -> None:
    """Write a table model into one file, to share it.

    All commands open FILE as they open RUN, and so does load_model in Python. It has the training molecules and their
    labels, because the model predicts from them. Opening the file runs no code of its author.

    Example: graphormer-sepnorm export runs/assay assay.gsn --licence CC-BY-4.0
    """
    from graphormer_sepnorm.project.export import export_model

    if (out is None) == (file is None):
        raise InputError("name one file to write: graphormer-sepnorm export RUN FILE.gsn")
    with interruptible():
        result = export_model(run, str(out or file), licence)
    molecules = f"whoever has it can read the {result['training_molecules']:,} training molecules and their labels"
    size = f"{result['bytes'] / 1e6:.1f} MB"
    shared.tell([f"{result['output']}: {size}; {molecules}", f"licence: {result['licence']}"])
    shared.print_result(result)


def update(
    run: shared.Run,
    table: Annotated[str, argument("FILE", f"New measurements: {shared.LABELLED_TABLES}.")],
    out: Annotated[Path | None, option("Run folder to write; by default RUN-update-1, or the next number.")] = None,
    log: Annotated[Path | None, option("Log of predict --log, with earlier predictions.")] = None,
    reading: shared.Reading = AS_FOUND,
    same_unit: Annotated[bool, option("Accept labels that look as if in another unit.", "--same-unit")] = False,
    device: shared.Device = "auto",
) -> None:
    """Score a model on new measurements, and fit it again to all rows.

    FILE has the columns of the table of RUN, and only new rows. RUN predicts them first: prospective.csv in --out keeps
    these predictions, and over-time.html shows errors, bias and coverage over time, with an alarm where chance does not
    explain them. Then the model is fitted again to all rows. After an interruption, repeat the command.

    Example: graphormer-sepnorm update runs/assay november.csv
    """
    from graphormer_sepnorm.interfaces.commands.sentences import test_score_words
    from graphormer_sepnorm.project.update import PAGE, update_run

    started = time.perf_counter()
    with shared.computing(device):
        where = (reading.smiles_column, reading.delimiter, same_unit, reading.sheet)
        result = update_run(run, table, out, log, *where)
    for target, periods in result["prospective"].items():
        for each in periods:
            inside = f", {each['held']} of {each['intervals']} inside 90 % intervals" if each["intervals"] else ""
            words = f"before they were learnt: mean error {each['error']:.3g}, bias {each['bias']:.2g}{inside}"
            shared.tell([f"{each['name']}, {target}: {counted(each['n'], 'measurement')}, predicted {words}"])
    seconds, page = time.perf_counter() - started, shlex.quote(str(Path(result["out"]) / PAGE))
    shared.tell([f"{result['out']}: {result['split']} {test_score_words(result)}, {seconds:.0f} s"])
    shared.tell([f"open {page} in a browser for the predictions over time"])
    shared.print_result(result)


def pretrain(
    out: Annotated[Path, option("Run folder to write.")],
    files: Annotated[list[str] | None, argument("FILE...", "Tables with molecules: CSV, .smi, SDF, .gz.")] = None,
    smiles: Annotated[list[str] | None, option("The same as FILE.")] = None,
    smiles_column: shared.SmilesColumn = None,
    size: Annotated[Literal["mini", "small", "base"], option("About 0.3, 0.7 or 3 million parameters.")] = "small",
    objective: Annotated[str, option("Targets: descriptors, fingerprints (counts) or masked-atoms.")] = "descriptors",
    teacher: Annotated[Path | None, option("Targets in place of --objective: an .npz of the command embed.")] = None,
    epochs: Annotated[int | None, option("Passes over the molecules; by default 6.")] = None,
    seed: Annotated[int | None, option("Seed of initialization, order, dropout and split.")] = None,
    device: shared.Device = "auto",
    precision: shared.TrainingPrecision = "auto",
    resume: Annotated[bool, option("Continue from the last completed epoch of --out.", "--resume")] = False,
) -> None:
    """Pretrain a Graphormer on unlabelled molecules, to be fine-tuned with train --from OUT.

    The targets are RDKit descriptors, which are computed once and kept in the cache. Faster to compute are counts of
    Morgan fingerprints, and of atoms of each type while a random 15 % of the atoms are masked. With --teacher, they are
    another model's embeddings of the same tables, such as those of embed minimol.

    Example: graphormer-sepnorm pretrain library.csv --size base --out runs/pretrained
    """
    from graphormer_sepnorm.training import objectives
    from graphormer_sepnorm.training.pretrain import SIZES, pretrain
    from graphormer_sepnorm.training.settings import in_precision, with_given

    tables = [*(files or ()), *(smiles or ())]
    if not tables:
        raise InputError("name tables with molecules: graphormer-sepnorm pretrain FILE --out OUT")
    train = in_precision(with_given(SIZES[size].train, {"epochs": epochs, "seed": seed}), precision)
    with shared.computing(device):
        learnt = objectives.find_objective(objective) if teacher is None else objectives.teacher(teacher)
        result = pretrain(tables, learnt, replace(SIZES[size], train=train), out, smiles_column, resume)
    if result["skipped"]:
        missing = "molecule that can be read" if teacher is None else f"embedding in {teacher}"
        shared.tell([f"{result['skipped']} rows were skipped: they have no {missing}"])
    shared.print_result(result, is_told=False)


def distill(
    run: shared.Run,
    library: Annotated[str, argument("LIBRARY", "Table of molecules like those to predict.")],
    out: Annotated[Path, option("Folder for the student.")],
    epochs: Annotated[int, option("Passes over the molecules.", min=1)] = 12,
    smiles_column: shared.SmilesColumn = None,
    device: shared.Device = "auto",
) -> None:
    """Train a small network that imitates a model of your table, to predict libraries of millions with it.

    The student learns the predictions of the model for the molecules of LIBRARY and for the training molecules. Tens of
    thousands of molecules are best, analogues of those to predict. Its intervals are calibrated on the test rows of
    RUN, and both are scored on them. After an interruption, the same command continues.

    Example: graphormer-sepnorm distill runs/assay library.smi --out runs/student
    """
    from graphormer_sepnorm.runs.folder import RunFolder
    from graphormer_sepnorm.runs.zoo import resolve_model
    from graphormer_sepnorm.table_model.distill import distill as distill_model
    from graphormer_sepnorm.table_model.model import TableModel
    from graphormer_sepnorm.tables.formats import rows_of

    started, source = time.perf_counter(), RunFolder(resolve_model(run))
    if not source.stack.exists():
        raise InputError(f"{run} is not the run folder of one table model: name a run of train FILE")
    smiles = [row.smiles for row in rows_of(library, smiles_column)]
    with shared.computing(device):
        result = distill_model(TableModel.load(source.path), source, smiles, out, epochs)
    shared.print_result({**result, "output": str(out), "seconds": round(time.perf_counter() - started, 1)})


def analyze(
    models: Annotated[list[str], argument("MODEL...", "Networks to compare: run folders or names.")],
    out: Annotated[Path, option("Picture to write, .png.", *OUTPUT)],
    split: shared.Split = "test",
    root: shared.Root = None,
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
) -> None:
    """Measure the geometry of the CLS embeddings of a split, and compare several models.

    The effective rank (Roy and Vetterli, 2007) is the number of directions that the embeddings use; low is collapse.
    Uniformity (Wang and Isola, 2020) is lower the more evenly they lie on a sphere. Isotropy (Mu and Viswanath, 2018)
    is 1 if no direction is preferred. The JSON in a pipe or file also has the singular values.

    Example: graphormer-sepnorm analyze runs/sepnorm runs/sharenorm -o cls.png
    """
    if out.suffix.lower() != ".png":
        raise InputError(f"the picture is a PNG, so its name ends in .png, not {out.suffix or out.name!r}")
    from graphormer_sepnorm.explain.analyze import analyze_run
    from graphormer_sepnorm.explain.pictures import plot_cls_geometry
    from graphormer_sepnorm.runs.zoo import resolve_model

    results: list[dict] = []
    with shared.computing(device, precision):
        for model in models:
            results.append(analyze_run(resolve_model(model), split, root))
            if (first := results[0]["dataset"]) != (last := results[-1]["dataset"]):
                difference = f"{models[0]} is a model of {first} and {model} of {last}"
                raise InputError(f"{difference}: compare models of one dataset")
    plot_cls_geometry(results, out)
    for model, result in zip(models, results, strict=True):
        measures = (f"{name.replace('_', ' ')} {significant(result[name])}" for name in MEASURES)
        shared.tell([f"{model} ({result['norm']}): {', '.join(measures)}"])
    molecules = counted(results[0]["molecules"], "molecule")
    shared.tell([f"{out}: {counted(len(results), 'model')}, {molecules} of the {split} split"])
    shared.print_result(results)
