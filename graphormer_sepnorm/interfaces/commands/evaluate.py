"""The commands on scores: ``evaluate`` and ``compare``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.system.signals import leaving_at_once


def evaluate(
    run: Annotated[list[str], typer.Argument(metavar="RUN...", help=f"A {shared.MODEL}; several on one dataset.")],
    csv: Annotated[
        str | None, typer.Option(help="Another table with the target columns, to score a table model on.")
    ] = None,
    split: shared.Split = "test",
    as_leaderboard: Annotated[
        bool, typer.Option("--leaderboard", help="Mean and standard deviation of test scores over seeds.")
    ] = False,
    smiles_column: shared.SmilesColumn = None,
    delimiter: shared.Delimiter = None,
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

    if csv is None and (smiles_column or delimiter):
        raise InputError("--smiles-column and --delimiter belong to --csv FILE")
    if csv is not None and (as_leaderboard or len(run) > 1 or split != "test"):
        raise InputError("--csv scores one model on a whole table: leave --leaderboard, --split and other models out")
    if as_leaderboard and split != "test":
        raise InputError("--leaderboard has the scores of test and validation: leave --split out")
    models = [resolve_model(name) for name in run]
    shared.say_unfinished(models)
    for name in run:
        if name in shipped_tables() and not Path(name).exists():
            raise InputError(
                f"{name} comes without test molecules and without the options of its table: see its scores with "
                f"graphormer-sepnorm info {name}, or predict your table and compare the columns"
            )
    first = RunFolder(models[0])
    with computing(choose(device, precision)):
        if as_leaderboard:
            result = leaderboard(models, root)
        elif len(models) > 1:
            result = evaluate_together(models, split, root)
        elif csv is not None:
            if not first.stack.exists():
                raise InputError(f"--csv requires a table model, which {models[0]} does not hold")
            result = evaluate_new(first, csv, smiles_column, delimiter)
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
    from graphormer_sepnorm.tables.splits import known_words

    for name, words in result.get("other_scale", {}).items():
        yield f"{name}: {words}: are they in the unit and on the scale of the training labels?"
    skipped, censored = result.get("skipped", 0), sum(result.get("censored", {}).values())
    unscored = f"; {counted(skipped, 'row')} skipped" if skipped else ""
    unscored += f"; {counted(censored, 'bound')} not in this score" if censored else ""
    yield f"{what} {shared.score_words(result)}{unscored}"
    reasons = result.get("reasons", {})
    for row, reason in reasons.items():
        yield f"row {row} is skipped: {reason}"
    if more := skipped - len(reasons):
        yield f"and {more:,} more"
    yield from target_lines(result)
    if known := known_words(result):
        yield known


def target_lines(result: dict) -> Iterator[str]:
    """For each scored target of a table model its score, the number of labels, and the coverage of its intervals."""
    from graphormer_sepnorm.runs.numbers import counted, decimals_for, percent, shown, shown_interval
    from graphormer_sepnorm.table_model.evaluate import targets_on_test
    from graphormer_sepnorm.table_model.reliability import usual_confidence
    from graphormer_sepnorm.table_model.scores import STACK, top_words
    from graphormer_sepnorm.tasks import METRICS

    trust = result.get("trust", {})
    level = usual_confidence(trust)
    held = trust["coverage"][level] if level else {}
    for target, found in targets_on_test(result).items():
        decimals = decimals_for([found["value"]])
        ends = f" (95 % interval {shown_interval(found['interval'], decimals)})" if found["interval"] else ""
        labels = counted(found["molecules"], "label")
        inside = f"; {percent(held[target])} inside the {percent(float(level))} intervals" if level else ""
        if (bounds := result["targets"][target].get("bounds", {}).get(STACK)) is not None:
            inside += (
                f"; {percent(bounds['right_side'])} of {counted(bounds['bounds'], 'bound')} on the right side, "
                f"concordance {shown(bounds['concordance'], 3)}"
            )
        inside += "".join(f"; {words}" for words in top_words(result["targets"][target].get("top", {})))
        yield f"{target}: {METRICS[result['metric']].title} {shown(found['value'], decimals)}{ends} on {labels}{inside}"


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
