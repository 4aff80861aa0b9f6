"""Detection of the task from the labels of a table's columns, with a sentence for the user."""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice

from graphormer_sepnorm.config import Kind
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables import label_text
from graphormer_sepnorm.tables.formats.table import WholeTable
from graphormer_sepnorm.tables.label_text import CLASSES, Notation, is_missing, is_number, same_label, shortened

MAX_CLASSES = 50
LEAST_ROWS = 5  # of one of several classes: one for each fold
SHOWN = 6
MEANT_TWO = "if two were meant, correct the other labels"
OVERRIDE = "--task regression overrides this"
NAME_POSITIVE = "for the probability of one of them, write 1 for it and 0 for the other"
NOTATIONS = (Notation("decimal"), Notation("thousands", "thousands"))


@dataclass(frozen=True)
class Guess:
    kind: Kind
    classes: tuple[str, ...] = ()
    sentence: str = ""  # how the task was detected and is overridden; "" if it was given


@dataclass(frozen=True)
class Column:
    name: str
    labels: int
    others: list[str]  # labels that are neither numbers nor bounds
    texts: dict[str, str]  # as first spelled, by ``same_label``, ``MAX_CLASSES`` + 1 at most
    counts: Counter[str]  # by ``same_label``

    @classmethod
    def of(cls, name: str, texts: Iterable[str]) -> "Column":
        texts = list(texts)
        negative = "-" if "+" in map(str.strip, texts) else None  # a class then, and no missing label
        labels = [text for text in texts if text.strip() == negative or not is_missing(text)]
        first = {same_label(text): shortened(text) for text in reversed(labels)}
        counts = Counter(map(same_label, labels))
        others = [shortened(text) for text in labels if not reads_as_number(text)]
        return cls(
            name, len(labels), others, {label: first[label] for label in islice(counts, MAX_CLASSES + 1)}, counts
        )

    @property
    def numbers(self) -> int:
        return self.labels - len(self.others)

    @property
    def is_binary(self) -> bool:
        return bool(self.texts) and self.texts.keys() <= CLASSES.keys()

    @property
    def is_numeric(self) -> bool:
        """Whether half of the labels are numbers, and other ones than 0 and 1 are among them."""
        numbers = {label for label, text in self.texts.items() if reads_as_number(text)}
        return 2 * self.numbers >= self.labels > 0 and not numbers <= CLASSES.keys()

    @property
    def has_two_numbers(self) -> bool:
        """Whether all labels are one of two numbers, such as 1 and 2 or -1 and 1, which stand for classes."""
        common = len(self.texts) == 2 and min(self.counts.values()) >= LEAST_ROWS
        return common and all(is_number(label) for label in self.texts)

    @property
    def two_classes(self) -> tuple[str, str]:
        """The names of classes 0 and 1 as first spelled in a binary column; a digit where there is no other name."""
        names = {CLASSES.get(label): text for label, text in self.texts.items() if not label.isdigit()}
        return names.get(0.0, "0"), names.get(1.0, "1")

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self.texts[label] for label in sorted(self.texts))

    @property
    def words(self) -> str:
        return f"{len(self.texts)} classes ({listed(self.classes)})"


def reads_as_number(text: str) -> bool:
    number, _ = label_text.measurement_parts(text)
    for notation in NOTATIONS:
        with contextlib.suppress(InputError):
            if not label_text.read_bound(number, "", notation):
                label_text.read_number(number, "", notation)
            return True
    return False


def listed(texts: Collection[str]) -> str:
    return ", ".join(map(ascii, islice(texts, SHOWN))) + ", ..." * (len(texts) > SHOWN)


def look_at_columns(table: WholeTable, targets: tuple[str, ...]) -> list[Column]:
    return [Column.of(name, table.texts(name)) for name in targets if name in table.columns]


def guess_task(columns: list[Column], wanted: Kind | None = None) -> Guess:
    if wanted == "regression" or not columns:
        return Guess(wanted or "regression")
    kinds = {column.name: kind_of_labels(column, wanted) for column in columns}
    if len(columns) > 1:
        refuse_mixtures(kinds, columns)
    first, names = columns[0], ", ".join(kinds)
    kind = kinds[first.name]
    if kind == "multiclass":
        refuse_rare_classes(first)
        otherwise = OVERRIDE if first.has_two_numbers else NAME_POSITIVE if len(first.texts) == 2 else MEANT_TWO
        reason = f"{names} has {first.words}, so each gets its own probability; {otherwise}"
        return Guess(kind, first.classes, reason)
    if wanted is not None:
        return Guess(kind)
    if kind == "classification":
        labels = ", ".join(dict.fromkeys(listed(column.texts.values()) for column in columns))
        positive = [text for column in columns for label, text in column.texts.items() if CLASSES[label] == 1]
        purpose = f", which predicts the probability of {listed(dict.fromkeys(positive))}" * bool(positive)
        return Guess(kind, (), f"{names}: the labels are {labels}, so the task is {kind}{purpose}; {OVERRIDE}")
    others = [text for column in columns for text in column.others]
    skipped = f" (but for {len(others):,} skipped, such as {others[0]!a})" if others else ""
    override = OVERRIDE.replace("regression", "classification")
    return Guess(kind, (), f"{names}: the labels are numbers{skipped}, so the task is {kind}; {override}")


def kind_of_labels(column: Column, wanted: Kind | None) -> Kind:
    if not column.labels:
        raise InputError(f"column {column.name} has no labels")
    if column.is_binary:
        return "classification"
    if wanted is None and column.is_numeric and not column.has_two_numbers:
        return "regression"
    if len(column.texts) > MAX_CLASSES:
        few = f"only {column.numbers:,} of {column.labels:,} are numbers; --task regression leaves out the others"
        different = f"more than {MAX_CLASSES} different labels ({listed(column.texts.values())})"
        raise InputError(f"column {column.name} has {different}: {few}")
    return "multiclass"


def refuse_rare_classes(column: Column) -> None:
    if len(column.texts) == 1:
        raise InputError(f"all labels of {column.name} are {column.classes[0]!a}: there is nothing to learn")
    if rare := [label for label in column.texts if column.counts[label] < LEAST_ROWS]:
        classes = ", ".join(f"{column.texts[label]!a} in {column.counts[label]}" for label in rare[:SHOWN])
        raise InputError(
            f"column {column.name} has {len(column.texts)} classes, some in too few rows ({classes}): correct these "
            f"labels or leave out their rows, since each of several classes needs at least {LEAST_ROWS}"
        )


def refuse_mixtures(kinds: dict[str, Kind], columns: list[Column]) -> None:
    for column in columns:
        if kinds[column.name] == "multiclass":
            advice = f"{'use --task regression, ' * column.has_two_numbers}or give a column of 0 and 1 for each class"
            raise InputError(f"column {column.name} has {column.words}: predict only it, {advice}")
    if len(set(kinds.values())) > 1:
        wishes = ", ".join(f"{name} asks for {kind}" for name, kind in kinds.items())
        raise InputError(f"the columns are of several kinds ({wishes}): train on each, or use --task regression")
