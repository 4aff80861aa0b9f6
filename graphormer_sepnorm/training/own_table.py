"""A run, an ensemble of runs, or one per fold, on a table of one's own."""

import csv
import statistics
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.dataset import SPLITS, cache_root
from graphormer_sepnorm.inference.forest import Forest, blended, save_forest
from graphormer_sepnorm.runs.folder import Parts, RunFolder
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.tables.formats import WholeTable
from graphormer_sepnorm.tables.labels import LabelledTable, TableOptions, check_splits, read_folds, read_labelled
from graphormer_sepnorm.tables.prepared_table import write_labelled
from graphormer_sepnorm.tables.remarks import remarks, repeatability
from graphormer_sepnorm.tasks import METRICS, TASKS
from graphormer_sepnorm.training.baseline import blend_weight, fit_forest, table_features
from graphormer_sepnorm.training.experiment import score_runs, train_run
from graphormer_sepnorm.training.finishing import finish_table
from graphormer_sepnorm.training.optimizers import find_optimizer
from graphormer_sepnorm.training.run_writer import training_alone


@dataclass(frozen=True)
class Plan:
    """What is trained on a table, and how.

    Attributes:
        members: number of models, which differ in their seed.
        baseline: whether a random forest is fitted to the same training molecules; its test scores are under
            ``baseline``.
        blend: whether that forest takes part in the predictions, by the weight that validation chooses; of several
            classes that exclude each other it never does, because its probabilities do not add up to 1.
        resume: go on from the last saved epoch.
    """

    members: int = 1
    baseline: bool = True
    blend: bool = True
    resume: bool = False


Training = Callable[[LabelledTable, TableOptions, Config, RunFolder, Plan], dict]


def train_table(
    options: TableOptions,
    config: Config,
    out: Path,
    plan: Plan,
    content: WholeTable | None = None,
    train: Training | None = None,
) -> dict:
    """Trains one model on a table, or an ensemble of models.

    Args:
        options: how to read the table.
        config: of the first run, with the task of ``table_task`` and the dataset ``TABLE``.
        out: run folder of one model; of an ensemble, the folder of the run folders ``model-0``, ``model-1``, ...
        plan: what is trained.
        content: of the table, if it was read before.
        train: what trains on the table when it is read and divided; None: ``train_labelled``.

    Returns:
        what ``finish_table`` returns, which ``test.json`` holds too, and the numbers of rows that were used and
        skipped, of molecules that stand in several rows, and of those of them whose labels contradict each other.

    Raises:
        InputError: as ``read_labelled`` and ``train_run``; nothing is written if the table cannot be used.
    """
    check_beginning(config, [RunFolder(out)], plan)
    labelled = read_labelled(options, config.featurizer, content)
    check_splits(options, config.task, labelled)
    say(remarks(options, labelled))
    result = (train or train_labelled)(labelled, options, config, RunFolder(out), plan)
    return result | numbers_of_rows(options, labelled)


def train_folds(
    options: TableOptions,
    config: Config,
    out: Path,
    plan: Plan,
    content: WholeTable | None = None,
    train: Training | None = None,
) -> dict:
    """Trains as ``train_table`` once per fold, so that every molecule is predicted by models that did not see it.

    Args:
        out: folder of a folder ``fold-0``, ``fold-1``, ... for each fold, and of ``predictions.csv``, where ``split``
            is the fold in which a molecule was tested.
        options, config, plan, content, train: as ``train_table``; ``options.folds`` says how many folds there are.

    Returns:
        ``metric``, ``folds``, their mean ``value`` and its standard ``deviation`` over the folds, the same of the
        forest under ``baseline``, and the numbers of rows; ``test.json`` holds the same.

    Raises:
        InputError: as ``train_table`` and ``read_folds``.
    """
    whole, parts = RunFolder(out), Parts("fold", options.folds)
    whole.check_parts(parts)
    check_beginning(config, [whole.fold(number) for number in range(options.folds)], plan)
    tables = read_folds(options, config.featurizer, content)
    for labelled in tables:
        check_splits(options, config.task, labelled)
    say(remarks(options, tables[0]))
    if distributed.rank() == 0:
        whole.begin_parts(parts)
    results = [
        (train or train_labelled)(labelled, options, config, whole.fold(number), plan)
        for number, labelled in enumerate(tables)
    ]
    metric = config.task.metric
    result = {"metric": metric, **over_folds([result["value"] for result in results])}
    if distributed.rank() == 0:
        if plan.baseline:
            forests = over_folds([result["baseline"]["random_forest"][metric] for result in results])
            result["baseline"] = {"random_forest": {metric: forests.pop("value"), **forests}}
        whole.write_predictions(predictions_out_of_fold(whole, options.folds))
        whole.write_test(result)
    return result | numbers_of_rows(options, tables[0])


def check_beginning(config: Config, outs: list[RunFolder], plan: Plan) -> None:
    """Raises InputError for what is known to be wrong before the table is read."""
    for whole in outs:
        if plan.members > 1:
            whole.check_parts(Parts("model", plan.members))
        for run in folders(whole, plan):
            run.check_free(plan.resume)
    find_optimizer(config.train.optimizer)


def folders(whole: RunFolder, plan: Plan) -> list[RunFolder]:
    """The run folder of each model."""
    return [whole] if plan.members == 1 else [whole.member(number) for number in range(plan.members)]


def train_labelled(
    labelled: LabelledTable, options: TableOptions, config: Config, whole: RunFolder, plan: Plan
) -> dict:
    """As ``train_table``, on a table that is read and divided."""
    runs = folders(whole, plan)
    if plan.members > 1 and distributed.rank() == 0:
        whole.begin_parts(Parts("model", plan.members))
    for number, run in enumerate(runs):
        own = replace(config, train=replace(config.train, seed=config.train.seed + number))
        with training_alone(run, plan.resume):
            if distributed.rank() == 0:
                write_labelled(run.path, labelled, config, options)
            distributed.wait_for_all()
            train_run(own, run.path, resume=plan.resume, alone=nullcontext())
    distributed.wait_for_all()
    val, test = (score_runs([run.path for run in runs], split) for split in ("val", "test"))
    if distributed.rank() > 0:
        return test.result
    with advising(f"{whole} has its models: the same command and --resume does the rest"):
        result: dict = {}
        if plan.baseline:
            beside = grow_beside(labelled, val.task, config.train.seed)
            result["baseline"] = {"random_forest": TASKS[val.task.kind].scores(test.y, beside.with_means(beside.test))}
        if plan.baseline and plan.blend and not TASKS[val.task.kind].adds_up:
            weight = blend_weight(val.y, val.prediction, beside.val, METRICS[val.task.metric])
            save_forest(whole.forest, replace(beside.forest, weight=weight))
            result["forest_weight"] = weight
            val = val.of(blended(val.prediction, beside.val, weight))
            test = test.of(blended(test.prediction, beside.test, weight))
        else:
            whole.forest.unlink(missing_ok=True)  # of an earlier call
        return finish_table(whole, val, test, result)


@dataclass(frozen=True)
class BaselineForest:
    """A forest on the training split of a table.

    Attributes:
        forest: without a weight.
        val, test: [M, T], what it predicts for these splits; NaN for a molecule without descriptors.
        means: [T] of the training labels.
    """

    forest: Forest
    val: np.ndarray
    test: np.ndarray
    means: np.ndarray

    def with_means(self, prediction: np.ndarray) -> np.ndarray:
        """Predictions [M, T] with the means where there are none."""
        return np.where(np.isnan(prediction), self.means, prediction)


def grow_beside(labelled: LabelledTable, task: TaskConfig, seed: int) -> BaselineForest:
    """Fits random forests to the training split; ``seed`` is theirs."""
    parts = [labelled.of_split(split) for split in SPLITS]
    features = table_features([row.smiles for part in parts for row in part], cache_root() / "descriptors")
    train, val, test = np.split(features, np.cumsum([len(part) for part in parts])[:-1])
    y = np.array([row.labels for row in parts[0]])
    forest = fit_forest(train, y, "classification" if TASKS[task.kind].predicts_probabilities else "regression", seed)
    return BaselineForest(forest, forest.predict(val), forest.predict(test), np.nanmean(y, axis=0))


def over_folds(values: list[float]) -> dict:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return {"value": statistics.fmean(values), "deviation": deviation, "folds": values}


def predictions_out_of_fold(whole: RunFolder, folds: int) -> list[list[str]]:
    """The lines of the folds' ``predictions.csv`` in the order of the table, under one header."""
    found = []
    for number in range(folds):
        with open(whole.fold(number).predictions, newline="") as file:
            header, *lines = csv.reader(file)
        found += [[row, smiles, f"fold-{number}", *rest] for row, smiles, _, *rest in lines]
    return [header, *sorted(found, key=lambda line: int(line[0]))]


def say(sentences: list[str]) -> None:
    """Prints sentences for people, each on a line of standard error; of several processes the first does."""
    if distributed.rank() == 0:
        for sentence in sentences:
            print(sentence, file=sys.stderr)


def numbers_of_rows(options: TableOptions, labelled: LabelledTable) -> dict:
    """Numbers of rows, and how far repeated measurements deviate, by target, if there are any."""
    found: dict = {
        "rows": len(labelled.usable),
        "skipped": len(labelled.skipped),
        "duplicates": len(labelled.duplicates),
        "conflicting": sum(bool(duplicate.conflicts) for duplicate in labelled.duplicates),
    }
    deviations = repeatability(options, labelled)
    return found | {"repeatability": deviations} if deviations else found
