"""Columns of predictions of one model, with the functions that read their cells: M molecules, N training ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

from graphormer_sepnorm.predict.predictors import PredictingModel, Predictions, known_trust
from graphormer_sepnorm.predict.side_by_side import SideBySide
from graphormer_sepnorm.tables.label_text import as_float, is_number
from graphormer_sepnorm.tables.writers.base import DIGITS, AddedColumn, Cells
from graphormer_sepnorm.tasks import TASKS

PROBABILITY_DECIMALS = 3
LEAST_OF_CLASS_1 = 0.5  # probability
Found = TypeVar("Found")


@dataclass(frozen=True)
class PredictedColumn(AddedColumn):
    """A column of predictions, whose ``path`` is that of its cell in the page's JSON of a molecule."""

    cells: Callable[[Predictions], Cells] = lambda predictions: predictions.errors
    path: tuple[str, ...] = ()  # by default its name
    part: int | None = None  # the number of its model among several

    @property
    def place(self) -> tuple[str, ...]:
        return self.path or (self.name,)


def condition_column(name: str, text: str) -> PredictedColumn:
    value = condition_value(text)

    def cells(predictions: Predictions) -> Cells:
        count = len(predictions.errors)
        return [value] * count if isinstance(value, str) else np.full(count, value)

    return PredictedColumn(name, "text" if isinstance(value, str) else "number", (), cells, ("conditions", name))


def condition_value(text: str) -> float | str:
    """A condition as outputs have it: a number, or a word."""
    return as_float(text) if is_number(text) else text


def kind_of_target(model: PredictingModel, number: int) -> Literal["number", "precise"]:
    """The kind of columns on the scale of the labels of the ``number``-th target."""
    return "precise" if model.offset and model.offset[number] else "number"


def domain_columns(model: PredictingModel, labels: Sequence[str]) -> list[PredictedColumn]:
    """The comparison with the training molecules of a model, as far as known; raises InputError without any."""
    trust, words = known_trust(model), two_classes(model)
    columns = [PredictedColumn("nearest", "text", cells=lambda predictions: given(predictions.nearness).molecule)]
    if (rows := trust.rows) is not None:
        if len(rows.text):
            columns.append(text_of_nearest("nearest_id", rows.names))
        for number, (own, target) in enumerate(zip(model.targets, labels, strict=True)):
            label = label_of_nearest(target, rows.labels[:, number], words.get(own, ()))
            columns.append(label if label.kind == "text" else replace(label, kind=kind_of_target(model, number)))
            if bounds := rows.censored(number, DIGITS[kind_of_target(model, number)]):
                columns.append(text_of_nearest(f"nearest_{target}_bound", bounds, target))
    columns.append(PredictedColumn("similarity", cells=lambda predictions: given(predictions.nearness).similarity))
    if len(trust.domain.embeddings):
        columns.append(PredictedColumn("cls_distance", cells=lambda predictions: given(predictions.nearness).distance))
    return [*columns, PredictedColumn("warning", "text", cells=lambda predictions: predictions.warnings)]


def property_column(number: int, name: str) -> PredictedColumn:
    return PredictedColumn(
        name, cells=lambda predictions: given(predictions.properties)[:, number], path=("properties", name)
    )


def text_of_nearest(name: str, texts: list[str], target: str = "") -> PredictedColumn:
    """The text of the nearest training molecule, from N ``texts``, such as its name or its censored label."""

    def cells(predictions: Predictions) -> list[str]:
        return ["" if row < 0 else texts[row] for row in given(given(predictions.nearness).row).tolist()]

    path = ("predictions", target, "nearest_bound") if target else ()
    return PredictedColumn(name, "text", cells=cells, path=path)


def probable_class(number: int, target: str, classes: tuple[str, ...]) -> PredictedColumn:
    """The class of the ``number``-th target: that of 1 from a probability of ``LEAST_OF_CLASS_1`` on."""

    def numbers(predictions: Predictions) -> np.ndarray:
        values = predictions.values[:, number].astype(np.float64)
        return np.where(np.isnan(values), np.nan, values >= LEAST_OF_CLASS_1)

    return class_column(f"{target}_class", ("predictions", target, "class_name"), numbers, classes)


def most_probable_class(names: tuple[str, ...]) -> PredictedColumn:
    """The most probable one of several classes; of equally probable ones the first."""

    def words(predictions: Predictions) -> list[str]:
        return ["" if np.isnan(row).any() else names[row.argmax()] for row in predictions.values]

    return PredictedColumn("class", "text", cells=words, path=("class_name",))


def label_of_nearest(target: str, labels: np.ndarray, classes: tuple[str, ...]) -> PredictedColumn:
    """The label of the nearest training molecule, from labels [N]; the name of its class if ``classes`` have names."""

    def numbers(predictions: Predictions) -> np.ndarray:
        rows = given(given(predictions.nearness).row)
        return np.where(rows < 0, np.nan, labels[rows])

    return class_column(f"nearest_{target}", ("predictions", target, "nearest"), numbers, classes)


def class_column(
    name: str, path: tuple[str, ...], numbers: Callable[[Predictions], np.ndarray], classes: tuple[str, ...]
) -> PredictedColumn:
    """A column of numbers, or of the names of these classes unless they are called 0 and 1, as ``numbers`` are."""

    def words(predictions: Predictions) -> list[str]:
        return ["" if number != number else classes[int(number)] for number in numbers(predictions).tolist()]

    if classes in ((), ("0", "1")):
        return PredictedColumn(name, cells=numbers, path=path)
    return PredictedColumn(name, "text", cells=words, path=path)


def given(answer: Found | None) -> Found:
    """A result that the ``reader`` of the columns was asked to compute."""
    assert answer is not None
    return answer


def two_classes(model: PredictingModel) -> dict[str, tuple[str, ...]]:
    if isinstance(model, SideBySide):
        return model.by_target(two_classes)
    return dict(zip(model.targets, model.classes, strict=True)) if model.kind == "classification" else {}


def shown_decimals(model: PredictingModel) -> dict[str, int]:
    """The decimals of predictions for people by target: three of probabilities, else those of the labels, if known."""
    if isinstance(model, SideBySide):
        return model.by_target(shown_decimals)
    if TASKS[model.kind].predicts_probabilities:
        return dict.fromkeys(model.targets, PROBABILITY_DECIMALS)
    rows = model.trust.rows if model.trust else None
    return {} if rows is None else dict(zip(model.targets, rows.decimals, strict=True))
