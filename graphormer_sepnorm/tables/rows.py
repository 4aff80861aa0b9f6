"""Parsing of the rows of a user's table."""

import math
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from graphormer_sepnorm.chem.features import Sample
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.workers import Smiles
from graphormer_sepnorm.tables import label_text
from graphormer_sepnorm.tables.formats.table import Row, Table, WholeTable, not_one_column
from graphormer_sepnorm.tables.label_text import Notation, is_missing
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.scales import DECADES, falls, modelled, named_unit, unit_of

FLIPPED = {"<": ">", ">": "<"}
SPLIT_NAMES = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
# Names of an id column, in order of preference. Case and separators do not matter.
ID_COLUMNS = (
    "compoundid", "moleculeid", "molid", "cmpdid", "id", "compoundname", "moleculename", "molname", "name", "compound",
    "chemblid", "cid", "title",
)  # fmt: skip
NAMED_ID = re.compile(r"[\W_]id\s*$", re.IGNORECASE)  # such as "Fragment ID"
MAX_ROW_WEIGHT = 1e6
ROWS_TO_TELL = 1_000
DECIMALS = {"point": Notation("thousands", "decimal"), "comma": Notation("decimal", "thousands")}


@dataclass(frozen=True)
class TargetReader:
    """Reads the labels of a target column; those in another unit of concentration are converted."""

    name: str
    options: TableOptions
    notation: Notation = label_text.UNDECIDED
    unit: str = ""  # of its labels, if they have one
    is_named: bool = True  # whether a number without a unit is in this one

    @classmethod
    def of(cls, name: str, options: TableOptions, notation: Notation, texts: Iterable[str]) -> "TargetReader":
        """The reader of a column with these texts; raises InputError for a threshold in another unit."""
        scale, kept = options.scale_of(name), dict(zip(options.targets, options.units, strict=False)).get(name, "")
        own_unit = unit_of(scale) if falls(scale) else kept or named_unit(name)
        own = own_unit or label_text.unit_of_column(texts)
        if options.threshold and (unit := label_text.read_threshold(options.threshold[1:])[1]) and own not in DECADES:
            raise InputError(f"the threshold is in {unit}, and {name} has no unit: give the threshold without one")
        return cls(name, options, notation, own, bool(own_unit or not own))

    def number(self, text: str) -> tuple[str, float]:
        """The sign of a bound ("" of an exact label) and the number in ``unit``, NaN if missing."""
        number, unit = label_text.measurement_parts(text)
        bound = label_text.read_bound(number, self.name, self.notation)
        value = float(bound[1:]) if bound else label_text.read_number(number, self.name, self.notation)
        if unit != self.unit and not math.isnan(value) and (unit or not self.is_named):
            if not {unit, self.unit} <= DECADES.keys():
                most = f"in {self.unit}" if self.unit else "without a unit"
                raise InputError(f"{self.name} is {text.strip()!r}, and most labels are {most}: write all in one unit")
            value = label_text.converted(value, unit, self.unit)
        return bound[:1], value

    def label(self, text: str) -> tuple[float, str]:
        """A label of a regression on its scale and its bound, such as "<5.0": NaN for a bound, "" for a number."""
        sign, value = self.number(text)
        scale = self.options.scale_of(self.name)
        if not math.isnan(value):
            value = modelled(value, scale, self.name)
        return (math.nan, f"{FLIPPED[sign] if falls(scale) else sign}{value!r}") if sign else (value, "")

    def is_active(self, text: str) -> float:
        """1 for a label on the active side of the threshold, 0 on the other, NaN if missing; InputError if open."""
        active = self.options.threshold[:1]
        threshold, unit = label_text.read_threshold(self.options.threshold[1:])
        threshold = label_text.converted(threshold, unit, self.unit) if unit else threshold
        sign, value = self.number(text)
        if math.isnan(value):
            return value
        if (sign == "<" and value > threshold) or (sign == ">" and value < threshold):
            raise InputError(f"{self.name} is {text.strip()!r}, which may be on either side of {threshold:g}")
        return float(active == (sign or ("<" if value < threshold else ">" if value > threshold else "")))

    def __call__(self, text: str) -> tuple[list[float], str]:
        """A label as numbers, one for each of several classes, and its bound; raises InputError if it does not fit."""
        task, names = TASKS[self.options.kind], self.options.classes
        if not task.predicts_probabilities:
            label, bound = self.label(text)
            return [label], bound
        if not task.adds_up:
            return [self.is_active(text) if self.options.threshold else label_text.read_class(text, self.name)], ""
        if any(labels := [float(label_text.same_label(text) == label_text.same_label(name)) for name in names]):
            return labels, ""
        if is_missing(text):
            return [math.nan] * len(names), ""
        raise InputError(f"{self.name} is {label_text.shortened(text)!r}, not one of {', '.join(names)}")


def labels_in(
    readers: Iterable[TargetReader], texts: Iterable[str], count: int
) -> tuple[list[float], dict[int, str], dict[int, str]]:
    values: list[float] = []
    bounds: dict[int, str] = {}
    gaps: dict[int, str] = {}
    for place, (reader, text) in enumerate(zip(readers, texts, strict=True)):
        try:
            labels, bounds[place] = reader(text)
        except InputError as error:
            labels, gaps[place] = [math.nan] * count, str(error)
        values += labels
    return values, {place: bound for place, bound in bounds.items() if bound}, gaps


@dataclass(frozen=True)
class LabelledRow:
    """A usable row, or the average of several rows of one molecule."""

    number: int  # counted from 1; of several rows, that of the first
    smiles: str
    labels: list[float]  # one per target, NaN where missing or not known exactly
    split: str = ""
    time: str = ""
    bounds: dict[int, str] = field(default_factory=dict)  # such as "<5.0", by index of the target
    weight: float = 1.0
    conditions: tuple[str, ...] = ()  # of the measurement as texts, "" for one that is missing
    gaps: dict[int, str] = field(default_factory=dict)  # why a label cannot be read, by index of the column


RowReader = Callable[[int, Row], LabelledRow]


def label_reader(options: TableOptions, table: WholeTable, readers: Sequence[TargetReader]) -> RowReader:
    """A function from a row and its number to its labels; it raises InputError for a row that cannot be used."""
    numeric = [*options.feature_columns, *filter(None, [options.weight_column])]
    others = [*options.targets, *numeric, *filter(None, [options.split_column])]
    places = places_of(options.path, table.columns, others)
    notations = separators(table.rows, [places[name] for name in numeric], table.delimiter, options.decimal)

    def read(number: int, row: Row) -> LabelledRow:
        if row.error:
            raise InputError(row.error)
        said = {name: row.fields[place] for name, place in places.items()}
        labels, bounds, gaps = labels_in(readers, (said[name] for name in options.targets), len(options.classes) or 1)
        if all(map(math.isnan, labels)) and not bounds:
            raise InputError("; ".join(gaps.values()) or "it has no label")
        split, time, weight = "", "", 1.0
        if options.split_column is not None:
            split, time = read_split(said[options.split_column].strip(), options.split)
        if options.weight_column is not None:
            text = said[options.weight_column]
            weight = label_text.read_number(text, "its weight", notations[places[options.weight_column]])
            if not 0 < weight <= MAX_ROW_WEIGHT:
                needed = f"a number above 0 and up to {MAX_ROW_WEIGHT:,.0f}"
                raise InputError(f"its weight is {text.strip()!r}, not {needed}")
        for name in options.feature_columns:
            if is_missing(said[name]) and options.require_conditions:
                raise InputError(f"its {name} is missing")
            label_text.refuse_undecided(said[name], f"its {name}", notations[places[name]])
        conditions = tuple(condition_text(said[name], notations[places[name]]) for name in options.feature_columns)
        return LabelledRow(number, row.smiles, labels, split, time, bounds, weight, conditions, gaps)

    return read


def target_readers(options: TableOptions, table: WholeTable) -> list[TargetReader]:
    places = places_of(options.path, table.columns, list(options.targets))
    notations = separators(table.rows, list(places.values()), table.delimiter, options.decimal)
    return [TargetReader.of(name, options, notations[place], table.texts(name)) for name, place in places.items()]


def separators(
    rows: Iterable[Row], places: Sequence[int], delimiter: str, decimal: str | None = None
) -> dict[int, Notation]:
    """The notation of each column with numbers, which its numbers tell, or where they do not, those of all columns."""
    if decimal is not None or not places:
        return dict.fromkeys(places, DECIMALS[decimal or "point"])
    seen = forms_of_columns(rows, None if (semicolons := delimiter == ";") else places)
    of_column = {place: {form for form, columns in seen.items() if place in columns} for place in places}
    forms = {form for form, columns in seen.items() if columns}
    return {place: label_text.notation_of(own, forms, semicolons) for place, own in of_column.items()}


def with_decimal(table: Table) -> Table:
    """A table with the decimal separator that the first rows of a CSV with semicolons or tabs tell."""
    if table.delimiter not in (";", "\t"):
        return table
    first = list(islice(table.rows, ROWS_TO_TELL))
    seen = forms_of_columns(first, None)
    decimal = "," if seen["1,5"] and not seen["1.5"] else "."
    return replace(table, rows=chain(first, table.rows), decimal=decimal)


def forms_of_columns(rows: Iterable[Row], places: Sequence[int] | None) -> dict[str, set[int]]:
    """By each form that ``form_of`` knows, the columns that have it; columns of months such as 05.2023 have none."""
    seen: dict[str, set[int]] = defaultdict(set)
    other_than_months: set[int] = set()
    for row in rows:
        for place in () if row.error else range(len(row.fields)) if places is None else places:
            text = label_text.measurement_parts(row.fields[place])[0]
            if form := label_text.form_of(text):
                seen[form].add(place)
                if not label_text.is_month(text):
                    other_than_months.add(place)
    seen["1.5"] &= other_than_months
    return seen


def places_of(path: str, columns: list[str], names: list[str]) -> dict[str, int]:
    for name in names:
        if (count := columns.count(name)) != 1:
            advice = "name a column that appears once" if count else ""
            raise InputError(not_one_column(path, columns, name, count, advice))
    return {name: columns.index(name) for name in names}


def read_split(said: str, split: str) -> tuple[str, str]:
    if split == "time" and not label_text.is_time(said):
        raise InputError(f"its time is {said!r}, neither a number nor a date such as 2024-05-31")
    if split != "time" and said.lower() not in SPLIT_NAMES:
        raise InputError(f"its split is {said!r}, not train, val or test")
    return ("", said) if split == "time" else (SPLIT_NAMES[said.lower()], "")


def condition_text(text: str, notation: Notation = label_text.UNDECIDED) -> str:
    """A condition: numbers, true and false in one spelling, "" if missing; an ambiguous point makes it no number."""
    if is_missing(text):
        return ""
    try:
        return repr(label_text.read_number(text, "", notation))
    except InputError:
        if label_text.is_number(text):
            return f"{text.strip()} among numbers with commas"
        return label_text.same_label(text) if label_text.same_label(text) in ("true", "false") else text.strip()


def condition_options(names: Sequence[str]) -> str:
    return " ".join(f"--condition {shlex.quote(f'{name}=VALUE')}" for name in names)


def condition_argument(names: Sequence[str]) -> str:
    return f"conditions={{{', '.join(f'{name!r}: VALUE' for name in names)}}}"


@dataclass(frozen=True)
class AskedConditions:
    """The conditions that a model reads in addition to molecules, by their names."""

    columns: tuple[str, ...] = ()
    given: Mapping[str, str] = field(default_factory=dict)

    def places(
        self, columns: list[str], source: str, how: Callable[[Sequence[str]], str] = condition_options
    ) -> list[int]:
        """The indices of the columns in a table; raises InputError unless each is there once and is not given, too."""
        if twice := [name for name in self.given if name in columns]:
            problem = f"{source} has the column {twice[0]}"
            raise InputError(f"{problem}, and another value is given for all molecules: drop one")
        if missing := [name for name in self.columns if name not in columns]:
            advice = f"add it, or give the same value for all molecules with {how(missing)}"
            problem = f"{source} has no column {', '.join(missing)}"
            raise InputError(f"the model predicts under conditions, and {problem}: {advice}")
        return list(places_of(source, columns, list(self.columns)).values())


NO_CONDITIONS = AskedConditions()
AllRows = Callable[[], Iterable[Row]]


def samples_of(
    columns: list[str], conditions: AskedConditions, source: str, delimiter: str = "", all_rows: AllRows | None = None
) -> Callable[[list[Row]], Smiles]:
    """A function from rows of a table to the model's input; separators are told by ``all_rows``, else by each call."""
    if not (places := conditions.places(columns, source)):
        return lambda rows: [row.smiles for row in rows]
    known = separators(all_rows(), places, delimiter) if all_rows else None
    return lambda rows: read_samples(places, known or separators(rows, places, delimiter), rows)


def condition_texts(
    rows: Sequence[Row], places: Sequence[int], notations: Mapping[int, Notation]
) -> list[tuple[str, ...]]:
    return [tuple(condition_text(row.fields[place], notations[place]) for place in places) for row in rows]


def read_samples(places: list[int], notations: Mapping[int, Notation], rows: list[Row]) -> list[Sample]:
    conditions = condition_texts(rows, places, notations)
    return [Sample(row.smiles, texts) for row, texts in zip(rows, conditions, strict=True)]


def names_of_rows(options: TableOptions, table: WholeTable) -> dict[int, str]:
    """The names of rows by number, counted from 1; empty if there is no id column, or it is empty."""
    others = (options.split_column, options.weight_column, options.smiles_column)
    used = {*options.targets, *options.feature_columns, *others}
    free = [name for name in table.columns if name not in used and any(map(str.strip, table.texts(name)))]
    column = options.id_column or id_column_among(free)
    if column is None:
        return {}
    place = places_of(options.path, table.columns, [column])[column]
    names = {number: row.fields[place].strip() for number, row in enumerate(table.rows, 1) if not row.error}
    return names if any(names.values()) else {}


def name_of(columns: list[str], fields: list[str]) -> str:
    column = id_column_among(columns)
    return "" if column is None else fields[columns.index(column)].strip()


def id_column_among(columns: list[str]) -> str | None:
    """The column that has the first of ``ID_COLUMNS`` for a name, or a name that ends with the word id; or None."""
    plain = {re.sub("[ _.-]", "", name.strip().lower()): name for name in reversed(columns)}
    likely = [*(plain[usual] for usual in ID_COLUMNS if usual in plain), *filter(NAMED_ID.search, columns)]
    return likely[0] if likely and columns.count(likely[0]) == 1 else None
