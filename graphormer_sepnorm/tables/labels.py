"""Reading and splitting a user's table."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress, islice, product

import numpy as np

from graphormer_sepnorm.chem.smiles import is_smiles
from graphormer_sepnorm.config import Kind, TaskConfig
from graphormer_sepnorm.dataset import SPLITS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.progress import tracked
from graphormer_sepnorm.system.workers import CHUNK, in_chunks, map_chunks
from graphormer_sepnorm.tables import splits as splitting
from graphormer_sepnorm.tables.formats import open_table
from graphormer_sepnorm.tables.formats.table import WholeTable, places_of_column
from graphormer_sepnorm.tables.label_text import bounds_of, read_times
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.rows import LabelledRow, RowReader, label_reader, names_of_rows, target_readers
from graphormer_sepnorm.tables.splits import SPLITTERS, Duplicate, Sizes, Structures
from graphormer_sepnorm.tables.task_guess import look_at_columns
from graphormer_sepnorm.tasks import TASKS, make_task
from graphormer_sepnorm.tasks.scales import NO_LOGARITHM

MAX_ROWS = 10_000_000
FEW_ROWS = 7  # fewest of which a random 80:10:10 leaves some for each split
HARDLY = 0.1  # share of readable molecules below which another column is suggested
WITH_OWN_TEST = Sizes(0.9, 0.1, 0.0)  # sizes of the splits if there is a separate test table


@dataclass
class LabelledTable:
    """The content of a table; rows are numbered from 1 below the header, and those of a second file after them."""

    rows: list[LabelledRow] = field(default_factory=list)  # usable ones; numbers of a molecule are averaged
    skipped: list[tuple[int, str, str]] = field(default_factory=list)  # number, SMILES and reason
    duplicates: list[Duplicate] = field(default_factory=list)  # by places in ``usable``
    structures: Structures = field(default_factory=Structures)  # of ``rows``
    measured: list[LabelledRow] = field(default_factory=list)  # rows before averaging, if they were averaged
    names: dict[int, str] = field(default_factory=dict)  # by number of the row
    class_names: tuple[tuple[str, ...], ...] = ()  # as in ``TaskConfig``
    changed: int = 0  # usable rows whose SMILES the preparation changed
    units: tuple[str, ...] = ()  # of the labels of each target, "" without one
    headers: tuple[int, int] = (1, 1)  # lines above the first row in the table and the second file
    num_own: float = math.inf  # rows of the table, behind which those of the second file are numbered
    second: str = "--test-csv"  # the second file, as messages call it

    @property
    def usable(self) -> list[LabelledRow]:
        return self.measured or self.rows

    @property
    def is_test(self) -> np.ndarray:
        return np.array([row.split == "test" for row in self.rows], bool)

    @property
    def known(self) -> dict[str, int]:
        test, others = (self.take(np.flatnonzero(part).tolist()).structures for part in (self.is_test, ~self.is_test))
        return splitting.known_molecules(test, others)

    def take(self, places: Sequence[int]) -> "LabelledTable":
        return replace(self, rows=[self.rows[place] for place in places], structures=self.structures.take(places))

    def in_file(self, number: int) -> str:
        """A row as a spreadsheet counts it, where the header is row 1."""
        if number <= self.num_own:
            return f"row {number + self.headers[0]}"
        return f"row {number - int(self.num_own) + self.headers[1]} of {self.second}"

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """The molecule and the conditions of each row."""
        return [(key, *row.conditions) for key, row in zip(self.structures.keys, self.rows, strict=True)]

    def labels(self) -> np.ndarray:
        return np.array([row.labels for row in self.rows])

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The lower and upper ends of the labels of the rows [M, T], as for ``find_duplicates``."""
        low = self.labels()
        high = low.copy()
        for place, row in enumerate(self.rows):
            for target, text in row.bounds.items():
                low[place, target], high[place, target] = bounds_of(text)
        return low, high

    def of_split(self, split: str) -> list[LabelledRow]:
        return [row for row in self.rows if row.split == split]

    def with_splits(self, splits: Sequence[str]) -> "LabelledTable":
        return replace(self, rows=[replace(row, split=split) for row, split in zip(self.rows, splits, strict=True)])

    def with_means(self, kind: Kind) -> "LabelledTable":
        """The table with one row per molecule, split and conditions, if its labels are numbers."""
        if TASKS[kind].predicts_probabilities:
            return self
        keys = [(*key, row.split) for key, row in zip(self.keys, self.rows, strict=True)]
        groups = list(splitting.rows_by_key(keys).values())
        means = [mean_row([self.rows[place] for place in places]) for places in groups]
        return replace(self.take([places[0] for places in groups]), rows=means, measured=self.rows)


def read_whole(path: str, *reading: str | None) -> WholeTable:
    """Reads a table as ``open_table`` into memory; raises InputError also for no or more than ``MAX_ROWS`` rows."""
    with open_table(path, *reading) as table:
        rows = [replace(row, structure="") for row in islice(table.rows, MAX_ROWS + 1)]
        if len(rows) > MAX_ROWS:
            raise InputError(f"{path} has more than {MAX_ROWS:,} rows; training holds them in memory")
        if not rows:
            raise InputError(f"{path} has a header but no rows")
        return WholeTable(**vars(table) | {"rows": rows})


def read_labelled(options: TableOptions, featurizer: str, table: WholeTable | None = None) -> LabelledTable:
    """Reads a table, skips rows that cannot be used, splits the others, and finds molecules in several rows."""
    labelled = read_usable(options, featurizer, table)
    return divided(options, labelled, assign_splits(options, labelled))


def read_folds(options: TableOptions, featurizer: str, table: WholeTable | None = None) -> list[LabelledTable]:
    """Reads a table as ``read_labelled``, once with each fold as its test split; raises InputError as they do."""
    labelled = read_usable(options, featurizer, table)
    y = labels_to_stratify(options, labelled)
    divisions = splitting.fold_splits(SPLITTERS[options.split], labelled.structures, y, options.folds, options.seed)
    return [divided(options, labelled, splits) for splits in divisions]


def divided(options: TableOptions, labelled: LabelledTable, splits: Sequence[str]) -> LabelledTable:
    """The table with splits, and with means in place of replicates; raises InputError if a split is empty."""
    labelled = labelled.with_splits(splits).with_means(options.kind)
    refuse_logarithms(options, labelled)
    if empty := [split for split in options.splits if not labelled.of_split(split)]:
        problem = empty_split(options, labelled, empty[0]) if labelled.rows else "no row can be used"
        for number, _, reason in labelled.skipped[:1]:
            rows = "1 row was" if len(labelled.skipped) == 1 else f"{len(labelled.skipped):,} rows were"
            problem += f"; {rows} skipped, the first of them {labelled.in_file(number)}: {reason}"
        raise InputError(f"{options.path}: {problem}")
    return labelled


def read_usable(options: TableOptions, featurizer: str, table: WholeTable | None = None) -> LabelledTable:
    """As ``read_labelled``, but without splits unless a column or a separate test table defines them."""
    table = table or read_whole(options.path, options.smiles_column, options.delimiter, options.sheet)
    readers = target_readers(options, table)
    units, headers = tuple(reader.unit for reader in readers), (table.header, table.header)
    names, classes = names_of_rows(options, table), class_names(options, table)
    labelled = LabelledTable(names=names, class_names=classes, units=units, headers=headers)
    add_rows(labelled, table, label_reader(options, table, readers))
    if options.test_csv is not None:
        own = replace(options, path=options.test_csv, test_csv=None, units=units if any(units) else ())
        tested = read_whole(options.test_csv, options.smiles_column, options.delimiter)
        labelled.num_own, labelled.headers = len(table.rows), (table.header, tested.header)
        labelled.names |= {len(table.rows) + number: name for number, name in names_of_rows(own, tested).items()}
        add_rows(labelled, tested, label_reader(own, tested, target_readers(own, tested)), len(table.rows), "test")
    with_labels = len(labelled.rows)
    keep_readable(labelled, featurizer)
    refuse_other_column(options, table, with_labels, len(labelled.rows))
    if options.test_csv is not None:
        labelled = leave_out_tested(labelled)
    labelled.skipped.sort()
    return with_duplicates(options.kind, labelled)


def with_duplicates(kind: Kind, labelled: LabelledTable) -> LabelledTable:
    y = labelled.labels()
    spread = np.array([column[~np.isnan(column)].std() if (column == column).any() else 0.0 for column in y.T])
    keys = ["; ".join(key) for key in labelled.keys]
    found = splitting.find_duplicates(keys, *labelled.ends(), TASKS[kind].tolerance * spread)
    return replace(labelled, duplicates=found)


def class_names(options: TableOptions, table: WholeTable) -> tuple[tuple[str, ...], ...]:
    """The names of the classes in the target columns, as in ``TaskConfig``; empty if all are "0" and "1"."""
    if options.kind != "classification" or options.threshold:
        return (options.classes,) if options.classes else ()
    names = tuple(column.two_classes for column in look_at_columns(table, options.targets))
    return names if set(names) != {("0", "1")} else ()


def add_rows(collected: LabelledTable, table: WholeTable, read: RowReader, before: int = 0, split: str = "") -> None:
    for number, row in enumerate(table.rows, before + 1):
        try:
            labelled = read(number, row)
            collected.rows.append(replace(labelled, split=split or labelled.split))
        except InputError as error:
            collected.skipped.append((number, row.smiles, str(error)))


def refuse_other_column(options: TableOptions, table: WholeTable, rows: int, readable: int) -> None:
    usual = {table.columns[place] for place in places_of_column(table.columns, None)} - {options.smiles_column}
    if options.smiles_column is not None and len(usual) == 1 and readable < HARDLY * rows:
        problem = f"{readable:,} of {rows:,} rows have a readable SMILES in the column {options.smiles_column!r}"
        raise InputError(f"{options.path}: {problem}; is {usual.pop()!r} the column of the SMILES?")


def leave_out_tested(labelled: LabelledTable) -> LabelledTable:
    families, is_test = np.array(labelled.structures.families), labelled.is_test
    left_out = ~is_test & np.isin(families, families[is_test])
    reason = "its molecule (or a form of it) is in --test-csv, so it is not used for training"
    labelled.skipped += [(row.number, row.smiles, reason) for row in compress(labelled.rows, left_out)]
    return labelled.take(np.flatnonzero(~left_out).tolist())


def refuse_logarithms(options: TableOptions, labelled: LabelledTable) -> None:
    reasons = [[reason] for _, _, reason in labelled.skipped] + [[*row.gaps.values()] for row in labelled.usable]
    without = sum(any(reason.endswith(NO_LOGARITHM) for reason in of_row) for of_row in reasons)
    if without > len(labelled.usable):
        option = "--log10" if options.log10 else "--negative-log-molar"
        problem = f"rows with labels of 0 or less, which have no logarithm: {without:,}"
        raise InputError(f"{options.path}: {problem}; leave out {option} if the column holds logarithms already")


def empty_split(options: TableOptions, labelled: LabelledTable, split: str) -> str:
    rows = f"{len(labelled.rows):,} usable row{'s' * (len(labelled.rows) != 1)}"
    if options.split == "column":
        return f"the column {options.split_column} has {split} in none of {rows}: name some rows {split}"
    if len(labelled.rows) < FEW_ROWS:
        purpose = {"train": "training", "val": "validation", "test": "the test"}[split]
        return f"{rows}, too few: none is left for {purpose}"
    acyclic = sum(not each.scaffold for each in labelled.structures) if options.split.startswith("scaffold") else 0
    advice = f"; {acyclic} of the molecules have no ring, so no scaffold: use --split butina or random"
    return f"no molecule of {rows} is in the {split} split by {options.split}{advice * bool(acyclic)}"


def keep_readable(labelled: LabelledTable, featurizer: str) -> None:
    read = partial(splitting.read_structures, featurizer)
    chunks = map_chunks(read, in_chunks(row.smiles for row in labelled.rows), list)
    answers = [answer for _, chunk in tracked(chunks, -(-len(labelled.rows) // CHUNK)) for answer in chunk]
    rows, labelled.rows, labelled.structures = labelled.rows, [], Structures()
    for row, answer in zip(rows, answers, strict=True):
        if isinstance(answer, str):
            labelled.skipped.append((row.number, row.smiles, answer))
            continue
        labelled.rows.append(replace(row, smiles=answer.smiles))
        labelled.changed += is_smiles(row.smiles) and answer.smiles != row.smiles
        labelled.structures.append(answer)


def assign_splits(options: TableOptions, labelled: LabelledTable) -> list[str]:
    """The split of each row; if only test rows are given, a tenth of the others is for validation."""
    splits, structures = [row.split for row in labelled.rows], labelled.structures
    if "val" in splits:
        return splits
    sizes = WITH_OWN_TEST if options.final else options.sizes
    if options.split == "time":
        cells = [f"{options.split_column}, {labelled.in_file(row.number)}" for row in labelled.rows]
        return splitting.time_split(read_times((row.time for row in labelled.rows), cells), structures.families, sizes)
    y, split = labels_to_stratify(options, labelled), SPLITTERS.get(options.split, SPLITTERS["random"])
    if options.test_csv is None and options.split != "column":
        return split(structures, y, sizes, options.seed)
    places = [place for place, row in enumerate(splits) if row != "test"]
    own = iter(split(structures.take(places), None if y is None else y[places], WITH_OWN_TEST, options.seed))
    return [row if row == "test" else next(own) for row in splits]


def labels_to_stratify(options: TableOptions, labelled: LabelledTable) -> np.ndarray | None:
    return labelled.labels() if TASKS[options.kind].predicts_probabilities else None


def check_splits(options: TableOptions, task: TaskConfig, labelled: LabelledTable) -> None:
    """Raises InputError unless models can be fitted to the training split and scored on the others."""
    refuse_constant(options, labelled)
    train, val, test = (np.array([row.labels for row in labelled.of_split(split)]) for split in SPLITS)
    try:
        kind = make_task(task)
        kind.check_learnable(train)
        kind.check_scorable(val, "validation")
        if not options.final:
            kind.check_scorable(test, "test")
    except InputError as error:
        advice = rare_class(options, labelled) or "try another --split or --seed"
        raise InputError(f"{options.path} by {options.split} split: {error}; {advice}") from None


def rare_class(options: TableOptions, labelled: LabelledTable) -> str:
    """A clause on a class that is in too few groups of rows for each part of a split to get one; "" if none is."""
    y, splitter = labels_to_stratify(options, labelled), SPLITTERS.get(options.split)
    if y is None or splitter is None or options.test_csv is not None or not labelled.structures:
        return ""
    parts, groups = options.folds or len(options.splits), np.array(splitter.groups(labelled.structures))
    for (name, column), value in product(zip(options.names, y.T, strict=True), (1, 0)):
        count = len(np.unique(groups[rows := column == value]))
        if 0 < count < parts:
            few = f"in {count} of the groups that the split keeps together, too few for {parts} parts"
            only = f"{name} is {value} in only {rows.sum()} of {len(y):,} rows"
            return f"{only}, {few}: add such rows, or try --split random"
    return ""


def refuse_constant(options: TableOptions, labelled: LabelledTable) -> None:
    """Raises InputError if each target has the same label in all rows, so that no other split helps."""
    y = labelled.labels()
    for place in np.flatnonzero(np.isnan(y).all(axis=0)).tolist():
        bounded = any(place in row.bounds for row in labelled.rows)
        problem = "all labels are bounds, such as <5: a model needs some exact ones" if bounded else "it has no label"
        raise InputError(f"{options.path}, column {options.names[place]}: {problem}; leave the column out")
    lowest, highest = np.fmin.reduce(y), np.fmax.reduce(y)
    if TASKS[options.kind].adds_up or any(row.bounds for row in labelled.rows) or not (lowest == highest).all():
        return
    texts = [f"{label:g}" for label in lowest.tolist()]
    if labelled.class_names:
        texts = [names[int(label)] for names, label in zip(labelled.class_names, lowest.tolist(), strict=True)]
    problem = ", ".join(f"all labels of {name} are {text}" for name, text in zip(options.names, texts, strict=True))
    raise InputError(f"{options.path}: {problem}: there is nothing to learn")


def table_task(options: TableOptions) -> TaskConfig:
    """The task of a table; unless a metric is named, it is scored by MAE or ROC-AUC."""
    kind = TASKS[options.kind]
    metric, loss = kind.find_metric(options.metric), options.loss or kind.usual_loss(options.metric)
    more: dict = {"balance": options.balance, "weights": options.weights, "scales": options.scales}
    return TaskConfig(options.kind, metric, options.names, loss=loss, **more)


def mean_row(rows: list[LabelledRow]) -> LabelledRow:
    """The rows of one molecule as their mean, of bounds the tightest one."""
    if len(rows) == 1:
        return rows[0]
    y, weights = np.array([row.labels for row in rows]), np.array([row.weight for row in rows])
    weight = ~np.isnan(y) * (weights if weights.any() else np.ones(len(rows)))[:, None]
    totals = weight.sum(axis=0)
    labels = np.where(totals > 0, (np.nan_to_num(y) * weight).sum(axis=0) / np.where(totals > 0, totals, 1), np.nan)
    bounded = set().union(*(row.bounds for row in rows)) & set(np.flatnonzero(np.isnan(labels)).tolist())
    bounds = {place: tightest([row.bounds[place] for row in rows if place in row.bounds]) for place in sorted(bounded)}
    return replace(rows[0], labels=labels.tolist(), bounds=bounds, weight=float(weights.mean()))


def tightest(bounds: list[str]) -> str:
    """The tightest of several bounds such as ">5.0"; the first one if they have different signs."""
    if len({text[0] for text in bounds}) > 1:
        return bounds[0]
    return (max if bounds[0][0] == ">" else min)(bounds, key=lambda text: float(text[1:]))


def pooled_deviation(y: np.ndarray, groups: Iterable[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """The standard deviation of repeated measurements of a molecule [T], NaN without any, and the number of molecules.

    ``groups`` are rows of one molecule each. If most molecules have equal labels, their rows are probably copies, and
    only the others count; zero if there are no others.
    """
    parts = []
    for labels in (y[places] for places in groups):
        counts = (~np.isnan(labels)).sum(axis=0)
        means = np.nansum(labels, axis=0) / np.maximum(counts, 1)
        means = np.clip(means, np.fmin.reduce(labels), np.fmax.reduce(labels))  # exact for equal labels
        parts.append((np.nansum((labels - means) ** 2, axis=0), np.maximum(counts - 1, 0)))
    squares, freedom = np.array(parts).reshape(-1, 2, y.shape[1]).swapaxes(0, 1)
    several, differing = freedom > 0, squares > 0
    are_copies = (2 * differing.sum(axis=0) < several.sum(axis=0)) & differing.any(axis=0)
    counted = np.where(are_copies, differing, several)
    pooled = (squares * counted).sum(axis=0) / np.maximum((freedom * counted).sum(axis=0), 1)
    return np.sqrt(np.where(counted.any(axis=0), pooled, np.nan)), counted.sum(axis=0)
