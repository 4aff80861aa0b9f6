"""``graphormer-sepnorm tune``."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from graphormer_sepnorm.dataset import SplitName
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.options import (
    Balance,
    Device,
    Settings,
    SplitColumn,
    SplitSizes,
    TrainingPrecision,
    with_given,
)
from graphormer_sepnorm.recipes import RECIPES
from graphormer_sepnorm.system.signals import leaving_at_once


def tune(
    csv: Annotated[str, typer.Option(help="Your table: CSV, .gz, or SDF.")],
    target_columns: Annotated[list[str], typer.Option(help="Columns of --csv to predict.")],
    out: Annotated[Path, typer.Option(help="Folder of the search.")],
    more_targets: Annotated[
        list[str] | None, typer.Argument(metavar="[COLUMN]...", help="Further --target-columns.", show_default=False)
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Recipes to try; the first is --recipe itself.")] = 50,
    processes: Annotated[int, typer.Option(min=1, help="Trials at the same time; they share cores and GPU.")] = 1,
    time_limit: Annotated[
        float | None, typer.Option(min=0, metavar="MINUTES", help="After which running trials are given up.")
    ] = None,
    smiles_column: Annotated[str | None, typer.Option(help="Column of --csv; by default smiles.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of --csv; by default found in its header.")] = None,
    task: Annotated[
        Literal["regression", "classification"] | None, typer.Option(help="Of --csv; by default found in its labels.")
    ] = None,
    split: Annotated[SplitName, typer.Option(help="How --csv is split.")] = "scaffold",
    split_column: SplitColumn = None,
    split_sizes: SplitSizes = None,
    balance: Balance = False,
    recipe: Annotated[
        str, typer.Option(help=f"What to start from: {', '.join(RECIPES)}, shipped weights, or a config.json.")
    ] = "slim",
    epochs: Annotated[int | None, typer.Option(help="Of a trial; by default the recipe's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of what is drawn, of the split and of each training.")] = None,
    settings: Settings = None,
    device: Device = "auto",
    precision: TrainingPrecision = "auto",
    compare: Annotated[
        bool, typer.Option("--compare/--no-compare", help="At the end, score best and --recipe on the test molecules.")
    ] = True,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the search in --out.")] = False,
) -> None:
    """Search for a recipe that suits your table, and say whether it is better than the one it started from.

    Trials are judged and pruned by the validation molecules alone. The folder holds best.json, a recipe for
    train --recipe; study.db, of Optuna; trials.csv; history.png and importance.png; and best and recipe, the two runs
    that are compared. A field that --set names is not searched.

    Example: graphormer-sepnorm tune --csv mols.csv --target-columns y --trials 50 --out study
    """
    with leaving_at_once():
        from graphormer_sepnorm.chem.features import FOR_TABLES
        from graphormer_sepnorm.recipes import find_recipe, task_config

        try:
            from graphormer_sepnorm.search.search_space import fixed_by
            from graphormer_sepnorm.search.tune import SearchLimits, tune, verdict
        except ModuleNotFoundError as error:
            raise InputError(f"a search needs {error.name}: pip install 'graphormer_sepnorm[tune]'") from None
        from graphormer_sepnorm.system.device import choose, computing
        from graphormer_sepnorm.tables.labels import TableOptions, read_whole, table_task, task_of_table
        from graphormer_sepnorm.tables.prepared_table import TABLE
        from graphormer_sepnorm.tables.splits import Sizes, read_sizes
        from graphormer_sepnorm.training.settings import in_precision, with_settings

    compute = choose(device)
    found = find_recipe(recipe)
    if found.train.start_from is not None:
        raise InputError(f"--recipe {recipe} starts from trained weights of a given shape: search around another")
    train = in_precision(with_given(found.train, {"epochs": epochs, "seed": seed}), precision)
    targets = (*target_columns, *(more_targets or ()))
    sizes = Sizes() if split_sizes is None else read_sizes(split_sizes)
    division = (split, split_column, sizes, balance, train.seed)
    content = read_whole(csv, smiles_column, delimiter)
    guess = task_of_table(content, targets, task)
    if guess.sentence:
        print(guess.sentence, file=sys.stderr)
    table = TableOptions(csv, targets, guess.kind, smiles_column, delimiter, *division, guess.classes)
    config = task_config(TABLE, FOR_TABLES, table_task(table), train, architecture=found.architecture)
    config = with_settings(config, settings or ())
    table = replace(table, seed=config.train.seed)
    limits = SearchLimits(trials, processes, None if time_limit is None else 60 * time_limit)
    with computing(compute):
        fixed = fixed_by(settings or ())
        result = tune(table, config, out, limits, fixed=fixed, resume=resume, compare=compare, content=content)
    if compare:
        print(verdict(result, recipe))
    print(json.dumps(result))
