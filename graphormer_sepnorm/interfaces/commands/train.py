import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from graphormer_sepnorm.config import Config, ModelConfig, TrainConfig
from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces import quick
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.interfaces.commands.own_table import OF_LABELS, detected, on_better_scales
from graphormer_sepnorm.interfaces.commands.shared import FieldsOf, as_command, expanded, given_names
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.options import Option
from graphormer_sepnorm.recipes import RECIPES, dataset_config, find_recipe, task_config
from graphormer_sepnorm.runs.folder import REPORT
from graphormer_sepnorm.runs.info import score_words
from graphormer_sepnorm.runs.numbers import counted
from graphormer_sepnorm.system.device import choose, computing
from graphormer_sepnorm.system.progress import is_on_page
from graphormer_sepnorm.table_model.evaluate import targets_on_test
from graphormer_sepnorm.table_model.reliability import low_coverage, no_better, unjudged
from graphormer_sepnorm.table_model.scores import OUT_OF_FOLD, STACK
from graphormer_sepnorm.table_model.stacking import FOLDS
from graphormer_sepnorm.table_run import Plan, say_once, train_folds, train_table
from graphormer_sepnorm.tables.formats.text import STANDARD_INPUT
from graphormer_sepnorm.tables.labels import read_whole, table_task
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.tables.splits import known_words
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training.experiment import train_run
from graphormer_sepnorm.training.finetune import check_start, from_weights
from graphormer_sepnorm.training.optimizers import find_optimizer
from graphormer_sepnorm.training.settings import in_precision, refuse_patience, with_given, with_settings

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
        if self.recipe is not None:
            return self.recipe
        return "slim" if self.csv is None or self.norm is not None else "foundation"

    def folder(self, config: Config) -> Path:
        if self.csv is None:
            name = f"{self.dataset}-{config.model.norm}"
        else:
            name = "table" if self.csv == STANDARD_INPUT else Path(self.csv).name.split(".")[0]
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


BEGINNING, MOST_TARGETS = "Your table", 12  # of which each has a line
NETWORKS: dict[str, Any] = {"default": "as in the recipe", "panel": "Training of networks"}
OF_TABLES = FieldsOf(TableOptions, panel=BEGINNING, panels=OF_LABELS)
OF_RUNS = FieldsOf(RunOptions, panel="Benchmarks and recipes", panels={BEGINNING: ("out", "resume")})
OF_ENSEMBLES = FieldsOf(EnsembleOptions, panel="Members of a table model", panels={BEGINNING: ("quick",)})
ONLY_OF_TABLES = {"task", *(each.field for of in (OF_TABLES, OF_ENSEMBLES) for each in of.declared())}
OF_RECIPES = FieldsOf(TrainConfig, **NETWORKS)
DROPOUTS = FieldsOf(ModelConfig, ("dropout", "attention_dropout"), **NETWORKS)


@expanded
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
    run = replace(run, csv=own_table(file, run))
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
        options, sentences = detected(run.csv, content, table, task, train_config.seed)
        say_once(sentences)
        if not run.resume:
            options = on_better_scales(options, content)
        task_asked = table_task(options)
        config = task_config(TABLE, options.featurizer, task_asked, replace(recipe, train=train_config), run.norm)
    if run.norm is not None and (start := config.train.start_from) is not None:
        raise InputError(f"the norm is that of {start}, from which training starts: leave --norm out")
    config = from_weights(config, run.start, run.freeze)
    config = with_settings(replace(config, model=replace(config.model, **dropouts)), settings or ())
    if options is not None:
        refuse_patience(config.train, recipe.train)
    if run.norm not in (None, config.model.norm):
        raise InputError(f"--norm {run.norm} and --set model.norm={config.model.norm} differ: leave one out")
    find_optimizer(config.train.optimizer)
    if not ensemble.quick:  # which trains no networks
        check_start(config)
    if options is None:
        hint = "; for your own table: train FILE" if run.dataset == RunOptions.dataset else ""
        say_once([f"training {run.found_recipe} on {run.dataset}{hint}"])
    if ensemble.quick and (unused := unused_options(context, run, settings or ())):
        say_once([quick.quick_remark("--quick", unused)])
    scales = {} if options is None else {"log10": options.log10, "negative_log_molar": options.negative_log_molar}
    folder, command = run.folder(config), as_command(context, scales)
    if folder.is_file():
        raise InputError(f"{folder} is a file: name a folder to write with --out")
    with computing(compute):
        if options is None:
            result = train_run(config, folder, root, run.resume, command)
        else:
            networks, look = ensemble.ensemble or FOLDS, ensemble.ensemble is None
            plan = Plan(networks, ensemble.baseline, ensemble.blend, ensemble.quick, run.resume, look, command)
            fit = train_folds if options.folds else train_table
            result = fit(replace(options, seed=config.train.seed), config, folder, plan, content)
    seconds = time.perf_counter() - started
    say_once([*left_out_lines(result), *target_lines(result)])
    where = OUT_OF_FOLD if options is not None and options.final else "test"
    say_once([f"{folder}: {where} {shared.test_score_words(result)}, {seconds:.0f} s"])
    if options is not None and not is_on_page():
        say_once(next_steps(folder, is_model=not options.folds))
    source = {} if run.csv is None else {"table": run.csv}
    shared.print_result({"out": str(folder), **source, **result})


def own_table(file: str | None, run: RunOptions) -> str | None:
    """The user's table; raises InputError if it is named twice, in addition to a dataset, or is a dataset's name."""
    path = shared.one_table(file, run.csv)
    if path is not None and run.dataset != "sample":
        raise InputError(f"name one of them: the table {path}, or --dataset {run.dataset}")
    if path in DATASETS and not Path(path).exists():
        raise InputError(f"{path} is a dataset, not a file: use train --dataset {path}")
    return path


def unused_options(context: typer.Context, run: RunOptions, settings: Sequence[str]) -> list[str]:
    recipe = {"recipe"} if run.recipe is not None and quick.is_unused(run.recipe, run.start) else set()
    of_config = quick.unused_settings(each.partition("=")[0] for each in settings)
    names = given_names(context, quick.UNUSED | recipe | {"baseline", "norm", "freeze"})
    return [*names, *(f"--set {name}" for name in of_config)]


def left_out_lines(result: dict) -> Iterator[str]:
    """Sentences on members without predictions, on intervals that are too narrow, and on labels without scores."""
    for member, reason in result.get("left_out_members", {}).items():
        yield f"the {member} {'were' if member == 'networks' else 'was'} left out of the model: {reason}"
    yield from result.get("remarks", {}).values()
    yield from filter(None, [known_words(result)])
    yield from no_better(result)
    yield from low_coverage(result)
    yield from unjudged(result)
    censored = {target: count for target, count in result.get("censored", {}).items() if count}
    for target, count in censored.items():
        are = "is" if count == 1 else "are"
        scores = result.get("targets", {}).get(target, {}).get("bounds", {}).get(STACK)
        right = f"; predicted on their side: {round(scores['right_side'] * scores['bounds'])}" if scores else ""
        yield f"{counted(count, 'bound')} among the labels of {target} {are} not in this score{right}"


def target_lines(result: dict) -> Iterator[str]:
    """The score of each of several targets that can be judged; of many, the best and the worst."""
    every = {name: each for name, each in targets_on_test(result).items() if name not in result.get("left_out", {})}
    metric, names = METRICS[result["metric"]], list(every) if len(result.get("targets", ())) > 1 else []
    if len(names) > MOST_TARGETS:
        best_first = sorted(names, key=lambda name: every[name]["value"], reverse=metric.higher_is_better)
        names = [best_first[0], best_first[-1]]
        yield f"the best and the worst of {len(every)} targets; {REPORT} has all"
    for name in names:
        yield f"{name}: {metric.title} {score_words(**every[name])}"


def next_steps(folder: Path, is_model: bool) -> Iterator[str]:
    """The report to open, and the command that predicts with the model, or first how to get one if there are folds."""
    if (folder / REPORT).exists():
        yield f"open {shlex.quote(str(folder / REPORT))} in a browser for the scores and how far to trust predictions"
    quoted = shlex.quote(str(folder if is_model else folder.with_name(f"{folder.name}-model")))
    if not is_model:
        how = f"with --final in place of --folds and with --out {quoted}"
        yield f"folds do not predict: for a model, repeat this command {how}"
    command = f"graphormer-sepnorm predict {quoted} FILE -o predictions.csv --interval 0.9 --domain"
    yield f"{'predict other molecules' if is_model else 'then predict other molecules'}: {command}"
