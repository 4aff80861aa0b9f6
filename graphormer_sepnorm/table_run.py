"""Training of a table model: from a user's table to a run folder with test scores. M molecules, T targets."""

import contextlib
import csv
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.report.reported import Trained
from graphormer_sepnorm.report.write import pooled, predicted_together, report, report_folds, rows_of_folds
from graphormer_sepnorm.runs.folder import Parts, RunFolder
from graphormer_sepnorm.runs.numbers import counted
from graphormer_sepnorm.system import distributed, progress
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.system.workers import one_thread_for_small
from graphormer_sepnorm.table_model.evaluate import evaluate_table
from graphormer_sepnorm.table_model.features import Conditions, MoleculeFeatures, condition_values, with_known
from graphormer_sepnorm.table_model.fit import DESCRIBING, fit_table, reason_to_stop
from graphormer_sepnorm.table_model.labels import Folds, Labels, label_arrays, with_offset
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.base import ToFit
from graphormer_sepnorm.table_model.members.kernel import KernelMember, body_of
from graphormer_sepnorm.table_model.members.networks import check_resumable
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.scores import STACK
from graphormer_sepnorm.table_model.stacking import FOLDS, make_folds
from graphormer_sepnorm.tables.formats.table import WholeTable
from graphormer_sepnorm.tables.labels import LabelledRow, LabelledTable, check_splits, read_folds, read_labelled
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import write_labelled
from graphormer_sepnorm.tables.remarks import remarks as table_remarks
from graphormer_sepnorm.tables.remarks import repeatability
from graphormer_sepnorm.tasks import make_task
from graphormer_sepnorm.training.optimizers import find_optimizer

READING, SCORING = "reading the table", "scoring and reporting"


@dataclass(frozen=True)
class Plan:
    networks: int = FOLDS  # one per fold; a single one has validation rows in place of folds
    forest: bool = True
    blend: bool = True  # fit members other than networks
    quick: bool = False  # stop after the kernel
    resume: bool = False
    look: bool = False  # train only the network of the first fold where it does not help
    command: str = ""  # the options of the command as JSON, to keep in the run folder

    @property
    def members(self) -> list[str]:
        if self.quick:
            return ["kernel"]
        return [name for name in MEMBERS if self.forest or name != "forest"] if self.blend else ["networks"]


def train_table(
    options: TableOptions, config: Config, out: Path, plan: Plan, content: WholeTable | None = None
) -> dict:
    """Fits a table model to a table, writes it, and scores it on the test rows; raises before it writes anything."""
    check_beginning(RunFolder(out), config, plan)
    if options.final and plan.networks == 1:
        raise InputError("--final fits all rows, but one network keeps validation rows: choose --ensemble 2 or more")
    with progress.phases(costs(plan, config)):
        progress.begin(READING)
        return train_labelled(options, read_labelled(options, config.featurizer, content), config, out, plan)


def train_labelled(options: TableOptions, labelled: LabelledTable, config: Config, out: Path, plan: Plan) -> dict:
    labelled, sentences = to_learn(options, labelled, config.task)
    say_once(sentences)
    return fit_run(labelled, options, config, RunFolder(out), plan) | numbers_of_rows(options, labelled)


def to_learn(options: TableOptions, labelled: LabelledTable, task: TaskConfig) -> tuple[LabelledTable, list[str]]:
    """A table without rows that cannot be scored, and remarks on it; raises InputError as ``check_splits``."""
    labelled = scorable(options, labelled)
    check_splits(options, task, labelled)
    return labelled, remarks(options, labelled)


def remarks(options: TableOptions, labelled: LabelledTable) -> list[str]:
    conditions = learnt_conditions(options, labelled).remarks(conditions_outside_test(labelled))
    return [*table_remarks(options, labelled), *conditions]


def costs(plan: Plan, config: Config) -> dict[str, float]:
    """Rough costs of the phases of a training: seconds of one core for a thousand rows."""
    seconds = {"kernel": 8.0, "forest": 6.0, "networks": 0.5 * plan.networks * config.train.epochs}
    return {READING: 6.0, DESCRIBING: 12.0, **{name: seconds.get(name, 1.0) for name in plan.members}, SCORING: 4.0}


def train_folds(
    options: TableOptions, config: Config, out: Path, plan: Plan, content: WholeTable | None = None
) -> dict:
    """Trains as ``train_table`` once per fold, so that every molecule is a test molecule once."""
    whole, parts, metric = RunFolder(out), Parts("fold", options.folds), config.task.metric
    if whole.stack.exists():
        raise InputError(f"{whole} holds a table model: choose another --out")
    whole.check_parts(parts)
    for number in range(options.folds):
        check_beginning(whole.fold(number), config, plan)
    read = read_folds(options, config.featurizer, content)
    tables = [scorable(options, labelled) for labelled in read]
    for labelled in tables:
        check_splits(options, config.task, labelled)
    say_once(remarks(options, read[0]))
    if unscored := sum(len(every.rows) - len(kept.rows) for every, kept in zip(read, tables, strict=True)):
        say_once([f"{counted(unscored, 'row')} without a score, under conditions that no training row of the fold has"])
    if distributed.rank() == 0:
        with whole.locked():
            whole.begin_parts(parts)
    results = []
    for number, labelled in enumerate(tables):
        with progress.phases(costs(plan, config) | {READING: 0.0}, f"fold {number + 1} of {len(tables)}, "):
            results.append(fit_run(labelled, options, config, whole.fold(number), plan))
    result = {"metric": metric, **over_folds([each["value"] for each in results])}
    if distributed.rank() == 0:
        lines = predictions_out_of_fold(whole, options.folds)
        table = rows_of_folds(tables)
        together = predicted_together(replace(config.task, class_names=table.class_names), lines)
        result |= pooled(results, together)
        judged = result["targets"].keys() - result.get("left_out", {})
        result |= over_folds([mean_of_targets(each, judged, STACK) for each in results])
        if all("baseline" in each for each in results):
            forests = over_folds([mean_of_targets(each, judged, "forest") for each in results])
            result["baseline"] = {"random_forest": {metric: forests.pop("value"), **forests}}
        whole.write_predictions(lines)
        whole.write_test(result)
        report_folds(whole, options, results, table, result, together)
    return result | numbers_of_rows(options, read[0])


def scorable(options: TableOptions, labelled: LabelledTable) -> LabelledTable:
    labels = with_known(labelled, learnt_conditions(options, labelled))
    if not options.final and not labels.of_split("test"):
        number, _, reason = next(each for each in labels.skipped if each not in labelled.skipped)
        first = f"{labels.in_file(number)}: {reason}"
        raise InputError(f"{options.path}: no test row has conditions of the training rows; {first}")
    return labels


def learnt_conditions(options: TableOptions, labelled: LabelledTable) -> Conditions:
    return Conditions.of(options.feature_columns, conditions_outside_test(labelled))


def conditions_outside_test(labelled: LabelledTable) -> list[tuple[str, ...]]:
    return [row.conditions for row in labelled.rows if row.split != "test"]


def check_beginning(whole: RunFolder, config: Config, plan: Plan) -> None:
    """Raises InputError for problems that can be detected before the table is read."""
    find_optimizer(config.train.optimizer)
    if (held := whole.parts()) is not None and held.kind == "fold":
        raise InputError(f"{whole} holds {held}, or choose another --out")
    if whole.holds_run:
        raise InputError(f"{whole} already holds a run of one network: choose another --out")
    if whole.is_from_python:
        raise InputError(f"{whole} holds a model saved from Python, which cannot be continued: choose another --out")
    if not plan.resume and (held is not None or whole.stack.exists()):
        raise InputError(f"{whole} already holds a model: continue it with --resume, or choose another --out")


def fit_run(labelled: LabelledTable, options: TableOptions, config: Config, whole: RunFolder, plan: Plan) -> dict:
    """Fits to all rows outside the test set and scores on it; the kernel is written before networks train."""
    table = to_fit(labelled, options, config, plan, options.weight_column is not None)
    table = replace(table, folder=whole.path, resume=plan.resume, verbose=True)
    config, folds = table.config, table.folds
    if "networks" in plan.members:
        whole.check_parts(Parts("model", len(folds)))
        if plan.resume:
            check_resumable(whole, table)
    with whole.locked() if distributed.rank() == 0 else contextlib.nullcontext():
        if distributed.rank() == 0:
            write_labelled(whole.path, labelled, config, options)
            if plan.command:
                write_atomically(whole.command, plan.command.encode())
        distributed.wait_for_all()
        if plan.resume and (kept := finished_result(whole, config, folds, plan)):
            say_once([f"{whole} is finished: to train again, choose another --out"])
            return kept
        keeps = advising(f"{whole} keeps the progress so far: add --resume to the same command to continue")
        with keeps, one_thread_for_small(len(table.labels)):
            is_first = distributed.rank() == 0
            early = (lambda model: model.save(whole.path)) if is_first and not whole.stack.exists() else None
            fitted = fit_table(table, plan.members, early)
            if is_first:
                fitted.model.save(whole.path)
            distributed.wait_for_all()
            if not (is_first or options.final):
                return evaluate_table(whole)
            what = "predictions out of fold" if options.final else "test molecules"
            say_once([f"scoring the {what}, writing the report"])
            progress.begin(SCORING)
            return report(Trained(whole, fitted, table.molecules, table.labels, folds, labelled, options))


def finished_result(whole: RunFolder, config: Config, folds: Folds, plan: Plan) -> dict:
    """The result of a finished training of this plan with this kernel, as it was reported; empty if there is none."""
    is_whole = all(path.exists() for path in (whole.stack, whole.report, whole.predictions))
    result = whole.saved_test() if is_whole else {}
    left_out = result.get("left_out_members", {})
    is_same = result.get("seed") == config.train.seed and result.get("folds", len(folds)) == len(folds)
    is_same &= {*result.get("members", ()), *left_out} == set(plan.members)
    if not is_same or ("networks" in left_out and not plan.look):
        return {}
    kernel = TableModel.load(whole.path).members.get("kernel")
    return {} if isinstance(kernel, KernelMember) and kernel.reference.body != body_of(config) else result


def to_fit(labelled: LabelledTable, options: TableOptions, config: Config, plan: Plan, is_weighted: bool) -> ToFit:
    """The molecules outside the test set; for a single network, the validation rows take the place of the folds."""
    places = [place for place, row in enumerate(labelled.rows) if row.split != "test"]
    rows, structures = [labelled.rows[place] for place in places], labelled.structures.take(places)
    labels = labels_of(rows, replace(config.task, class_names=labelled.class_names), labelled.names, is_weighted)
    conditions = learnt_conditions(options, labelled)
    config = replace(config, task=labels.task, model=replace(config.model, conditions=conditions.width))
    values, _ = conditions.encode_all(conditions_outside_test(labelled))
    folds = Folds(np.array([0 if row.split == "val" else -1 for row in rows]))
    if plan.networks > 1:
        folds = make_folds(structures, labels, options.split, config.train.seed, plan.networks)
    molecules, look = MoleculeFeatures(structures.smiles, {condition_values: values}), reason_to_stop
    return ToFit(molecules, labels, folds, config, conditions=conditions, look=look if plan.look else None)


def labels_of(
    rows: Sequence[LabelledRow], task: TaskConfig, names: Mapping[int, str] | None = None, is_weighted: bool = False
) -> Labels:
    """The labels of rows and their bounds, with the scale of the task; rows without a name have their number."""
    y, bounds = label_arrays(rows)
    called = np.array([(names or {}).get(row.number) or str(row.number) for row in rows])
    weight = np.array([row.weight for row in rows]) if is_weighted else None
    return Labels(with_offset(make_task(task).fitted(y, weight)), y, bounds, weight, called)


def mean_of_targets(result: dict, targets: Collection[str], name: str) -> float:
    """The mean score of some targets in a fold; of all of its targets, if none of them has one there."""
    every = {target: facts["scores"][name][result["metric"]] for target, facts in result["targets"].items()}
    scores = {target: score for target, score in every.items() if score is not None}
    return statistics.fmean([score for target, score in scores.items() if target in targets] or scores.values())


def over_folds(values: list[float]) -> dict:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return {"value": statistics.fmean(values), "deviation": deviation, "folds": values}


def predictions_out_of_fold(whole: RunFolder, folds: int) -> list[list[str]]:
    """The lines of the folds' ``predictions.csv`` in table order, under one header."""
    rows = []
    for number in range(folds):
        with open(whole.fold(number).predictions, newline="", encoding="utf-8", errors="surrogateescape") as file:
            header, *lines = csv.reader(file)
        rows += [[row, smiles, f"fold-{number}", *rest] for row, smiles, _, *rest in lines]
    return [header, *sorted(rows, key=lambda line: int(line[0]))]


def say_once(sentences: Iterable[str]) -> None:
    """As ``progress.say``; with several processes, only the first prints."""
    if distributed.rank() == 0:
        progress.say(sentences)


def numbers_of_rows(options: TableOptions, labelled: LabelledTable) -> dict:
    duplicates, deviations = labelled.duplicates, repeatability(options, labelled)
    numbers: dict = {"rows": len(labelled.usable), "skipped": len(labelled.skipped), "duplicates": len(duplicates)}
    numbers["conflicting"] = sum(bool(duplicate.conflicts) for duplicate in duplicates)
    return numbers | {"repeatability": deviations} if deviations else numbers
