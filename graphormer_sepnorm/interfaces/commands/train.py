"""The commands that train on labels: ``train``, ``tune`` and ``sweep``."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from graphormer_sepnorm.config import Config, ModelConfig, TrainConfig
from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.errors import InputError, not_installed
from graphormer_sepnorm.interfaces import quick
from graphormer_sepnorm.interfaces.commands import sentences, shared
from graphormer_sepnorm.interfaces.commands.own_table import OF_LABELS, detected, on_better_scales
from graphormer_sepnorm.interfaces.commands.shared import FieldsOf, as_command, given_names, option
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.options import Option
from graphormer_sepnorm.recipes import FROM_RANDOM_WEIGHTS, RECIPES, dataset_config, find_recipe, task_config
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.device import choose, computing
from graphormer_sepnorm.system.progress import is_on_page
from graphormer_sepnorm.system.signals import interruptible
from graphormer_sepnorm.table_model.scores import OUT_OF_FOLD
from graphormer_sepnorm.table_model.stacking import FOLDS
from graphormer_sepnorm.table_run import Plan, say_once, train_folds, train_table
from graphormer_sepnorm.tables.formats.text import STANDARD_INPUT
from graphormer_sepnorm.tables.labels import read_whole, table_task
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.training import experiment, finetune, optimizers
from graphormer_sepnorm.training import sweep as sweeping
from graphormer_sepnorm.training.settings import in_precision, refuse_patience, with_given, with_settings

FOUND_RECIPES = f"{', '.join(FROM_RANDOM_WEIGHTS)}, that of shipped weights, or a config.json"
OF_RECIPE = (
    f"{', '.join(RECIPES)}, that of shipped weights, or the config.json of a run; "
    "by default foundation for a table without --norm, otherwise slim."
)


@dataclass(frozen=True)
class RunOptions:
    out: Annotated[Path | None, Option("Run folder; by default runs/TABLE-SEED or runs/DATASET-NORM-SEED.")] = None
    resume: Annotated[bool, Option("Continue the training in --out, with its options.")] = False
    dataset: Annotated[str, Option(f"One of {', '.join(DATASETS)}.")] = "sample"
    csv: Annotated[str | None, Option("The same as FILE.")] = None
    recipe: Annotated[str | None, Option(OF_RECIPE)] = None
    norm: Annotated[str | None, Option(f"{', '.join(NORMS)}; by default the recipe's.")] = None
    start: Annotated[str | None, Option("Model to fine-tune; it sets architecture and norm.", "from")] = None
    freeze: Annotated[int | None, Option("First layers of --from to keep; by default as in the recipe.")] = None

    @property
    def found_recipe(self) -> str:
        by_default = "slim" if self.csv is None or self.norm is not None else "foundation"
        return by_default if self.recipe is None else self.recipe

    def folder(self, config: Config) -> Path:
        of_table = "table" if self.csv == STANDARD_INPUT else Path(self.csv or "").name.split(".")[0]
        name = of_table if self.csv is not None else f"{self.dataset}-{config.model.norm}"
        return self.out or Path("runs") / f"{name}-{config.train.seed}"


@dataclass(frozen=True)
class EnsembleOptions:
    quick: Annotated[bool, Option("Fit only the kernel machine, in about half a minute.")] = False
    ensemble: Annotated[int | None, Option(f"Networks; by default {FOLDS}, or none if the first does not help.")] = None
    baseline: Annotated[bool, Option("Include a forest of extremely randomized trees.")] = True
    blend: Annotated[bool, Option("Include members other than networks.")] = True

    def __post_init__(self) -> None:
        if self.ensemble is not None and self.ensemble < 1:
            raise InputError(f"--ensemble {self.ensemble}: choose at least 1 network")


BEGINNING = "Your table"
ONLY_IN_FILE = {"out_of_fold", "weights", "learning_curve", "last_doubling"}  # too long to print
NETWORKS: dict[str, Any] = {"default": "as in the recipe", "panel": "Training of networks"}
OF_TABLES = FieldsOf(TableOptions, panel=BEGINNING, panels=OF_LABELS)
OF_RUNS = FieldsOf(RunOptions, panel="Benchmarks and recipes", panels={BEGINNING: ("out", "resume")})
OF_ENSEMBLES = FieldsOf(EnsembleOptions, panel="Members of a table model", panels={BEGINNING: ("quick",)})
ONLY_OF_TABLES = {"task", *(each.field for of in (OF_TABLES, OF_ENSEMBLES) for each in of.declared())}
OF_RECIPES = FieldsOf(TrainConfig, **NETWORKS)
DROPOUTS = FieldsOf(ModelConfig, ("dropout", "attention_dropout"), **NETWORKS)


def train(
    *,
    context: typer.Context,
    file: shared.TableFile = None,
    table: Annotated[dict[str, Any], OF_TABLES],
    task: shared.AskedTask = None,
    run: Annotated[RunOptions, OF_RUNS],
    ensemble: Annotated[EnsembleOptions, OF_ENSEMBLES],
    optimization: Annotated[dict[str, Any], OF_RECIPES],
    dropouts: Annotated[dict[str, Any], DROPOUTS],
    settings: shared.Settings = None,
    root: shared.Root = None,
    device: shared.Device = "auto",
    precision: shared.TrainingPrecision = "auto",
) -> None:
    """Train a model on your own table, or a Graphormer on a dataset, and score it on the test molecules.

    The model of a FILE combines a kernel machine, a forest and networks. Training options apply to the networks. All
    rows outside the test set are used for training; report.html shows the scores of the model and of each member.

    The run folder of a dataset contains config.json, model.safetensors (the best checkpoint by validation),
    metrics.jsonl (a line per epoch), curves.png, test.json and predictions.csv.

    Example: graphormer-sepnorm train assay.csv --target-columns pIC50 --out runs/assay
    """
    run = replace(run, csv=shared.one_table(file, run.csv))
    if run.csv is not None and run.dataset != RunOptions.dataset:
        raise InputError(f"name one of them: the table {run.csv}, or --dataset {run.dataset}")
    if run.csv in DATASETS and not Path(run.csv).exists():
        raise InputError(f"{run.csv} is a dataset, not a file: use train --dataset {run.csv}")
    compute, started = choose(device), time.perf_counter()
    recipe = find_recipe(run.found_recipe)
    train_config = in_precision(with_given(recipe.train, {**optimization, "start_from": run.start}), precision)
    content, options = None, None
    if run.csv is None:
        if names := given_names(context, ONLY_OF_TABLES):
            raise InputError(f"{', '.join(names)}: options of a table need one: name it first, as in train FILE")
        config = dataset_config(run.dataset, train_config, run.norm, recipe.architecture)
    else:
        content = read_whole(run.csv, *map(table.get, ("smiles_column", "delimiter", "sheet")))
        options, remarks = detected(run.csv, content, table, task, train_config.seed)
        say_once(remarks)
        if not run.resume:
            options = on_better_scales(options, content)
        asked = replace(recipe, train=train_config)
        config = task_config(TABLE, options.featurizer, table_task(options), asked, run.norm)
    if run.norm is not None and (start := config.train.start_from) is not None:
        raise InputError(f"the norm is that of {start}, from which training starts: leave --norm out")
    config = finetune.from_weights(config, run.start, run.freeze)
    config = with_settings(replace(config, model=replace(config.model, **dropouts)), settings or ())
    if options is not None:
        refuse_patience(config.train, recipe.train)
    if run.norm not in (None, config.model.norm):
        raise InputError(f"--norm {run.norm} and --set model.norm={config.model.norm} differ: leave one out")
    optimizers.find_optimizer(config.train.optimizer)
    if not ensemble.quick:  # which trains no networks
        finetune.check_start(config)
    if options is None:
        hint = "; for your own table: train FILE" if run.dataset == RunOptions.dataset else ""
        say_once([f"training {run.found_recipe} on {run.dataset}{hint}"])
    if ensemble.quick and (unused := unused_options(context, run, settings or ())):
        say_once([quick.quick_remark("--quick", unused)])
    scales = {} if options is None else {"log10": options.log10, "negative_log_molar": options.negative_log_molar}
    folder, command = run.folder(config), as_command(context, scales)
    if folder.is_file():
        raise InputError(f"{folder} is a file: name a folder to write with --out")
    with computing(compute), interruptible():
        if options is None:
            result = experiment.train_run(config, folder, root, run.resume, command)
        else:
            networks, look = ensemble.ensemble or FOLDS, ensemble.ensemble is None
            plan = Plan(networks, ensemble.baseline, ensemble.blend, ensemble.quick, run.resume, look, command)
            fit = train_folds if options.folds else train_table
            result = fit(replace(options, seed=config.train.seed), config, folder, plan, content)
    where = OUT_OF_FOLD if options is not None and options.final else "test"
    score = f"{where} {sentences.test_score_words(result)}, {time.perf_counter() - started:.0f} s"
    say_once([*sentences.on_left_out(result), *sentences.on_targets(result), f"{folder}: {score}"])
    if options is not None and not is_on_page():
        say_once(sentences.next_steps(folder, is_model=not options.folds))
    if run.csv is not None:
        short = {name: value for name, value in result.items() if name not in ONLY_IN_FILE}
        result = {"table": run.csv, **short, "scores_in": str(RunFolder(folder).test)}
    shared.print_result({"out": str(folder), **result})


def unused_options(context: typer.Context, run: RunOptions, settings: Sequence[str]) -> list[str]:
    recipe = {"recipe"} if run.recipe is not None and quick.is_unused(run.recipe, run.start) else set()
    of_config = quick.unused_settings(each.partition("=")[0] for each in settings)
    names = given_names(context, quick.UNUSED | recipe | {"baseline", "norm", "freeze"})
    return [*names, *(f"--set {name}" for name in of_config)]


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
OF_FROZEN = ("frozen_epochs", "frozen_statistics")  # trials start from random weights
SEARCHED_TABLES = FieldsOf(TableOptions, without=NOT_SEARCHED, panel=BEGINNING, panels=OF_LABELS)
SEARCHED_RECIPES = FieldsOf(TrainConfig, without=OF_FROZEN, **NETWORKS)


def tune(
    *,
    file: shared.TableFile = None,
    out: Annotated[Path, option("Folder of the search.", panel=BEGINNING)],
    csv: Annotated[str | None, option("The same as FILE.", panel=BEGINNING)] = None,
    search: Annotated[SearchOptions, FieldsOf(SearchOptions, panel="Search")],
    table: Annotated[dict[str, Any], SEARCHED_TABLES],
    task: shared.AskedTask = None,
    optimization: Annotated[dict[str, Any], SEARCHED_RECIPES],
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
    options, remarks = detected(path, content, table, task, train.seed)
    say_once(remarks)
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
    with computing(compute), interruptible():
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
    with shared.computing(device):
        rows = sweeping.sweep(dataset, norm, range(seeds), replace(chosen, train=train), out, root, settings or ())
    shared.print_result(rows, is_told=False)
