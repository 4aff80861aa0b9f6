"""Labels of the target columns of a table: numbers and bounds in a unit, classes, and classes by a threshold."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.label_text import (
    UNDECIDED,
    Notation,
    converted,
    is_missing,
    parts_of,
    read_bound,
    read_class,
    read_number,
    read_threshold,
    same_label,
    shortened,
    unit_of_column,
)
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.scales import DECADES, falls, modelled, named_unit, unit_of

FLIPPED = {"<": ">", ">": "<", "": ""}


@dataclass(frozen=True)
class TargetReader:
    """Reads the labels of a target column; those in another unit of concentration are converted."""

    name: str
    options: TableOptions
    notation: Notation = UNDECIDED
    unit: str = ""  # of its labels, if they have one
    is_named: bool = True  # whether a number without a unit is in this one

    @classmethod
    def of(cls, name: str, options: TableOptions, notation: Notation, texts: Iterable[str]) -> "TargetReader":
        """The reader of a column with these texts; raises InputError for a threshold in another unit."""
        scale, kept = options.scale_of(name), dict(zip(options.targets, options.units, strict=False)).get(name, "")
        known = unit_of(scale) if falls(scale) else kept or named_unit(name)
        reader = cls(name, options, notation, known or unit_of_column(texts))
        if options.threshold and (unit := read_threshold(options.threshold[1:])[1]) and reader.unit not in DECADES:
            raise InputError(f"the threshold is in {unit}, and {name} has no unit: give the threshold without one")
        return cls(name, options, notation, reader.unit, bool(known or not reader.unit))

    def number(self, text: str) -> tuple[str, float]:
        """The sign of a bound ("" of an exact label) and the number in ``unit``, NaN if missing."""
        number, unit = parts_of(text)
        bound = read_bound(number, self.name, self.notation)
        value = float(bound[1:]) if bound else read_number(number, self.name, self.notation)
        if unit != self.unit and not math.isnan(value) and (unit or not self.is_named):
            if not {unit, self.unit} <= DECADES.keys():
                most = f"in {self.unit}" if self.unit else "without a unit"
                raise InputError(f"{self.name} is {text.strip()!r}, and most labels are {most}: write all in one unit")
            value = converted(value, unit, self.unit)
        return bound[:1], value

    def label(self, text: str) -> tuple[float, str]:
        """A label of a regression on its scale and its bound, such as "<5.0": NaN for a bound, "" for a number."""
        sign, value = self.number(text)
        scale = self.options.scale_of(self.name)
        if math.isnan(value):
            return value, ""
        value = modelled(value, scale, self.name)
        return (math.nan, f"{FLIPPED[sign] if falls(scale) else sign}{value!r}") if sign else (value, "")

    def is_active(self, text: str) -> float:
        """1 for a label on the active side of the threshold, 0 on the other, NaN if missing; InputError if open."""
        active = self.options.threshold[:1]
        threshold, unit = read_threshold(self.options.threshold[1:])
        threshold = converted(threshold, unit, self.unit) if unit else threshold
        sign, value = self.number(text)
        if math.isnan(value):
            return value
        if (sign == "<" and value > threshold) or (sign == ">" and value < threshold):
            raise InputError(f"{self.name} is {text.strip()!r}, which may be on either side of {threshold:g}")
        side = sign or ("<" if value < threshold else ">" if value > threshold else "")
        return float(side == active)

    def __call__(self, text: str) -> tuple[list[float], str]:
        """A label as numbers, one for each of several classes, and its bound; raises InputError if it does not fit."""
        task = TASKS[self.options.kind]
        if not task.predicts_probabilities:
            label, bound = self.label(text)
            return [label], bound
        if task.adds_up:
            return one_of_classes(text, self.name, self.options.classes), ""
        return [self.is_active(text) if self.options.threshold else read_class(text, self.name)], ""


def read_labels(
    readers: Iterable[TargetReader], texts: Iterable[str], count: int
) -> tuple[list[float], dict[int, str], dict[int, str]]:
    """The labels of a row, ``count`` of each column, its bounds, and why others cannot be read, by column."""
    found: list[float] = []
    bounds, gaps = {}, {}
    for place, (reader, text) in enumerate(zip(readers, texts, strict=True)):
        labels, bound = [math.nan] * count, ""
        try:
            labels, bound = reader(text)
        except InputError as error:
            gaps[place] = str(error)
        found.extend(labels)
        bounds.update({place: bound} if bound else {})
    return found, bounds, gaps


def one_of_classes(text: str, target: str, classes: tuple[str, ...]) -> list[float]:
    """A label as a number for each class, 1 for its own, NaN if missing; raises InputError for another class."""
    if is_missing(text):
        return [math.nan] * len(classes)
    labels = [float(same_label(text) == same_label(name)) for name in classes]
    if not any(labels):
        raise InputError(f"{target} is {shortened(text)!r}, not one of {', '.join(classes)}")
    return labels
