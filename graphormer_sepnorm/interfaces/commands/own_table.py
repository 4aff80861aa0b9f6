"""Conversion of a command's options to those of a table."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import typer

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.signals import num_processes
from graphormer_sepnorm.tables.formats.table import WholeTable, names_shown
from graphormer_sepnorm.tables.label_text import is_missing, is_undecided, measurement_parts
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.remarks import MUCH_LOST, plural
from graphormer_sepnorm.tables.rows import SPLIT_NAMES, TargetReader, id_column_among, places_of, target_readers
from graphormer_sepnorm.tables.task_guess import guess_task, look_at_columns
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.scales import better_scale, falls, mass_unit, modelled_name, unit_of

AskedKind = Literal["regression", "classification"] | None
# Headings of the options of a table in the help, with the fields below each.
OF_LABELS = {
    "Reading the table": (
        *("smiles_column", "delimiter", "decimal", "id_column", "strip_salts", "standardize", "require_conditions"),
    ),
    "Test molecules": ("split", "split_column", "sizes", "folds", "test_csv", "final"),
    "Labels and scores": (
        *("balance", "metric", "loss", "weights", "weight_column", "log10", "negative_log_molar"),
        *("active_below", "active_above", "called", "title"),
    ),
}


def on_better_scales(options: TableOptions, content: WholeTable) -> TableOptions:
    """The options with the scales of ``better_scale``, if somebody at a terminal wants them who chose none."""
    is_chosen = TASKS[options.kind].predicts_probabilities or options.log10 or options.negative_log_molar
    if is_chosen or num_processes() > 1 or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return options
    readers = target_readers(options, content)
    better = {each.name: better_scale(each.name, exact_labels(each, content), each.unit) for each in readers}
    scales = {target: scale for target, scale in better.items() if scale}
    learnt = ", ".join(modelled_name(target, scale) for target, scale in scales.items())
    question = f"The labels of {', '.join(scales)} span a wide range. Learn {learnt} instead?"
    if not scales or not typer.confirm(question, default=True, err=True):
        return options
    molar = tuple(f"{target}={unit_of(scale)}" for target, scale in scales.items() if falls(scale))
    log10 = tuple(target for target, scale in scales.items() if not falls(scale))
    return replace(options, log10=log10, negative_log_molar=molar)


def exact_labels(reader: TargetReader, content: WholeTable) -> np.ndarray:
    labels = []
    for text in content.texts(reader.name):
        with suppress(InputError):
            labels.append(reader.label(text)[0])
    return np.array(labels)


def detected(
    path: str, content: WholeTable, arguments: dict[str, Any], task: AskedKind, seed: int
) -> tuple[TableOptions, list[str]]:
    """The options of a table from ``arguments`` and the task that its labels suggest, and sentences on it."""
    if (smiles := content.columns[content.smiles_place]) in arguments.get("targets", ()):
        raise InputError(f"{smiles} is the column of molecules: name the columns to predict", "target_columns")
    places_of(path, content.columns, [arguments["split_column"]] if arguments.get("split_column") else [])
    target: tuple[str, ...] = () if arguments.get("targets") else only_target(path, content, arguments)
    targets = arguments.get("targets", ()) or target
    is_given = arguments.get("active_below") or arguments.get("active_above")  # a threshold, so a kind of task
    guess = guess_task([] if task == "regression" or is_given else look_at_columns(content, targets), task)
    guess = replace(guess, kind="classification") if is_given and task is None else guess
    has_others = any(arguments.get(name) for name in ("split_column", "weight_column", "feature_columns"))
    unused = "neither SMILES, nor an id, nor named by another option" if has_others else "neither SMILES nor an id"
    sentences = [f"predicting {targets[0]}, the only column that is {unused}"] if target else []
    options = TableOptions(path, **arguments | {"targets": targets}, kind=guess.kind, classes=guess.classes, seed=seed)
    words = [*sentences, guess.sentence, *words_on_separators(content, options), *words_on_masses(options)]
    return options, list(filter(None, [*words, *words_on_split(content, arguments)]))


def words_on_separators(content: WholeTable, options: TableOptions) -> Iterator[str]:
    """On target columns with a few numbers such as "1,234" of which nothing tells what they mean; refuses many."""
    if TASKS[options.kind].predicts_probabilities and not options.threshold:
        return
    for reader in target_readers(options, content):
        texts = [text for text in content.texts(reader.name) if not is_missing(text)]
        unknown = [text for text in texts if is_undecided(measurement_parts(text)[0], reader.notation)]
        if unknown:
            problem = f"{reader.name}: nothing tells whether the separator of {unknown[0].strip()!r} is one of decimals"
            if len(unknown) > MUCH_LOST * len(texts):
                raise InputError(f"{problem}, nor of {len(unknown):,} of {len(texts):,} labels: choose it", "decimal")
            left_out = f"and {plural(len(unknown), 'label is', 'labels are')} left out"
            yield f"{problem}, {left_out}: choose the decimal separator (--decimal point or comma)"


def words_on_masses(options: TableOptions) -> Iterator[str]:
    """Which targets of a regression that are learnt as they are have a unit of mass, by their names."""
    for name in options.targets if options.kind == "regression" else ():
        if (unit := mass_unit(name)) and not options.scale_of(name):
            advice = "errors of molecules compare better after division by it"
            yield f"{name}: labels in {unit} grow with the molecular weight; {advice}"


def words_on_split(content: WholeTable, options: dict[str, Any]) -> Iterator[str]:
    """Whether a column says which rows are train, val and test, or could; nothing without such a column."""
    used, split = options.get("split_column"), options.get("split", TableOptions.split)
    if split == "column" and used is not None:
        yield f"the column {used} says which rows are train, val and test"
    roles = {used, *options.get("targets", ()), *options.get("feature_columns", ())}
    for name in (each for each in content.columns if each.strip().lower() == "split" and each not in roles):
        texts = {text.strip().lower() for text in content.texts(name)}
        unsuitable = "" if texts <= set(SPLIT_NAMES) else " if its cells are train, val or test"
        how = f"to use it{unsuitable}, add --split column --split-column {shlex.quote(name)}"
        made = "--test-csv" if options.get("test_csv") is not None else split
        yield f"the column {name} is not used, because the split is by {made}: {how}"


def only_target(path: str, content: WholeTable, options: dict[str, Any]) -> tuple[str, ...]:
    """The only column of a table that is not empty and has no other purpose; raises InputError for none or several."""
    smiles = content.columns[content.smiles_place]
    named = map(options.get, ("split_column", "weight_column", "id_column"))
    used = {smiles, *named, *options.get("feature_columns", ())}
    filled = {place for row in content.rows for place, cell in enumerate(row.fields) if cell.strip()}
    left = [name for place, name in enumerate(content.columns) if name not in used and place in filled]
    id_column = id_column_among(left)
    candidates = [name for name in left if name != id_column]
    if not candidates:
        raise InputError(f"{path} has no column to predict: its columns are {names_shown(content.columns)}")
    if len(candidates) > 1:
        listed = names_shown(content.columns)
        raise InputError(f"name the columns to predict (the columns of {path}: {listed})", "target_columns")
    return (candidates[0],)
