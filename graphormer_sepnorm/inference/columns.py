"""The columns of predictions, declared once: for files, libraries, the page and Python.

Per target its value, its interval and its spread; then how a molecule compares with the training molecules; then the
error. A new column is a ``PredictedColumn`` in one of the functions below.

Axis letters: M molecules.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import (
    NO_TRUST,
    Comparer,
    MoleculeModel,
    Nearness,
    PredictingModel,
    Predictions,
)
from graphormer_sepnorm.inference.trust import Intervals
from graphormer_sepnorm.tables.writers import AddedColumn, Cells
from graphormer_sepnorm.tasks import TASKS

ERROR = "error"


@dataclass(frozen=True)
class PredictedColumn(AddedColumn):
    """A column of predictions.

    Attributes:
        cells: its numbers [M] or its M texts.
        place: names that lead to its cell in what the page's JSON says of a molecule.
    """

    cells: Callable[[Predictions], Cells] = lambda found: found.errors
    place: tuple[str, ...] = ()


@dataclass(frozen=True)
class PredictionColumns:
    """Which columns there are.

    Attributes:
        model: that predicts.
        interval: confidence of the intervals in ``NAME_low`` and ``NAME_high``; None: none.
        domain: whether molecules are compared with the training molecules.

    Raises:
        InputError: intervals or a comparison that the model cannot give.
    """

    model: PredictingModel
    interval: float | None = None
    domain: bool = False

    def __post_init__(self) -> None:
        if self.interval is not None:
            known_intervals(self.model).half_widths(self.interval, np.zeros((1, len(self.model.targets))))

    @cached_property
    def reader(self) -> MoleculeModel[Predictions]:
        """Computes what the columns are made of."""
        return Comparer(self.model) if self.domain else self.model

    @cached_property
    def all(self) -> list[PredictedColumn]:
        """The columns in order."""
        found = [
            column for number, target in enumerate(self.model.targets) for column in self.of_target(number, target)
        ]
        if self.domain:
            found += domain_columns(self.model)
        return [*found, PredictedColumn(ERROR, "text", place=(ERROR,))]

    def of_target(self, number: int, target: str) -> Iterator[PredictedColumn]:
        """The columns of a target, the ``number``-th."""

        def of(name: str, part: str, cells: Callable[[Predictions], np.ndarray]) -> PredictedColumn:
            return PredictedColumn(name, cells=cells, place=("predictions", target, part))

        yield of(target, "value", lambda found: found.values[:, number])
        if self.interval is not None:
            widths = partial(known_intervals(self.model).half_widths, self.interval)
            yield of(f"{target}_low", "low", lambda found: (found.values - widths(found.spread))[:, number])
            yield of(f"{target}_high", "high", lambda found: (found.values + widths(found.spread))[:, number])
        if self.model.gives_spread:
            yield of(f"{target}_std", "spread", lambda found: found.spread[:, number])

    def columns(self) -> list[AddedColumn]:
        """As ``Additions``."""
        return list(self.all)

    def cells(self, found: Predictions, errors: list[str]) -> list[Cells]:
        """As ``Additions``."""
        found = replace(found, errors=errors)
        return [column.cells(found) for column in self.all]


def domain_columns(model: PredictingModel) -> list[PredictedColumn]:
    """How a molecule compares with the training molecules of a model.

    Raises:
        InputError: nothing is known of them.
    """
    if model.trust is None:
        raise InputError(f"--domain: {NO_TRUST}")

    def of(name: str, kind: Literal["text", "number"], cells: Callable[[Nearness], Cells]) -> PredictedColumn:
        return PredictedColumn(name, kind, cells=lambda found: cells(nearness_of(found)), place=(name,))

    found = [
        of("nearest", "text", lambda nearness: nearness.molecule),
        of("similarity", "number", lambda nearness: nearness.similarity),
    ]
    if len(model.trust.domain.embeddings):
        found.append(of("cls_distance", "number", lambda nearness: nearness.distance))
    return [*found, PredictedColumn("warning", "text", cells=lambda found: found.warnings, place=("warning",))]


def nearness_of(found: Predictions) -> Nearness:
    """What a ``Comparer`` found."""
    assert found.nearness is not None
    return found.nearness


def known_intervals(model: PredictingModel) -> Intervals:
    """The intervals of a model; raises InputError if it has none."""
    if TASKS[model.kind].predicts_probabilities:
        raise InputError("--interval is for models of numbers; the probabilities of two classes are calibrated instead")
    if model.trust is None:
        raise InputError(f"--interval: {NO_TRUST}")
    if model.trust.intervals is None:
        raise InputError(
            "--interval: the model has no intervals, because a target had no labels in its validation split"
        )
    return model.trust.intervals
