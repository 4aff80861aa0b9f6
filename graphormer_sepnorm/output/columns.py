"""The columns of predictions, declared once: for files, libraries, the page and Python.

The order is: conditions that are the same for all molecules; for each target its value, class, interval and spread; the
comparison with the training molecules; the error. A new column is a ``PredictedColumn`` in one of the functions below.

Axis letters: M molecules.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import starmap
from numbers import Real
from typing import Literal, Protocol, TypeVar

import numpy as np

from graphormer_sepnorm.chem.basic_properties import PROPERTIES
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.acquisition import Acquisition
from graphormer_sepnorm.predict.class_sets import ClassSets
from graphormer_sepnorm.predict.describing import Describer
from graphormer_sepnorm.predict.intervals import Intervals
from graphormer_sepnorm.predict.predictors import MoleculeModel, PredictingModel, Predictions
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.tables.label_text import as_float, is_number
from graphormer_sepnorm.tables.writers import DIGITS, AddedColumn, Cells
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.scales import falls, measured, measured_name

ERROR = "error"
OF_CONDITION = "_condition"  # follows the name of a condition that another column has
PROBABILITY_DECIMALS = 3
LEAST_OF_CLASS_1 = 0.5  # probability
Found = TypeVar("Found")


@dataclass(frozen=True)
class PredictedColumn(AddedColumn):
    """A column of predictions.

    Attributes:
        cells: its numbers [M] or M texts.
        path: keys to its cell in the page's JSON of a molecule; by default, its name.
    """

    cells: Callable[[Predictions], Cells] = lambda found: found.errors
    path: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[str, ...]:
        """The keys to its cell in the page's JSON of a molecule."""
        return self.path or (self.name,)


class Judging(Protocol):
    """Adds columns that judge molecules by all their predictions."""

    def columns_for(self, model: PredictingModel, is_whole: bool) -> list[PredictedColumn]:
        """Its columns; ``is_whole``: whether they get all molecules of a table at once."""

    @property
    def reads(self) -> set[str]:
        """Which of "alerts" and "properties" it reads."""


@dataclass(frozen=True)
class PredictionColumns:
    """The columns of a table of predictions.

    Attributes:
        model: model that predicts.
        interval: confidence level of the intervals in ``NAME_low`` and ``NAME_high``, or of the class sets in
            ``NAME_set``; None: no intervals.
        domain: whether to compare molecules with the training molecules.
        alerts, properties: whether to add structural alerts and basic properties.
        acquisition: ranking criterion, which gets its own column; None: no ranking.
        profile: judge of the molecules; None: no one.
        is_whole: whether ``cells`` gets all molecules of a table at once, as a rank among them requires.

    Raises:
        InputError: the model does not support intervals, the comparison or the profile.
    """

    model: PredictingModel
    interval: float | None = None
    domain: bool = False
    alerts: bool = False
    properties: bool = False
    acquisition: Acquisition | None = None
    profile: Judging | None = None
    is_whole: bool = False

    def __post_init__(self) -> None:
        nothing = np.zeros((1, len(self.model.targets)))
        if self.domain:
            known_trust(self.model)
        if self.interval is not None and self.of_classes:
            known_sets(self.model).holds(nothing, self.interval)
        elif self.interval is not None:
            known_intervals(self.model).half_widths(self.interval, nothing)
        _ = self.judged

    @property
    def of_classes(self) -> bool:
        return TASKS[self.model.kind].predicts_probabilities

    @cached_property
    def reader(self) -> MoleculeModel[Predictions]:
        """A reader that computes the contents of the columns."""
        reads = set() if self.profile is None else self.profile.reads
        asked = self.domain, self.alerts or "alerts" in reads, self.properties or "properties" in reads
        return Describer(self.model, *asked) if any(asked) or self.model.assay_limits else self.model

    @cached_property
    def judged(self) -> list[PredictedColumn]:
        """The columns of the profile."""
        return [] if self.profile is None else self.profile.columns_for(self.model, self.is_whole)

    @cached_property
    def all(self) -> list[PredictedColumn]:
        """The columns in order; that of a target or a condition called ``error``, say, has a longer name."""
        found = list(starmap(condition_column, self.model.asked_conditions.given.items()))
        for number, target in enumerate(self.model.targets):
            found += self.of_target(number, target)
        if TASKS[self.model.kind].adds_up:
            found.append(most_probable_class(self.model.classes[0]))
        if self.interval is not None and TASKS[self.model.kind].adds_up:
            texts = partial(known_sets(self.model).texts, confidence=self.interval, names=self.model.classes)
            found.append(PredictedColumn("class_set", "text", cells=lambda found: texts(found.values)[0]))
        if self.acquisition is not None and self.acquisition.by != "prediction":
            number = self.model.targets.index(self.acquisition.target)
            found.append(acquisition_column(self.acquisition, number, kind_of(self.model, number)))
        found += self.judged
        if self.domain:
            found += domain_columns(self.model)
        if self.alerts:
            found.append(PredictedColumn("alerts", "text", cells=lambda found: given(found.alerts)))
        if self.properties:
            found += map(property_column, range(len(PROPERTIES)), PROPERTIES)
        found.append(PredictedColumn(ERROR, "text"))
        for kind, end in (("conditions", OF_CONDITION), ("predictions", "_predicted")):
            taken = {column.name for column in found if column.place[0] != kind}
            found = [
                replace(column, name=f"{column.name}{end}")
                if column.place[0] == kind and column.name in taken
                else column
                for column in found
            ]
        return found

    def of_target(self, number: int, target: str) -> Iterator[PredictedColumn]:
        """The columns of a target, the ``number``-th."""

        def of(name: str, part: str, cells: Callable[[Predictions], np.ndarray]) -> PredictedColumn:
            kind = kind_of(self.model, number) if part in ("value", "low", "high") else "number"
            return PredictedColumn(name, kind, cells=cells, path=("predictions", target, part))

        def value(found: Predictions) -> np.ndarray:
            return found.values[:, number]

        def end(place: int, confidence: float) -> Callable[[Predictions], np.ndarray]:
            return lambda found: interval_ends(self.model, confidence, found.values, found.spread)[place][:, number]

        def in_units(cells: Callable[[Predictions], np.ndarray]) -> Callable[[Predictions], np.ndarray]:
            return lambda found: measured(cells(found)[:, None], [scale])[:, 0]

        scale = self.model.scales[number] if self.model.scales else ""
        name_in_units = measured_name(target, scale)
        yield of(target, "value", value)
        if scale:
            yield of(name_in_units, "unlogged", in_units(value))
        if target in self.model.assay_limits:
            place = ("predictions", target, "limit")
            yield PredictedColumn(
                f"{target}_limit", "text", cells=lambda found: given(found.limit_words)[target], path=place
            )
        if self.model.kind == "classification":
            yield probable_class(number, target, self.model.classes[number])
        if self.interval is not None and not self.of_classes:
            low, high = end(0, self.interval), end(1, self.interval)
            yield of(f"{target}_low", "low", low)
            yield of(f"{target}_high", "high", high)
            if scale:
                low, high = (high, low) if falls(scale) else (low, high)
                yield of(f"{name_in_units}_low", "unlogged_low", in_units(low))
                yield of(f"{name_in_units}_high", "unlogged_high", in_units(high))
        if self.interval is not None and self.of_classes and not TASKS[self.model.kind].adds_up:
            texts = partial(known_sets(self.model).texts, confidence=self.interval, names=self.model.classes)
            place = ("predictions", target, "set")
            yield PredictedColumn(f"{target}_set", "text", cells=lambda found: texts(found.values)[number], path=place)
        if self.model.gives_spread:
            yield of(f"{target}_std", "std", lambda found: found.spread[:, number])
        rows = self.model.trust.rows if self.domain and self.model.trust else None
        if rows is not None and not TASKS[self.model.kind].predicts_probabilities:
            yield of(f"{target}_percentile", "percentile", lambda found: rows.percentiles(found.values)[:, number])

    def columns(self) -> list[AddedColumn]:
        """As ``Additions``."""
        return list(self.all)

    def cells(self, found: Predictions, errors: list[str]) -> list[Cells]:
        """As ``Additions``."""
        found = replace(found, errors=errors)
        return [column.cells(found) for column in self.all]


def condition_column(name: str, text: str) -> PredictedColumn:
    """A condition that is the same for all molecules."""
    value = condition_value(text)

    def cells(found: Predictions) -> Cells:
        return [value] * len(found.errors) if isinstance(value, str) else np.full(len(found.errors), value)

    kind: Literal["text", "number"] = "text" if isinstance(value, str) else "number"
    return PredictedColumn(name, kind, cells=cells, path=("conditions", name))


def condition_value(text: str) -> float | str:
    """A condition as outputs have it: a number, or a word."""
    return as_float(text) if is_number(text) else text


def kind_of(model: PredictingModel, number: int) -> Literal["number", "precise"]:
    """The kind of columns on the scale of the labels of the ``number``-th target."""
    return "precise" if model.offset and model.offset[number] else "number"


def acquisition_column(
    acquisition: Acquisition, number: int, kind: Literal["number", "precise"] = "number"
) -> PredictedColumn:
    """The acquisition value of the ``number``-th target."""

    def cells(found: Predictions) -> np.ndarray:
        return acquisition(found.values[:, number], found.spread[:, number])

    return PredictedColumn(acquisition.column, kind, cells=cells)


def domain_columns(model: PredictingModel) -> list[PredictedColumn]:
    """The columns that compare a molecule with the training molecules of a model.

    They are, as far as known: the SMILES, name and labels of the nearest one, its Tanimoto similarity, the smallest
    distance between embeddings, and a warning.

    Raises:
        InputError: the model has no information on its training molecules.
    """
    trust = known_trust(model)
    rows = trust.rows
    found = [PredictedColumn("nearest", "text", cells=lambda found: given(found.nearness).molecule)]
    if rows is not None and len(rows.text):
        found.append(text_of_nearest("nearest_id", rows.names))
    if rows is not None:
        words = two_classes(model)
        for number, target in enumerate(model.targets):
            label = label_of_nearest(target, rows.labels[:, number], words.get(target, ()))
            found.append(label if label.kind == "text" else replace(label, kind=kind_of(model, number)))
            if bounds := rows.censored(number, DIGITS[kind_of(model, number)]):
                found.append(text_of_nearest(f"nearest_{target}_bound", bounds, target))
    found.append(PredictedColumn("similarity", cells=lambda found: given(found.nearness).similarity))
    if len(trust.domain.embeddings):
        found.append(PredictedColumn("cls_distance", cells=lambda found: given(found.nearness).distance))
    return [*found, PredictedColumn("warning", "text", cells=lambda found: found.warnings)]


def property_column(number: int, name: str) -> PredictedColumn:
    """The ``number``-th of the ``PROPERTIES``."""
    return PredictedColumn(name, cells=lambda found: given(found.properties)[:, number], path=("properties", name))


def text_of_nearest(name: str, texts: list[str], target: str = "") -> PredictedColumn:
    """The text of the nearest training molecule, from N ``texts``, such as its name or its censored label."""

    def cells(found: Predictions) -> list[str]:
        return ["" if row < 0 else texts[row] for row in given(given(found.nearness).row).tolist()]

    path = ("predictions", target, "nearest_bound") if target else ()
    return PredictedColumn(name, "text", cells=cells, path=path)


def probable_class(number: int, target: str, classes: tuple[str, ...]) -> PredictedColumn:
    """The class of the ``number``-th target: that of 1 from a probability of ``LEAST_OF_CLASS_1`` on."""

    def numbers(found: Predictions) -> np.ndarray:
        values = found.values[:, number].astype(np.float64)
        return np.where(np.isnan(values), np.nan, values >= LEAST_OF_CLASS_1)

    return class_column(f"{target}_class", ("predictions", target, "class_name"), numbers, classes)


def most_probable_class(names: tuple[str, ...]) -> PredictedColumn:
    """The most probable one of several classes; of equally probable ones the first."""

    def words(found: Predictions) -> list[str]:
        unread = np.isnan(found.values).any(axis=1)
        return ["" if none else names[place] for none, place in zip(unread, found.values.argmax(axis=1), strict=True)]

    return PredictedColumn("class", "text", cells=words, path=("class_name",))


def label_of_nearest(target: str, labels: np.ndarray, classes: tuple[str, ...]) -> PredictedColumn:
    """The label of the nearest training molecule, from labels [N]; the name of its class if ``classes`` have names."""

    def numbers(found: Predictions) -> np.ndarray:
        rows = given(given(found.nearness).row)
        return np.where(rows < 0, np.nan, labels[rows])

    return class_column(f"nearest_{target}", ("predictions", target, "nearest"), numbers, classes)


def class_column(
    name: str, path: tuple[str, ...], numbers: Callable[[Predictions], np.ndarray], classes: tuple[str, ...]
) -> PredictedColumn:
    """A column of numbers, or of the names of these classes unless they are called 0 and 1, as ``numbers`` are."""

    def words(found: Predictions) -> list[str]:
        return ["" if number != number else classes[int(number)] for number in numbers(found).tolist()]

    if classes in ((), ("0", "1")):
        return PredictedColumn(name, cells=numbers, path=path)
    return PredictedColumn(name, "text", cells=words, path=path)


def given(found: Found | None) -> Found:
    """A result that the ``reader`` of the columns was asked to compute."""
    assert found is not None
    return found


def two_classes(model: PredictingModel) -> dict[str, tuple[str, ...]]:
    """The names of the classes 0 and 1 by target; empty if the targets do not have two classes each."""
    return dict(zip(model.targets, model.classes, strict=True)) if model.kind == "classification" else {}


def shown_decimals(model: PredictingModel) -> dict[str, int]:
    """The decimals of predictions for people by target: three of probabilities, else those of the labels, if known."""
    if TASKS[model.kind].predicts_probabilities:
        return dict.fromkeys(model.targets, PROBABILITY_DECIMALS)
    rows = model.trust.rows if model.trust else None
    return {} if rows is None else dict(zip(model.targets, rows.decimals, strict=True))


def known_trust(model: PredictingModel) -> Trust:
    """The knowledge of a model about its errors and training molecules; raises InputError if it knows nothing."""
    if model.trust is None:
        raise InputError(
            "the model has no information on its training molecules, so it has no intervals and compares nothing with "
            "them: name adme or the run folder of a model that was trained on a table"
        )
    return model.trust


def check_confidence(name: str, value: object) -> None:
    """Raises InputError for a confidence level, in the parameter of this name, that is no number."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
        raise InputError(f"{name}: give a number between 0 and 1, such as 0.9, not {value!r}")


def known_intervals(model: PredictingModel) -> Intervals:
    """The intervals of a model; raises InputError if it has none."""
    if TASKS[model.kind].predicts_probabilities:
        raise InputError("this model predicts classes, which have prediction sets in place of intervals")
    intervals = known_trust(model).intervals
    if intervals is None:
        raise InputError("the model has no intervals, because a target had no labels in its validation split")
    return intervals


def interval_ends(
    model: PredictingModel, confidence: float, values: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The lower and upper ends of intervals around predictions, within the limits of the targets: float64 [M, T] each.

    Args:
        model: the model that predicted.
        confidence: confidence level of the intervals.
        values, spread: [M, T], its predictions and their standard deviations.

    Raises:
        InputError: the model has no intervals, or none at this confidence level.
    """
    return known_intervals(model).ends(confidence, values, spread, model.limits)


def known_sets(model: PredictingModel) -> ClassSets:
    """The prediction sets of a classification; raises InputError if it has none."""
    sets = known_trust(model).class_sets
    if sets is None:
        raise InputError("the model is of an earlier version without prediction sets: train it again")
    return sets
