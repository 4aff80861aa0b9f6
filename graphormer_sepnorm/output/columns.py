"""The columns of predictions, declared once: for files, libraries, the page and Python; M molecules."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property, partial
from itertools import chain, compress, starmap
from typing import Protocol

import numpy as np

from graphormer_sepnorm.chem.properties import PROPERTIES
from graphormer_sepnorm.errors import InputError, did_you_mean
from graphormer_sepnorm.options import NO_ANSWERS, Answers
from graphormer_sepnorm.output.column import (
    PredictedColumn,
    condition_column,
    domain_columns,
    given,
    kind_of_target,
    most_probable_class,
    probable_class,
    property_column,
    two_classes,
)
from graphormer_sepnorm.predict.acquisition import Acquisition
from graphormer_sepnorm.predict.describing import UNKNOWN, Describer, shown_unit
from graphormer_sepnorm.predict.predictors import (
    MoleculeModel,
    PredictingModel,
    Predictions,
    known_intervals,
    known_sets,
    known_trust,
)
from graphormer_sepnorm.predict.side_by_side import Part, SideBySide
from graphormer_sepnorm.predict.training_rows import Drugs
from graphormer_sepnorm.runs.numbers import percent
from graphormer_sepnorm.tables.writers.base import Cells, ColumnKind
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
    """The columns of a table of predictions; raises InputError where the model does not support them."""

    model: PredictingModel
    answers: Answers = NO_ANSWERS  # what to add, and which targets to show
    acquisition: Acquisition | None = None
    profile: Judging | None = None
    is_whole: bool = False  # whether ``cells`` gets a whole table at once, as ranks require

    def __post_init__(self) -> None:
        _ = self.places, self.parts, self.judged  # which check the options

    @cached_property
    def all_models(self) -> SideBySide:
        """The models; one model has no name here."""
        return self.model if isinstance(self.model, SideBySide) else SideBySide((Part("", self.model),))

    @cached_property
    def several(self) -> SideBySide:
        """The models as molecules are compared: of chosen endpoints, with the molecules that were measured for one."""
        is_restricted = self.answers.domain and self.answers.endpoints
        return self.all_models.measured_for(self.places) if is_restricted else self.all_models

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """The targets to show, in order: the number of the model, and of the target among its targets."""
        names = [{label, self.all_models.owner(label)[1]} for label in self.all_models.targets]
        facts = [self.all_models.endpoints.get(label, {}) for label in self.all_models.targets]
        return list(compress(self.all_models.places, chosen_endpoints(self.answers.endpoints, names, facts)))

    @cached_property
    def domains(self) -> list[int]:
        """The numbers of the models whose training molecules are compared; models that share them are compared once."""
        parts = self.shown_parts if self.answers.domain else ()
        return list(dict.fromkeys(self.several.first_of_domain[part] for part in parts))

    @cached_property
    def parts(self) -> "list[PartColumns]":
        groups = []
        for number, (part, labels) in enumerate(zip(self.several.parts, self.several.labels, strict=True)):
            is_compared = self.answers.domain and (number in self.shown_parts or number in self.domains)
            confidence = self.answers.interval if number in self.shown_parts else None
            try:
                groups.append(PartColumns(part.model, labels, confidence, is_compared, part.drugs))
            except InputError as error:
                raise InputError(f"{part.name}: {error}") if part.name else error from None
        return groups

    @property
    def shown_parts(self) -> list[int]:
        """The numbers of the models with targets to show, in their order."""
        return list(dict.fromkeys(part for part, _ in self.places))

    @cached_property
    def reader(self) -> MoleculeModel[Predictions]:
        answers = self.answers if self.profile is None else self.answers.reading(self.profile.reads)
        if not isinstance(self.model, SideBySide):
            is_described, (model,) = answers.describe or self.model.assay_limits, self.several.part_models
            return Describer(model, answers, self.measured(0)) if is_described else model
        readers = [
            Describer(model, answers.of_part(number == 0, number in self.domains), self.measured(number))
            for number, model in enumerate(self.several.part_models)
        ]
        unshown = frozenset(range(len(readers))).difference(self.shown_parts)
        return replace(self.several, readers=tuple(readers), unshown=unshown)

    def measured(self, first: int) -> dict[str, np.ndarray]:
        """Which training molecules have a label, by target: of the models that share those of the ``first``."""
        chosen = [place for place in self.places if self.several.first_of_domain[place[0]] == first]
        trusts = [(self.parts[part].labels[at], self.several.part_models[part].trust, at) for part, at in chosen]
        known = [(label, trust.rows, at) for label, trust, at in trusts if trust and self.answers.domain]
        return {label: rows.measured(at) for label, rows, at in known if rows}

    @cached_property
    def judged(self) -> list[PredictedColumn]:
        return [] if self.profile is None else self.profile.columns_for(self.model, self.is_whole)

    @cached_property
    def all(self) -> list[PredictedColumn]:
        """The columns in order; that of a target or a condition called ``error``, say, has a longer name."""
        columns = list(starmap(condition_column, self.model.asked_conditions.given.items()))
        own = [each for part, number in self.places for each in self.of(part, self.parts[part].of_target(number))]
        for part in self.shown_parts:
            own += self.of(part, self.parts[part].of_classes_together())
        counts = Counter(column.name for column in own)
        columns += [self.named(column) if counts[column.name] > 1 else column for column in own]
        columns += [*self.of_acquisition(), *self.judged, *chain.from_iterable(map(self.of_domain, self.domains))]
        if self.answers.alerts:
            columns.append(PredictedColumn("alerts", "text", cells=lambda predictions: given(predictions.alerts)))
        if self.answers.properties:
            columns += starmap(property_column, enumerate(PROPERTIES))
        columns.append(PredictedColumn(ERROR, "text"))
        for kind, end in (("conditions", OF_CONDITION), ("predictions", "_predicted")):
            taken = {column.name for column in columns if column.place[0] != kind}
            for number, column in enumerate(columns):
                if column.place[0] == kind and column.name in taken:
                    columns[number] = replace(column, name=f"{column.name}{end}")
        return columns

    @property
    def about(self) -> Iterator[tuple[str, str]]:
        """The columns of predictions with what they are, and the confidence of the others, for people."""
        described, classes = self.all_models.endpoints, two_classes(self.model)
        scales = dict(zip(self.model.targets, self.model.scales, strict=False))
        for column in self.all:
            if column.place[2:] not in (("value",), ("unlogged",)):
                continue
            target, scale = column.place[1], scales.get(column.place[1], "")
            description = described.get(target, {}).get("description", "")
            if column.place[2] == "unlogged":
                unit = shown_unit(scale, description)
                where = f", {unit if unit == UNKNOWN else f'in {unit}'}" if unit else ""
                yield column.name, f"{target} without the logarithm{where}"
                continue
            meaning = description or "as in the training table, and in its unit"
            if scale and not description:
                meaning = "-log10 of mol/l" if falls(scale) else "log10 of the training table's column in its unit"
            one = classes.get(target, ("", ""))[-1]
            yield column.name, f"probability of class {one}: {meaning}" if one else meaning
        if (level := self.answers.interval) is not None:
            yield "columns _low, _high and _set", f"intervals, or sets of classes, of {percent(level)} confidence"

    def of_acquisition(self) -> Iterator[PredictedColumn]:
        """The column of the ranking criterion, unless that is a prediction."""
        if (by := self.acquisition) is not None and by.by != "prediction":
            number = self.model.targets.index(by.target)

            def cells(predictions: Predictions) -> np.ndarray:
                return by(predictions.values[:, number], predictions.spread[:, number])

            yield PredictedColumn(by.column, kind_of_target(self.model, number), cells=cells)

    def of(self, part: int, columns: Iterable[PredictedColumn]) -> list[PredictedColumn]:
        """Columns of a model, the ``part``-th, which read its predictions among those of all."""

        def cells(column: PredictedColumn, predictions: Predictions) -> Cells:
            return column.cells((predictions.parts or (predictions,))[part])

        return [replace(column, cells=partial(cells, column), part=part) for column in columns]

    def named(self, column: PredictedColumn) -> PredictedColumn:
        if not (name := self.several.parts[given(column.part)].name):
            return column
        path = column.place if len(column.place) > 1 else ("models", name, *column.place)
        return replace(column, name=f"{name}_{column.name}", path=path)

    def of_domain(self, first: int) -> list[PredictedColumn]:
        """The comparison with the training molecules of a model, the ``first`` of those that have the same ones."""
        sharing = [part for part, its_first in enumerate(self.several.first_of_domain) if its_first == first]
        by_part = [self.of(part, domain_columns(self.parts[part].model, self.parts[part].labels)) for part in sharing]
        of_targets = [column for columns in by_part for column in columns if column.place[0] == "predictions"]
        of_targets = [column for column in of_targets if column.place[1] in self.targets]
        own = [column for column in by_part[0] if column.place[0] != "predictions"]
        after_labels = next(place for place, column in enumerate(own) if column.place[-1] == "similarity")
        if len(self.domains) > 1:
            own = list(map(self.named, own))
        own[after_labels:after_labels] = sorted(of_targets, key=lambda column: self.targets.index(column.place[1]))
        return own

    @property
    def targets(self) -> list[str]:
        return [self.parts[part].labels[number] for part, number in self.places]

    def cells(self, predictions: Predictions, errors: list[str]) -> list[Cells]:
        predictions = replace(predictions, errors=errors)
        return [column.cells(predictions) for column in self.all]


@dataclass(frozen=True)
class PartColumns:
    """The columns of one of the models; raises InputError where it does not support them."""

    model: PredictingModel
    labels: tuple[str, ...]  # what its targets are called
    confidence: float | None  # of intervals or sets
    is_compared: bool  # with its training molecules
    drugs: Drugs | None

    def __post_init__(self) -> None:
        nothing = np.zeros((1, len(self.labels)))
        if self.is_compared:
            known_trust(self.model)
        if self.confidence is not None and self.of_classes:
            known_sets(self.model).holds(nothing, self.confidence)
        elif self.confidence is not None:
            known_intervals(self.model).half_widths(self.confidence, nothing)

    @property
    def of_classes(self) -> bool:
        return TASKS[self.model.kind].predicts_probabilities

    def of_classes_together(self) -> Iterator[PredictedColumn]:
        if not TASKS[self.model.kind].adds_up:
            return
        yield most_probable_class(self.model.classes[0])
        if self.confidence is not None:
            yield PredictedColumn("class_set", "text", cells=self.class_set(0, self.confidence))

    def class_set(self, group: int, confidence: float) -> Callable[[Predictions], list[str]]:
        sets, names = known_sets(self.model), self.model.classes[group]
        return lambda predictions: sets.texts(group, predictions.values, confidence, names)

    def interval_ends(self, number: int, confidence: float) -> list[Callable[[Predictions], np.ndarray]]:
        """The lower and the upper end of the intervals of a target."""
        intervals, limits = known_intervals(self.model).of_target(number), self.model.limits[number : number + 1]

        def end(place: int, predictions: Predictions) -> np.ndarray:
            values, spread = predictions.values[:, [number]], predictions.spread[:, [number]]
            return intervals.ends(confidence, values, spread, limits)[place][:, 0]

        return [partial(end, 0), partial(end, 1)]

    def of_target(self, number: int) -> Iterator[PredictedColumn]:
        own, target, confidence = self.model.targets[number], self.labels[number], self.confidence
        scale = self.model.scales[number] if self.model.scales else ""
        name_in_units = measured_name(target, scale)

        def of(name: str, part: str, cells: Callable[[Predictions], Cells], is_text: bool = False) -> PredictedColumn:
            kind: ColumnKind = kind_of_target(self.model, number) if part in ("value", "low", "high") else "number"
            return PredictedColumn(name, "text" if is_text else kind, cells=cells, path=("predictions", target, part))

        def value(predictions: Predictions) -> np.ndarray:
            return predictions.values[:, number]

        def in_units(cells: Callable[[Predictions], np.ndarray]) -> Callable[[Predictions], np.ndarray]:
            return lambda predictions: measured(cells(predictions)[:, None], [scale])[:, 0]

        yield of(target, "value", value)
        if scale:
            yield of(name_in_units, "unlogged", in_units(value))
        if own in self.model.assay_limits:
            yield of(f"{target}_limit", "limit", lambda predictions: given(predictions.limit_words)[own], is_text=True)
        if self.model.kind == "classification":
            yield probable_class(number, target, self.model.classes[number])
        if confidence is not None and not self.of_classes:
            low, high = self.interval_ends(number, confidence)
            yield of(f"{target}_low", "low", low)
            yield of(f"{target}_high", "high", high)
            if scale:
                low, high = (high, low) if falls(scale) else (low, high)
                yield of(f"{name_in_units}_low", "unlogged_low", in_units(low))
                yield of(f"{name_in_units}_high", "unlogged_high", in_units(high))
        if confidence is not None and self.of_classes and not TASKS[self.model.kind].adds_up:
            yield of(f"{target}_set", "set", self.class_set(number, confidence), is_text=True)
        if self.model.gives_spread:
            yield of(f"{target}_std", "std", lambda predictions: predictions.spread[:, number])
        rows = self.model.trust.rows if self.is_compared and self.model.trust else None
        if rows is not None and not self.of_classes:
            name = f"{target}_percentile"
            yield of(name, "percentile", lambda predictions: rows.percentiles(value(predictions), number))
            if any(map(len, rows.sorted_bounds[number])):
                ends = partial(rows.percentile_ends, target=number)
                yield of(f"{name}_low", "percentile_low", lambda predictions: ends(value(predictions))[0])
                yield of(f"{name}_high", "percentile_high", lambda predictions: ends(value(predictions))[1])
        if (drugs := self.drugs) is not None and own in drugs.targets:
            name = f"{target}_drug_percentile"
            yield of(name, "drugs", lambda predictions: drugs.percentiles(predictions.values[:, number], own))


def chosen_endpoints(
    patterns: Sequence[str], names: Sequence[set[str]], facts: Sequence[Mapping[str, str]] = ()
) -> list[bool]:
    """Whether each target, of these names, fits one of the names or shell patterns, or has the group of one in its
    ``facts``, as ``Endpoint.facts``; raises InputError for others."""
    known = list(zip(names, facts or [{}] * len(names), strict=True))

    def fits(pattern: str, words: set[str], of: Mapping[str, str]) -> bool:
        if any(pattern in each for each in names):  # as it is written, before names that differ in case
            return pattern in words
        folded = pattern.casefold()
        is_group = folded == (of.get("group") or "*").casefold()
        return is_group or any(fnmatchcase(name.casefold(), folded) for name in words)

    for pattern in patterns:
        if not any(fits(pattern, *each) for each in known):
            every, is_word = sorted(set().union(*names)), partial(re.search, rf"\b{re.escape(pattern)}\b", flags=re.I)
            near = did_you_mean(pattern, every) or f"; they are {', '.join(every)}"
            if about := [min(words, key=len) for words, of in known if is_word(of.get("description", ""))]:
                near = f"; {pattern} is in the descriptions of {', '.join(about)}"
            elif "," in pattern:
                near = f": put spaces between names, as in {pattern.replace(',', ' ')}"
            raise InputError(f"no target fits the endpoint {pattern}{near}")
    return [not patterns or any(fits(pattern, *each) for pattern in patterns) for each in known]
