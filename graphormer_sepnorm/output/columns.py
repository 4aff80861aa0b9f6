"""The columns of predictions, declared once: for files, libraries, the page and Python.

The order is: conditions that are the same for all molecules; for each target its value, class, interval and spread; the
comparison with the training molecules; the error. A new column is a ``PredictedColumn`` in ``column.py``.

Axis letters: M molecules.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property, partial
from itertools import starmap
from typing import Protocol

import numpy as np

from graphormer_sepnorm.chem.basic_properties import PROPERTIES
from graphormer_sepnorm.errors import InputError, did_you_mean
from graphormer_sepnorm.output.column import (
    PredictedColumn,
    acquisition_column,
    condition_column,
    domain_columns,
    given,
    kind_of,
    most_probable_class,
    probable_class,
    property_column,
)
from graphormer_sepnorm.predict.acquisition import Acquisition
from graphormer_sepnorm.predict.answers import NO_ANSWERS, Answers
from graphormer_sepnorm.predict.describing import Describer
from graphormer_sepnorm.predict.drugs import Drugs
from graphormer_sepnorm.predict.known import interval_ends, known_intervals, known_sets, known_trust
from graphormer_sepnorm.predict.predictors import MoleculeModel, PredictingModel, Predictions
from graphormer_sepnorm.predict.side_by_side import SideBySide
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.tables.writers import AddedColumn, Cells
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.scales import falls, measured, measured_name

ERROR = "error"
OF_CONDITION = "_condition"  # follows the name of a condition that another column has


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
        answers: what to add to the predictions, and the targets to show, by name or shell pattern.
        acquisition: ranking criterion, which gets its own column; None: no ranking.
        profile: judge of the molecules; None: no one.
        is_whole: whether ``cells`` gets all molecules of a table at once, as a rank among them requires.
        labels: what the targets of a model among others are called; empty: by their names.
        drugs: predictions of the model for approved drugs; None: unknown.

    Raises:
        InputError: the model does not support intervals, the comparison or the profile, or no target is chosen.
    """

    model: PredictingModel
    answers: Answers = NO_ANSWERS
    acquisition: Acquisition | None = None
    labels: tuple[str, ...] = ()
    drugs: Drugs | None = None
    profile: Judging | None = None
    is_whole: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.model, SideBySide):
            _ = self.parts, self.judged  # which check the options
            return
        _ = self.places
        nothing = np.zeros((1, len(self.model.targets)))
        if self.answers.domain:
            known_trust(self.model)
        if self.answers.interval is not None and self.of_classes:
            known_sets(self.model).holds(nothing, self.answers.interval)
        elif self.answers.interval is not None:
            known_intervals(self.model).half_widths(self.answers.interval, nothing)
        _ = self.judged

    @property
    def of_classes(self) -> bool:
        return TASKS[self.model.kind].predicts_probabilities

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """The targets to show, in order: the number of the model, and of the target among its targets."""
        if isinstance(self.model, SideBySide):
            places = self.model.places
            names = [{label, self.model.owner(label)[1]} for label in self.model.targets]
        else:
            places = [(0, number) for number in range(len(self.model.targets))]
            names = [{target} for target in self.model.targets]
        chosen = chosen_endpoints(self.answers.endpoints, names)
        return [place for place, is_chosen in zip(places, chosen, strict=True) if is_chosen]

    @cached_property
    def domains(self) -> list[int]:
        """The numbers of the models whose training molecules are compared; models that share them are compared once."""
        if not self.answers.domain:
            return []
        first = self.model.first_of_domain if isinstance(self.model, SideBySide) else [0]
        return list(dict.fromkeys(first[part] for part, _ in self.places))

    @cached_property
    def parts(self) -> "list[PredictionColumns]":
        """The columns of each model."""
        if not isinstance(self.model, SideBySide):
            return [self]
        found, shown = [], {part for part, _ in self.places}
        for number, (part, labels) in enumerate(zip(self.model.parts, self.model.labels, strict=True)):
            is_compared = self.answers.domain and (number in shown or number in self.domains)
            try:
                answers = Answers(self.answers.interval if number in shown else None, is_compared)
                found.append(PredictionColumns(part.model, answers, labels=labels, drugs=part.drugs))
            except InputError as error:
                raise InputError(f"{part.name}: {error}") from None
        return found

    @cached_property
    def reader(self) -> MoleculeModel[Predictions]:
        """A reader that computes the contents of the columns."""
        answers = self.answers if self.profile is None else self.answers.reading(self.profile.reads)
        if not isinstance(self.model, SideBySide):
            is_described = answers.describe or self.model.assay_limits
            return Describer(self.model, answers) if is_described else self.model
        readers = [
            Describer(model, answers.of_part(is_first=number == 0, in_domain=number in self.domains))
            for number, model in enumerate(self.model.part_models)
        ]
        unshown = set(range(len(readers))) - {part for part, _ in self.places}
        return replace(self.model, readers=tuple(readers), unshown=frozenset(unshown))

    @cached_property
    def judged(self) -> list[PredictedColumn]:
        """The columns of the profile."""
        return [] if self.profile is None else self.profile.columns_for(self.model, self.is_whole)

    @cached_property
    def all(self) -> list[PredictedColumn]:
        """The columns in order; that of a target or a condition called ``error``, say, has a longer name."""
        found = list(starmap(condition_column, self.model.asked_conditions.given.items()))
        own = [each for part, number in self.places for each in self.of(part, self.parts[part].of_target(number))]
        for part in dict.fromkeys(part for part, _ in self.places):
            own += self.of(part, self.parts[part].of_classes_together())
        found += self.with_models_named(own)
        if self.acquisition is not None and self.acquisition.by != "prediction":
            number = self.model.targets.index(self.acquisition.target)
            found.append(acquisition_column(self.acquisition, number, kind_of(self.model, number)))
        found += self.judged
        for first in self.domains:
            found += self.of_domain(first)
        if self.answers.alerts:
            found.append(PredictedColumn("alerts", "text", cells=lambda found: given(found.alerts)))
        if self.answers.properties:
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

    def of(self, part: int, columns: Iterable[PredictedColumn]) -> list[PredictedColumn]:
        """Columns of a model, the ``part``-th, which read its predictions among those of all."""
        if not isinstance(self.model, SideBySide):
            return list(columns)
        return [replace(column, cells=OfPart(column.cells, part)) for column in columns]

    def with_models_named(self, columns: list[PredictedColumn]) -> list[PredictedColumn]:
        """Columns of which those of several models with the same name begin with the names of their models."""
        counts = Counter(column.name for column in columns)
        return [self.named(column) if counts[column.name] > 1 else column for column in columns]

    def named(self, column: PredictedColumn) -> PredictedColumn:
        """A column whose name begins with that of its model."""
        if not (isinstance(self.model, SideBySide) and isinstance(column.cells, OfPart)):
            return column
        name = self.model.parts[column.cells.part].name
        path = column.place if len(column.place) > 1 else ("models", name, *column.place)
        return replace(column, name=f"{name}_{column.name}", path=path)

    def of_domain(self, first: int) -> list[PredictedColumn]:
        """The comparison with the training molecules of a model, the ``first`` of those that have the same ones."""
        sharing = [first]
        if isinstance(self.model, SideBySide):
            alike = self.model.first_of_domain
            sharing = [part for part in range(len(alike)) if alike[part] == first]
        by_part = [self.of(part, domain_columns(self.parts[part].model, self.parts[part].shown)) for part in sharing]
        own = [column for column in by_part[0] if column.place[0] != "predictions"]
        if len(self.domains) > 1:
            own = [self.named(column) for column in own]
        after_labels = next(place for place, column in enumerate(own) if column.place[-1] == "similarity")
        of_targets = [column for columns in by_part for column in columns if column.place[0] == "predictions"]
        of_targets = [column for column in of_targets if column.place[1] in self.targets]
        own[after_labels:after_labels] = sorted(of_targets, key=lambda column: self.targets.index(column.place[1]))
        return own

    @property
    def targets(self) -> list[str]:
        """The targets to show."""
        return [self.parts[part].shown[number] for part, number in self.places]

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of all targets of one model in columns."""
        return self.labels or self.model.targets

    def of_classes_together(self) -> Iterator[PredictedColumn]:
        """The columns of a model whose targets are the classes of one column."""
        if not TASKS[self.model.kind].adds_up:
            return
        yield most_probable_class(self.model.classes[0])
        if self.answers.interval is not None:
            yield PredictedColumn("class_set", "text", cells=self.class_set(0, self.answers.interval))

    def class_set(self, group: int, confidence: float) -> Callable[[Predictions], list[str]]:
        """The cells with the sets of classes of one group."""
        sets, names = known_sets(self.model), self.model.classes[group]
        return lambda found: sets.texts(group, found.values, confidence, names)

    def of_target(self, number: int) -> Iterator[PredictedColumn]:
        """The columns of the ``number``-th target of one model."""
        own, target = self.model.targets[number], self.shown[number]

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
        if own in self.model.assay_limits:
            place = ("predictions", target, "limit")
            yield PredictedColumn(
                f"{target}_limit", "text", cells=lambda found: given(found.limit_words)[own], path=place
            )
        if self.model.kind == "classification":
            yield probable_class(number, target, self.model.classes[number])
        if self.answers.interval is not None and not self.of_classes:
            low, high = end(0, self.answers.interval), end(1, self.answers.interval)
            yield of(f"{target}_low", "low", low)
            yield of(f"{target}_high", "high", high)
            if scale:
                low, high = (high, low) if falls(scale) else (low, high)
                yield of(f"{name_in_units}_low", "unlogged_low", in_units(low))
                yield of(f"{name_in_units}_high", "unlogged_high", in_units(high))
        if self.answers.interval is not None and self.of_classes and not TASKS[self.model.kind].adds_up:
            cells = self.class_set(number, self.answers.interval)
            yield PredictedColumn(f"{target}_set", "text", cells=cells, path=("predictions", target, "set"))
        if self.model.gives_spread:
            yield of(f"{target}_std", "std", lambda found: found.spread[:, number])
        rows = self.model.trust.rows if self.answers.domain and self.model.trust else None
        if rows is not None and not TASKS[self.model.kind].predicts_probabilities:
            yield of(f"{target}_percentile", "percentile", lambda found: rows.percentiles(found.values)[:, number])
            for side, end_of in enumerate(("low", "high") if any(map(len, rows.sorted_bounds[number])) else ()):
                yield of(
                    f"{target}_percentile_{end_of}",
                    f"percentile_{end_of}",
                    partial(percentile_end, rows, number, side),
                )
        if (drugs := self.drugs) is not None and own in drugs.targets:
            yield of(
                f"{target}_drug_percentile", "drugs", lambda found: drugs.percentiles(found.values[:, number], own)
            )

    def columns(self) -> list[AddedColumn]:
        """As ``Additions``."""
        return list(self.all)

    def cells(self, found: Predictions, errors: list[str]) -> list[Cells]:
        """As ``Additions``."""
        found = replace(found, errors=errors)
        return [column.cells(found) for column in self.all]


def percentile_end(rows: TrainingRows, target: int, side: int, found: Predictions) -> np.ndarray:
    """The least or the greatest possible percentiles of the predictions of a target among its training labels."""
    return rows.percentile_ends(found.values)[side, :, target]


@dataclass(frozen=True)
class OfPart:
    """The cells of a column of one model among several.

    Attributes:
        cells: of its own predictions.
        part: number of the model.
    """

    cells: Callable[[Predictions], Cells]
    part: int

    def __call__(self, found: Predictions) -> Cells:
        return self.cells(found.parts[self.part])


def chosen_endpoints(patterns: Sequence[str], names: Sequence[set[str]]) -> list[bool]:
    """Whether each target is chosen by one of several patterns; all are without patterns.

    Args:
        patterns: names, or shell patterns such as "CYP3A4*", of which case does not matter.
        names: what each target is called.

    Raises:
        InputError: no target fits a pattern.
    """

    def fits(pattern: str, known: set[str]) -> bool:
        return pattern in known or any(fnmatchcase(name.casefold(), pattern.casefold()) for name in known)

    for pattern in patterns:
        if not any(fits(pattern, known) for known in names):
            every = sorted(set().union(*names))
            near = did_you_mean(pattern, every) or f"; they are {', '.join(every)}"
            raise InputError(f"no target fits the endpoint {pattern}{near}")
    return [not patterns or any(fits(pattern, known) for pattern in patterns) for known in names]
