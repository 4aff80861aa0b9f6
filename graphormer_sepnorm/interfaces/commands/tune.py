"""The commands on many trainings: ``tune`` and ``sweep``."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.errors import InputError, not_installed
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.interfaces.commands.own_table import OF_LABELS, detected
from graphormer_sepnorm.interfaces.commands.shared import FieldsOf, expanded, option
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.options import Option
from graphormer_sepnorm.recipes import FROM_RANDOM_WEIGHTS, find_recipe, task_config
from graphormer_sepnorm.system.device import choose, computing
from graphormer_sepnorm.table_run import say_once
from graphormer_sepnorm.tables.labels import read_whole, table_task
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.training import sweep as sweeping
from graphormer_sepnorm.training.settings import in_precision, with_given, with_settings

FOUND_RECIPES = f"{', '.join(FROM_RANDOM_WEIGHTS)}, that of shipped weights, or a config.json"


@dataclass(frozen=True)
class SearchOptions:
    trials: Annotated[int, Option("Recipes to try; the first is --recipe itself.")] = 50
    processes: Annotated[int, Option("Parallel trials; they share cores and GPU.")] = 1
    time_limit: Annotated[float | None, Option("Minutes after which running trials are stopped.")] = None
    recipe: Annotated[str, Option(f"Recipe to start from: {FOUND_RECIPES}.")] = "slim"
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
    out: Annotated[Path, option("Folder of the search.", panel="Your table")],
    csv: Annotated[str | None, option("The same as FILE.", panel="Your table")] = None,
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
    say_once(sentences)
    config = task_config(TABLE, options.featurizer, table_task(options), replace(recipe, train=train))
    config = with_settings(config, settings or ())
    options = replace(options, seed=config.train.seed)
    try:
        from graphormer_sepnorm.search.study import fixed_by
        from graphormer_sepnorm.search.tune import SearchLimits, tune, verdict
    except ModuleNotFoundError as error:
        raise not_installed("a search", str(error.name), "tune") from None
    seconds = None if search.time_limit is None else 60 * search.time_limit
    limits = SearchLimits(search.trials, search.processes, seconds)
    fixed = fixed_by([*(f"train.{name}" for name in optimization), *(settings or ())])
    with computing(compute):
        result = tune(options, config, out, limits, fixed, search.resume, search.compare, content)
        if search.compare:
            say_once([verdict(result, search.recipe)])
    shared.print_result(result)


def sweep(
    dataset: Annotated[list[str], option(f"One or more of {', '.join(DATASETS)}.")],
    norm: Annotated[list[str], option(f"One or more of {', '.join(NORMS)}.")],
    out: Annotated[Path, option("Folder of the run folders, DATASET-NORM-SEED each.")],
    seeds: Annotated[int, option("Seeds 0 to this number - 1.", min=1)] = 3,
    recipe: Annotated[str, option(f"{FOUND_RECIPES}.")] = "slim",
    epochs: Annotated[int | None, option("Passes over the training molecules.")] = None,
    settings: shared.Settings = None,
    root: shared.Root = None,
    device: shared.Device = "auto",
    precision: shared.TrainingPrecision = "auto",
) -> None:
    """Train every dataset with every norm and seed, skip finished runs, and summarize the scores.

    After an interruption, the same command continues. The last line has leaderboard rows, which compare each norm of a
    dataset with the first, paired by seed, with a 95 % confidence interval.

    Example: graphormer-sepnorm sweep --dataset zinc-subset --norm sepnorm sharenorm --out runs/norms
    """
    chosen = find_recipe(recipe)
    train = in_precision(with_given(chosen.train, {"epochs": epochs}), precision)
    with computing(choose(device)):
        rows = sweeping.sweep(dataset, norm, range(seeds), replace(chosen, train=train), out, root, settings or ())
    shared.print_result(rows, is_told=False)
