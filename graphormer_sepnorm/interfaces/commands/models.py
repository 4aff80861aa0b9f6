"""The commands on models that are trained: ``evaluate``, ``compare``, ``explain``, ``info``, ``export``, ``update``."""

import math
import shlex
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.interfaces.commands.shared import OUTPUT, argument, option
from graphormer_sepnorm.system.signals import leaving_at_once

METHODS = (
    "gradients: atom contributions to the prediction, of kernel and forest by masking atoms; "
    "attention: shares of the CLS token's attention."
)
MOST_DESCRIBED = 3  # molecules whose explanations are printed in words


def evaluate(
    run: Annotated[list[str], argument("RUN...", f"A {shared.MODEL}; several on one dataset.")],
    csv: Annotated[str | None, option("Another table with the target columns, to score a table model on.")] = None,
    split: shared.Split = "test",
    as_leaderboard: Annotated[bool, option("Mean and deviation of test scores over seeds.", "--leaderboard")] = False,
    smiles_column: shared.SmilesColumn = None,
    delimiter: shared.Delimiter = None,
    sheet: shared.Sheet = None,
    root: shared.Root = None,
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
) -> None:
    """Score a model of your table on its test molecules or on another table, or runs on a dataset.

    Several runs on a dataset are scored by the mean of their predictions. OGB's evaluators score benchmarks.

    Example: graphormer-sepnorm evaluate runs/assay --csv new.csv
    """
    with leaving_at_once():
        from graphormer_sepnorm.runs.folder import RunFolder
        from graphormer_sepnorm.runs.zoo import resolve_model, shipped_tables
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.table_model.evaluate import evaluate_new, evaluate_table
        from graphormer_sepnorm.training.experiment import evaluate_run, evaluate_together
        from graphormer_sepnorm.training.sweep import leaderboard

    if csv is None and (smiles_column or delimiter or sheet):
        raise InputError("--smiles-column, --delimiter and --sheet belong to --csv FILE")
    if csv is not None and (as_leaderboard or len(run) > 1 or split != "test"):
        raise InputError("--csv scores one model on a whole table: leave --leaderboard, --split and other models out")
    if as_leaderboard and split != "test":
        raise InputError("--leaderboard has the scores of test and validation: leave --split out")
    models = [resolve_model(name) for name in run]
    shared.say_unfinished(models)
    for name in run:
        if name in shipped_tables() and not Path(name).exists():
            problem = f"{name} comes without test molecules and without the options of its table"
            advice = f"graphormer-sepnorm info {name}, or predict your table and compare the columns"
            raise InputError(f"{problem}: see its scores with {advice}")
    first = RunFolder(models[0], run[0])
    with computing(choose(device, precision)):
        if as_leaderboard:
            result = leaderboard(models, root)
        elif len(models) > 1:
            result = evaluate_together(models, split, root)
        elif csv is not None:
            if not first.stack.exists():
                raise InputError(f"--csv requires a table model, which {run[0]} does not hold")
            result = evaluate_new(first, csv, smiles_column, delimiter, sheet)
        else:
            result = evaluate_table(first, split) if first.stack.exists() else evaluate_run(first.path, split, root)
    is_told = isinstance(result, dict) and "value" in result
    if is_told:
        whose = f"mean prediction of {len(run)} runs" if len(run) > 1 else run[0]
        shared.tell(score_lines(result, f"{whose}: {csv or split}"))
    shared.print_result(result, is_told)


def score_lines(result: dict, what: str) -> Iterator[str]:
    """A result for people: the score of ``what``, rows that were not scored, the targets, and training molecules."""
    from graphormer_sepnorm.runs.numbers import counted
    from graphormer_sepnorm.table_model.reliability import unjudged
    from graphormer_sepnorm.tables.splits import known_words

    for name, words in result.get("other_scale", {}).items():
        yield f"{name}: {words}: are they in the unit and on the scale of the training labels?"
    skipped, censored = result.get("skipped", 0), sum(result.get("censored", {}).values())
    unscored = f"; {counted(skipped, 'row')} skipped" if skipped else ""
    unscored += f"; {counted(censored, 'bound')} not in this score" if censored else ""
    yield f"{what} {shared.test_score_words(result)}{unscored}"
    reasons = result.get("reasons", {})
    for row, reason in reasons.items():
        yield f"row {row} is skipped: {reason}"
    if more := skipped - len(reasons):
        yield f"and {more:,} more"
    yield from target_lines(result)
    yield from unjudged(result)
    if known := known_words(result):
        yield known


def target_lines(result: dict) -> Iterator[str]:
    """For each scored target its score, if there are several, the coverage of its intervals, and its bounds."""
    from graphormer_sepnorm.runs.info import score_words
    from graphormer_sepnorm.runs.numbers import counted, percent, shown
    from graphormer_sepnorm.table_model.evaluate import targets_on_test
    from graphormer_sepnorm.table_model.reliability import usual_confidence
    from graphormer_sepnorm.table_model.scores import STACK, top_words
    from graphormer_sepnorm.tasks import METRICS

    trust = result.get("trust", {})
    level = usual_confidence(trust)
    held = trust["coverage"][level] if level else {}
    every = targets_on_test(result)
    for target, score in ((name, each) for name, each in every.items() if name not in result.get("left_out", {})):
        said = [f"{METRICS[result['metric']].title} {score_words(**score)}"] if len(every) > 1 else []
        said += [f"{percent(held[target])} inside the {percent(float(level))} intervals"] if level else []
        if (bounds := result["targets"][target].get("bounds", {}).get(STACK)) is not None:
            right = f"{percent(bounds['right_side'])} of {counted(bounds['bounds'], 'bound')} on the right side"
            said.append(f"{right}, concordance {shown(bounds['concordance'], 3)}")
        if said := [*said, *top_words(result["targets"][target].get("top", {}))]:
            yield f"{target}: {'; '.join(said)}"


def compare(
    run: Annotated[list[Path], argument("RUN...", "Run folders; the others are compared with the first.")],
    plot: Annotated[Path | None, option("Picture of the differences to write: .png, .svg or .pdf.")] = None,
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


def explain(
    model: Annotated[str, argument("MODEL", f"A {shared.MODEL}.", shared.predicting_names)],
    molecules: Annotated[list[str], argument("INPUT...", f"SMILES, or one table: {shared.MOLECULE_TABLES}.")],
    out: Annotated[Path | None, option("Picture (.svg, .png), a folder of them, or a table (.csv).", *OUTPUT)] = None,
    method: Annotated[str, option(METHODS)] = "gradients",
    target: Annotated[str | None, option("Name of the target; by default the first.")] = None,
    smiles_column: shared.SmilesColumn = None,
    delimiter: shared.Delimiter = None,
    condition: shared.Conditions = None,
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
) -> None:
    """Draw the contributions of atoms and fragments to a prediction.

    All members of the model are explained. Without -o, explanations of SMILES are printed. Several molecules give a
    picture with panels, or a folder of pictures; rows of a table that cannot be read are named and left out.

    Example: graphormer-sepnorm explain adme "CC(=O)Oc1ccccc1C(=O)O" -o aspirin.svg
    """
    with leaving_at_once():
        from graphormer_sepnorm.explain.explain_table import explain_table
        from graphormer_sepnorm.explain.pictures import fragments_text, sum_text
        from graphormer_sepnorm.output.column import shown_decimals
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.table_model.explain import explain_rows
        from graphormer_sepnorm.table_model.load import load_predicting_model

    with computing(choose(device, precision)):
        predictor = load_predicting_model([model]).under(shared.read_conditions(condition))
        shared.say_unfinished([model])
        decimals, conditions = shown_decimals(predictor), predictor.asked_conditions
        explain = partial(explain_rows, predictor, method=method, target=target, decimals=decimals)
        explanations, problems = explain_table(explain, molecules, out, smiles_column, delimiter, conditions)
    shared.tell(f"row {row + 1} (counted from 1): {problem}" for row, problem in sorted(problems.items()))
    count = len(explanations) + len(problems)
    for row, each in list(explanations.items())[:MOST_DESCRIBED]:
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
    if model is None:
        print_cache()
        return
    with leaving_at_once():
        from graphormer_sepnorm.runs import zoo
        from graphormer_sepnorm.runs.info import facts_text
        from graphormer_sepnorm.table_model.evaluate import describe_any

    place = zoo.resolve_model(model)
    facts = describe_any(place)
    if endpoints := zoo.card_endpoints(place):
        facts["endpoints"] = endpoints
    is_shipped = model in zoo.shipped_models() | zoo.shipped_tables() and not Path(model).exists()
    facts["model"] = facts["model"] if is_shipped or Path(model).is_dir() else model
    shared.tell([facts_text(facts | {"model": f"{model}, shipped with the package"} if is_shipped else facts)])
    shared.print_result(facts)


def print_cache() -> None:
    from graphormer_sepnorm.system.files import cache_root, entries, limit_bytes

    stores, limit = entries(), limit_bytes()
    for entry in stores:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        shared.tell([f"{used} {entry.bytes / 1e6:12,.1f} MB  {entry.path.relative_to(cache_root())}"])
    total = sum(entry.bytes for entry in stores)
    of_limit = f" of at most {limit / 1e9:g} GB" if math.isfinite(limit) else ""
    shared.tell([f"{cache_root()}: {total / 1e6:,.1f} MB{of_limit}"])
    facts = {"cache": str(cache_root()), "entries": len(stores), "bytes": total}
    shared.print_result({**facts, "limit": int(limit) if math.isfinite(limit) else None})


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
    with leaving_at_once():
        from graphormer_sepnorm.project.export import export_model

    if (out is None) == (file is None):
        raise InputError("name one file to write: graphormer-sepnorm export RUN FILE.gsn")
    result = export_model(run, str(out or file), licence)
    molecules = f"{result['training_molecules']:,} training molecules and their labels"
    size = f"{result['bytes'] / 1e6:.1f} MB"
    shared.tell(
        [f"{result['output']}: {size}; whoever has it can read the {molecules}", f"licence: {result['licence']}"]
    )
    shared.print_result(result)


def update(
    run: shared.Run,
    table: Annotated[str, argument("FILE", f"New measurements: {shared.LABELLED_TABLES}.")],
    out: Annotated[Path | None, option("Run folder to write; by default RUN-update-1, or the next number.")] = None,
    log: Annotated[Path | None, option("Log of predict --log, with earlier predictions.")] = None,
    smiles_column: shared.SmilesColumn = None,
    delimiter: shared.Delimiter = None,
    sheet: shared.Sheet = None,
    same_unit: Annotated[bool, option("Accept labels that look as if in another unit.", "--same-unit")] = False,
    device: shared.Device = "auto",
) -> None:
    """Score a model on new measurements, and fit it again to all rows.

    FILE has the columns of the table of RUN, and only new rows. RUN predicts them first: prospective.csv in --out keeps
    these predictions, and over-time.html shows errors, bias and coverage over time, with an alarm where chance does not
    explain them. Then the model is fitted again to all rows. After an interruption, repeat the command.

    Example: graphormer-sepnorm update runs/assay november.csv
    """
    with leaving_at_once():
        from graphormer_sepnorm.project.update import PAGE, update_run
        from graphormer_sepnorm.runs.numbers import counted
        from graphormer_sepnorm.system.device import choose, computing

    started = time.perf_counter()
    with computing(choose(device)):
        result = update_run(run, table, out, log, smiles_column, delimiter, same_unit, sheet)
    folder = Path(result["out"])
    for target, periods in result["prospective"].items():
        for each in periods:
            inside = f", {each['held']} of {each['intervals']} inside 90 % intervals" if each["intervals"] else ""
            words = f"before they were learnt: mean error {each['error']:.3g}, bias {each['bias']:.2g}{inside}"
            shared.tell([f"{each['name']}, {target}: {counted(each['n'], 'measurement')}, predicted {words}"])
    seconds = time.perf_counter() - started
    shared.tell([f"{folder}: {result['split']} {shared.test_score_words(result)}, {seconds:.0f} s"])
    shared.tell([f"open {shlex.quote(str(folder / PAGE))} in a browser for the predictions over time"])
    shared.print_result(result)
