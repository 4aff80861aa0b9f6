"""Training on a table of one's own: reading its labels, splitting it, and a run or an ensemble on it.

The rows that can be used go into the run folder as ``table.csv``, with their split, and the others as ``skipped.csv``,
with the reason; so a run folder has all that its scores can be computed again from.  ``duplicates.csv`` names the
molecules that stand in several rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

import numpy as np

from graphormer_sepnorm.config import Kind, TaskConfig
from graphormer_sepnorm.dataset import SPLITS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.workers import in_chunks, map_chunks
from graphormer_sepnorm.tables.formats import Row, WholeTable, not_one_column, open_table
from graphormer_sepnorm.tables.label_text import is_missing, read_bound, read_class, read_number, same_label
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.splits import (
    SPLITTERS,
    Duplicate,
    find_duplicates,
    fold_splits,
    is_time,
    read_times,
    time_split,
)
from graphormer_sepnorm.tables.structures import Structure, Structures, read_structures
from graphormer_sepnorm.tables.task_guess import Guess, guess_task, look_at_columns
from graphormer_sepnorm.tasks import TASKS, make_task

MAX_ROWS = 10_000_000
SPLIT_NAMES = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


@dataclass(frozen=True)
class LabelledRow:
    """A row that can be used.

    Attributes:
        number: from 1 on.
        smiles: its molecule.
        labels: one per target, NaN where missing or not known exactly.
        split, time: where a column says them.
        bounds: labels such as "<5.0" that bound a number, by the place of their target.
    """

    number: int
    smiles: str
    labels: list[float]
    split: str = ""
    time: str = ""
    bounds: dict[int, str] = field(default_factory=dict)


@dataclass
class LabelledTable:
    """What was read from a table.

    Attributes:
        rows: those that can be used, with their splits.
        skipped: number, SMILES and reason of the others.
        duplicates: molecules that stand in several of ``rows``.
        structures: of the molecules of ``rows``.
    """

    rows: list[LabelledRow] = field(default_factory=list)
    skipped: list[tuple[int, str, str]] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    structures: Structures = field(default_factory=lambda: Structures([], [], []))

    def labels(self) -> np.ndarray:
        """The labels of the rows [M, T], NaN where missing."""
        return np.array([row.labels for row in self.rows])

    def of_split(self, split: str) -> list[LabelledRow]:
        return [row for row in self.rows if row.split == split]

    def with_splits(self, splits: Sequence[str]) -> "LabelledTable":
        """The same rows in other splits."""
        rows = [replace(row, split=split) for row, split in zip(self.rows, splits, strict=True)]
        return replace(self, rows=rows)


def read_whole(path: str, smiles_column: str | None = None, delimiter: str | None = None) -> WholeTable:
    """Reads a table into memory; raises InputError as ``open_table``, or for more than ``MAX_ROWS`` rows."""
    with open_table(path, smiles_column, delimiter) as table:
        rows = list(islice(table.rows, MAX_ROWS + 1))
        if len(rows) > MAX_ROWS:
            raise InputError(f"{path} has more than {MAX_ROWS:,} rows; training holds them in memory")
        return WholeTable(table.columns, rows, table.delimiter)


def read_labelled(options: TableOptions, featurizer: str, table: WholeTable | None = None) -> LabelledTable:
    """Reads a table, skips the rows that cannot be used, splits the others, and finds molecules in several rows.

    Args:
        options: how.
        featurizer: name in ``FEATURIZERS``; rows that it cannot read are skipped. If it strips salts, the rows have the
            SMILES of what is left.
        table: what is at ``options.path``, if it was read before.

    Raises:
        InputError: an unusable table, one of more than ``MAX_ROWS`` rows, a column that is not there, or no molecules
            in one of the splits.
    """
    labelled = read_usable(options, featurizer, table)
    labelled = labelled.with_splits(assign_splits(options, labelled, labelled.structures))
    check_filled(options, labelled)
    return labelled


def read_usable(options: TableOptions, featurizer: str, table: WholeTable | None = None) -> LabelledTable:
    """As ``read_labelled``, but the rows have no splits yet unless a column says them."""
    table = table or read_whole(options.path, options.smiles_column, options.delimiter)
    labelled = LabelledTable()
    read = label_reader(options, table)
    for number, row in enumerate(table.rows, 1):
        try:
            labelled.rows.append(read(number, row))
        except InputError as error:
            labelled.skipped.append((number, row.smiles, str(error)))
    structures = keep_readable(labelled, featurizer)
    labelled.skipped.sort()
    y = labelled.labels()
    duplicates = find_duplicates(structures.keys, y, tolerances(options.kind, y))
    return replace(labelled, structures=structures, duplicates=duplicates)


def check_filled(options: TableOptions, labelled: LabelledTable) -> None:
    """Raises InputError unless every split has a molecule."""
    for split in SPLITS:
        if not any(row.split == split for row in labelled.rows):
            raise InputError(
                f"{options.path}: no molecule of {len(labelled.rows)} usable rows is in the {split} split by "
                f"{options.split}{acyclic_advice(options, labelled)}{first_reason(labelled)}"
            )


def acyclic_advice(options: TableOptions, labelled: LabelledTable) -> str:
    """Names other splits where scaffolds are of no use because molecules without rings all have the same."""
    acyclic = labelled.structures.scaffolds.count("")
    if not options.split.startswith("scaffold") or not acyclic:
        return ""
    return f"; {acyclic} of the molecules have no ring, so no scaffold: use --split butina or random"


def tolerances(kind: Kind, y: np.ndarray) -> np.ndarray:
    """By how much the labels of one molecule may differ [T]; ``y`` [M, T], NaN where missing."""
    known = [column[~np.isnan(column)] for column in y.T]
    spread = np.array([column.std() if len(column) else 0.0 for column in known])
    return TASKS[kind].tolerance * spread


def first_reason(labelled: LabelledTable) -> str:
    if not labelled.skipped:
        return ""
    number, _, reason = labelled.skipped[0]
    return f"; {len(labelled.skipped)} rows were skipped, the first, row {number}, because: {reason}"


def label_reader(options: TableOptions, table: WholeTable) -> Callable[[int, Row], LabelledRow]:
    """A function from a row and its number to its labels; it raises InputError for a row that cannot be used."""
    columns = table.columns
    wanted = [*options.targets, *filter(None, [options.split_column])]
    for name in wanted:
        if (count := columns.count(name)) != 1:
            problem = not_one_column(options.path, columns, name, count)
            raise InputError(f"{problem}: name one that stands there once")
    places = {name: columns.index(name) for name in wanted}

    def read(number: int, row: Row) -> LabelledRow:
        if row.error:
            raise InputError(row.error)
        texts = {name: row.fields[places[name]] for name in options.targets}
        labels, bounds = read_labels(texts, options, table.delimiter == ";")
        if all(map(math.isnan, labels)) and not bounds:
            raise InputError("it has no label")
        found = LabelledRow(number, row.smiles, labels, bounds=bounds)
        if options.split_column is None:
            return found
        said = row.fields[places[options.split_column]].strip()
        if options.split == "time":
            if not is_time(said):
                raise InputError(f"its time is {said!r}, neither a number nor a date such as 2024-05-31")
            return replace(found, time=said)
        if said.lower() not in SPLIT_NAMES:
            raise InputError(f"its split is {said!r}, not train, val or test")
        return replace(found, split=SPLIT_NAMES[said.lower()])

    return read


Read = tuple[list[float], dict[int, str]]


def read_labels(texts: dict[str, str], options: TableOptions, comma_is_point: bool) -> Read:
    """The labels of a row and their bounds, as in ``LabelledRow``.

    Args:
        texts: by the names of the target columns.
        options: which task.
        comma_is_point: as ``read_number``.

    Raises:
        InputError: a text that the task cannot have.
    """
    return READERS[options.kind](texts, options, comma_is_point)


def read_numbers(texts: dict[str, str], options: TableOptions, comma_is_point: bool) -> Read:
    """As ``read_labels``, of a regression."""
    bounds = {place: read_bound(text, name, comma_is_point) for place, (name, text) in enumerate(texts.items())}
    labels = [
        math.nan if bounds[place] else read_number(text, name, comma_is_point)
        for place, (name, text) in enumerate(texts.items())
    ]
    return labels, {place: bound for place, bound in bounds.items() if bound}


def read_classes(texts: dict[str, str], options: TableOptions, comma_is_point: bool) -> Read:
    """As ``read_labels``, of a classification."""
    return [read_class(text, name) for name, text in texts.items()], {}


def read_one_of_classes(texts: dict[str, str], options: TableOptions, comma_is_point: bool) -> Read:
    """As ``read_labels``, of several classes: a number for each."""
    (text,) = texts.values()
    if is_missing(text):
        return [math.nan] * len(options.classes), {}
    return [float(same_label(text) == same_label(name)) for name in options.classes], {}


READERS: dict[Kind, Callable[[dict[str, str], TableOptions, bool], Read]] = {
    "regression": read_numbers,
    "classification": read_classes,
    "multiclass": read_one_of_classes,
}


def keep_readable(labelled: LabelledTable, featurizer: str) -> Structures:
    """Moves the rows whose molecule cannot be read to the skipped ones; returns the structures of the others."""
    found = map_chunks(partial(read_structures, featurizer), in_chunks(row.smiles for row in labelled.rows), list)
    answers = [answer for _, chunk in found for answer in chunk]
    rows, structures = labelled.rows, []
    labelled.rows = []
    for row, answer in zip(rows, answers, strict=True):
        if isinstance(answer, Structure):
            labelled.rows.append(replace(row, smiles=answer.smiles))
            structures.append(answer)
        else:
            labelled.skipped.append((row.number, row.smiles, answer))
    return Structures.of(structures)


def read_folds(options: TableOptions, featurizer: str, table: WholeTable | None = None) -> list[LabelledTable]:
    """Reads a table as ``read_labelled``, once with each fold as its test split.

    Raises:
        InputError: as ``read_labelled`` and ``fold_splits``.
    """
    labelled = read_usable(options, featurizer, table)
    y = labels_to_stratify(options, labelled)
    divisions = fold_splits(SPLITTERS[options.split], labelled.structures, y, options.folds, options.seed)
    tables = [labelled.with_splits(splits) for splits in divisions]
    for labelled in tables:
        check_filled(options, labelled)
    return tables


def assign_splits(options: TableOptions, labelled: LabelledTable, structures: Structures) -> list[str]:
    """The split of each row."""
    if options.split == "column":
        return [row.split for row in labelled.rows]
    if options.split == "time":
        return time_split(read_times(row.time for row in labelled.rows), structures.families, options.sizes)
    return SPLITTERS[options.split](structures, labels_to_stratify(options, labelled), options.sizes, options.seed)


def labels_to_stratify(options: TableOptions, labelled: LabelledTable) -> np.ndarray | None:
    """The classes of the rows [M, T]; None for numbers."""
    return labelled.labels() if TASKS[options.kind].predicts_probabilities else None


def check_splits(options: TableOptions, task: TaskConfig, labelled: LabelledTable) -> None:
    """Raises InputError unless the training split can be learnt from and the others can be scored."""
    y = {split: np.array([row.labels for row in labelled.of_split(split)]) for split in SPLITS}
    try:
        known = make_task(task)
        known.check_learnable(y["train"])
        known.check_scorable(y["val"], "validation")
        known.check_scorable(y["test"], "test")
    except InputError as error:
        raise InputError(f"{options.path} by {options.split} split: {error}; try another --split or --seed") from None


def table_task(options: TableOptions) -> TaskConfig:
    """What is predicted from a table; unless a metric is named, scored by mean absolute error or by ROC-AUC."""
    return TaskConfig(
        options.kind,
        TASKS[options.kind].find_metric(options.metric),
        options.names,
        balance=options.balance,
        loss=options.loss or TASKS[options.kind].usual_loss(options.metric),
        weights=options.weights,
    )


def task_of_table(table: WholeTable, targets: tuple[str, ...], asked: Kind | None = None) -> Guess:
    """The task that the target columns of a table ask for; ``asked`` and errors as ``guess_task``."""
    if asked == "regression" or not targets:
        return Guess(asked or "regression")
    return guess_task(look_at_columns(table, targets), asked)
