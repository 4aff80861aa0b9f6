from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.errors import InputError, not_installed
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.interfaces.commands.expanding import FieldsOf, expanded
from graphormer_sepnorm.interfaces.commands.own_table import OF_LABELS, detected
from graphormer_sepnorm.options import Option
from graphormer_sepnorm.recipes import FROM_RANDOM_WEIGHTS, find_recipe, task_config
from graphormer_sepnorm.system.device import choose, computing
from graphormer_sepnorm.table_run import say
from graphormer_sepnorm.tables.labels import read_whole, table_task
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.training.settings import in_precision, with_given, with_settings


@dataclass(frozen=True)
class SearchOptions:
    """Options for the size and the start of a search."""

    trials: Annotated[int, Option("Recipes to try; the first is --recipe itself.")] = 50
    processes: Annotated[int, Option("Parallel trials; they share cores and GPU.")] = 1
    time_limit: Annotated[float | None, Option("Minutes after which running trials are stopped.")] = None
    recipe: Annotated[
        str,
        Option(f"Recipe to start from: {', '.join(FROM_RANDOM_WEIGHTS)}, that of shipped weights, or a config.json."),
    ] = "slim"
    compare: Annotated[bool, Option("At the end, score best and --recipe on the test molecules.")] = True
    resume: Annotated[bool, Option("Continue the search in --out.")] = False

    def __post_init__(self) -> None:
        if self.trials < 1 or self.processes < 1:
            raise InputError(f"--trials {self.trials} and --processes {self.processes} are at least 1")


NOT_SEARCHED = ("folds", "weight_column", "feature_columns")
OF_TABLES = FieldsOf(TableOptions, without=NOT_SEARCHED, panel="Your table", panels=OF_LABELS)
OF_RECIPES = FieldsOf(
    TrainConfig,
    without=("frozen_epochs", "frozen_statistics"),  # trials start from random weights
    default="as in the recipe",
    panel="Training of networks",
)


@expanded
def tune(
    *,
    file: shared.TableFile = None,
    out: Annotated[Path, shared.option("Your table", "Folder of the search.")],
    csv: Annotated[str | None, shared.option("Your table", "The same as FILE.")] = None,
    search: Annotated[SearchOptions, FieldsOf(SearchOptions, panel="Search")],
    table: Annotated[dict[str, Any], OF_TABLES],
    task: shared.AskedTask = None,
    optimization: Annotated[dict[str, Any], OF_RECIPES],
    settings: shared.Settings = None,
    device: shared.Device = "auto",
    precision: shared.TrainingPrecision = "auto",
) -> None:
    """Search for a better recipe for your table, and compare it with the one it started from.

    Trials are judged and pruned by the validation molecules only. The folder holds best.json, a recipe for
    train --recipe; study.db, of Optuna; trials.csv; history.png and importance.png; and best and recipe, the two runs
    that are compared. A field that an option or --set names is not searched.

    Example: graphormer-sepnorm tune mols.csv --target-columns y --trials 50 --out study
    """
    path, compute, recipe = shared.one_table(file, csv), choose(device), find_recipe(search.recipe)
    if path is None:
        raise InputError("name your table: graphormer-sepnorm tune FILE")
    train = in_precision(with_given(recipe.train, optimization), precision)
    content = read_whole(path, *map(table.get, ("smiles_column", "delimiter", "sheet")))
    options, sentences = detected(path, content, table, task, train.seed)
    say(sentences)
    config = task_config(TABLE, options.featurizer, table_task(options), train, architecture=recipe.architecture)
    config = with_settings(config, settings or ())
    options = replace(options, seed=config.train.seed)
    try:
        from graphormer_sepnorm.search.search_space import fixed_by
        from graphormer_sepnorm.search.tune import SearchLimits, tune, verdict
    except ModuleNotFoundError as error:
        raise not_installed("a search", str(error.name), "tune") from None
    seconds = None if search.time_limit is None else 60 * search.time_limit
    limits = SearchLimits(search.trials, search.processes, seconds)
    fixed = fixed_by([*(f"train.{name}" for name in optimization), *(settings or ())])
    with computing(compute):
        result = tune(options, config, out, limits, fixed, search.resume, search.compare, content)
        if search.compare:
            say([verdict(result, search.recipe)])
    shared.print_result(result)
