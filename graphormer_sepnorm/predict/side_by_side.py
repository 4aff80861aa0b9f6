"""Models side by side: M molecules are read once, and each model predicts its own ones of the T targets."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch

from graphormer_sepnorm.chem.features import FOR_TABLES, Molecules, Sample, read_molecules
from graphormer_sepnorm.config import Config
from graphormer_sepnorm.errors import InputError, did_you_mean, find_target
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import Output
from graphormer_sepnorm.predict.predictors import Embedder, PredictingModel, Predictions, Reader, computed
from graphormer_sepnorm.predict.training_rows import Drugs
from graphormer_sepnorm.runs.zoo import AssayLimit
from graphormer_sepnorm.system.workers import Smiles
from graphormer_sepnorm.tables.rows import AskedConditions

Value = TypeVar("Value")


@dataclass(frozen=True)
class Part:
    """One of the models."""

    name: str  # the parts of a panel have the name of the panel
    model: PredictingModel
    order: tuple[str, ...] = ()  # of the targets of its panel; empty: that of the models
    endpoints: Mapping[str, dict] = field(default_factory=dict)  # facts about its targets, as ``card_endpoints``
    drugs: Drugs | None = None


@dataclass(eq=False, repr=False)
class SideBySide:
    """Several models with the interface of one; for what differs between them, ask ``parts``."""

    parts: tuple[Part, ...]
    readers: tuple[Reader, ...] = ()  # compute the predictions of each; empty: the models themselves
    unshown: frozenset[int] = frozenset()  # models whose errors do not matter

    def __post_init__(self) -> None:
        """By model, ``labels`` are the names of its targets, after that of the model where two models have a target.

        ``places`` has the T targets in order: the number of the model, and of the target among its targets.
        """
        self.part_models = [part.model for part in self.parts]
        counts = Counter(target for model in self.part_models for target in model.targets)
        self.labels = [
            tuple(f"{part.name}_{target}" if counts[target] > 1 else target for target in part.model.targets)
            for part in self.parts
        ]
        self.places = sorted(
            ((part, number) for part, its in enumerate(self.labels) for number in range(len(its))), key=self.rank
        )
        self.targets = tuple(self.labels[part][number] for part, number in self.places)
        self.scales, self.limits = self.of_targets("scales", ""), self.of_targets("limits", (None, None))
        self.offset, self.classes = self.of_targets("offset", 0.0), self.of_targets("classes", ())
        self.assay_limits: Mapping[str, AssayLimit] = self.by_target(lambda model: model.assay_limits)
        self.descriptions: Mapping[str, str] = self.by_target(lambda model: model.descriptions)
        self.endpoints = self.labelled([part.endpoints for part in self.parts])  # facts of the cards of the models
        self.trust = self.part_models[0].trust

    def __repr__(self) -> str:
        return f"SideBySide({'; '.join(f'{part.name}: {part.model.kind}' for part in self.parts)})"

    def rank(self, place: tuple[int, int]) -> tuple[int, int]:
        """By which ``places`` are sorted: first the models, then the order of the panel."""
        part = self.parts[place[0]]
        target, first = part.model.targets[place[1]], [each.name for each in self.parts].index(part.name)
        return first, part.order.index(target) if target in part.order else len(part.order)

    @cached_property
    def first_of_domain(self) -> list[int]:
        """By model, the number of the first one with the same training molecules."""
        models = self.part_models
        return [
            next(first for first, other in enumerate(models) if other is model or have_same_domain(other, model))
            for model in models
        ]

    def of_targets(self, name: str, missing: object) -> tuple:
        """A fact about each of the T targets: an attribute of the models, some of which do not have it by target."""
        by_model = [(getattr(model, name), len(model.targets)) for model in self.part_models]
        values = [facts if len(facts) == targets else (missing,) * targets for facts, targets in by_model]
        return tuple(values[part][number] for part, number in self.places)

    def by_target(self, facts_of: Callable[[PredictingModel], Mapping[str, Value]]) -> dict[str, Value]:
        """Facts by label, from a function that gives those of a model by target."""
        return self.labelled([facts_of(model) for model in self.part_models])

    def labelled(self, values: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
        named = ((values[part], self.part_models[part].targets[at], self.labels[part][at]) for part, at in self.places)
        return {label: of_part[target] for of_part, target, label in named if target in of_part}

    def owner(self, label: str | None) -> tuple[int, str]:
        """The number of the model that has a target, None: the first one, and its name there; raises InputError."""
        places = dict(zip(self.targets, self.places, strict=True))
        part, number = self.places[0] if label is None else places[find_target(label, places)]
        return part, self.parts[part].model.targets[number]

    @property
    def kind(self) -> str:
        """The kind of all models; raises InputError if they differ."""
        kinds = {model.kind for model in self.part_models}
        if len(kinds) > 1:
            raise InputError(f"this needs one model, and {self.parts[0].name} has several kinds: {', '.join(kinds)}")
        return kinds.pop()

    @property
    def gives_spread(self) -> bool:
        return any(model.gives_spread for model in self.part_models)

    @property
    def digest(self) -> str:
        lines = (
            f"{each.name} {each.model.featurizer} {each.model.digest} {each.drugs and each.drugs.digest}"
            for each in self.parts
        )
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    @property
    def embedder(self) -> Embedder:
        return self.parts[0].model.embedder

    @property
    def models(self) -> list[tuple[Network, Config]]:
        return [pair for model in self.part_models for pair in model.models]

    @property
    def device(self) -> torch.device:
        return self.parts[0].model.device

    @property
    def featurizer(self) -> str:
        """That of all models, or the one that reads molecules as they are written."""
        names = {model.featurizer for model in self.part_models}
        return names.pop() if len(names) == 1 else FOR_TABLES

    @property
    def asked_conditions(self) -> AskedConditions:
        of_parts = [model.asked_conditions for model in self.part_models]
        columns = dict.fromkeys(name for each in of_parts for name in each.columns)
        return AskedConditions(tuple(columns), {name: text for each in of_parts for name, text in each.given.items()})

    def with_models(self, models: Sequence[PredictingModel]) -> "SideBySide":
        parts = tuple(replace(part, model=model) for part, model in zip(self.parts, models, strict=True))
        return replace(self, parts=parts)

    def measured_for(self, places: Sequence[tuple[int, int]]) -> "SideBySide":
        """The models, which compare molecules only with those that have a label of a target at one of ``places``."""
        models = []
        for first, model in zip(self.first_of_domain, self.part_models, strict=True):
            of_part = [(self.part_models[part].trust, at) for part, at in places if self.first_of_domain[part] == first]
            measured = [trust.rows.measured(target) for trust, target in of_part if trust and trust.rows]
            if (own := model.trust) is not None and measured:
                model = copy(model)
                vars(model)["trust"] = own.of_rows(np.flatnonzero(np.any(measured, axis=0)))
            models.append(model)
        return self.with_models(models)

    def to(self, device: torch.device) -> "SideBySide":
        return self.with_models([model.to(device) for model in self.part_models])

    def under(self, conditions: Mapping[str, object]) -> "SideBySide":
        """Each model under those of the conditions that it has; raises InputError for one that no model has."""
        conditions_of_parts = list(map(names_of_conditions, self.part_models))
        names = sorted(set().union(*conditions_of_parts))
        if unknown := [name for name in conditions if name not in names]:
            has = f"their conditions are {', '.join(names)}" if names else "they read none"
            raise InputError(f"{unknown[0]} is not a condition of the models: {has}{did_you_mean(unknown[0], names)}")
        chosen = [{name: value for name, value in conditions.items() if name in each} for each in conditions_of_parts]
        return self.with_models([model.under(each) for model, each in zip(self.part_models, chosen, strict=True)])

    def predict(self, smiles: Smiles) -> Predictions:
        """Predictions as in the command ``predict``; a SMILES that cannot be read affects only its own row."""
        return self.compute(read_molecules(self.featurizer, smiles))

    def compute(self, molecules: Molecules) -> Predictions:
        """The predictions of all models, in ``parts``; networks compute a trunk that they share once."""
        ready, outputs = self.ready_for_each(molecules), [reader.outputs for reader in self.each_reader]
        alike: dict[int, list[int]] = {}
        for number, each in enumerate(ready):
            alike.setdefault(id(each.graphs), []).append(number)
        predictions: dict[int, Predictions] = {}
        for numbers in alike.values():
            values = computed(ready[numbers[0]], [output for number in numbers for output in outputs[number]])
            for number in numbers:
                own, values = values[: len(outputs[number])], values[len(outputs[number]) :]
                predictions[number] = self.each_reader[number].predictions(ready[number], own)
        return self.joined([predictions[number] for number in range(len(self.parts))])

    @property
    def each_reader(self) -> Sequence[Reader]:
        return self.readers or self.part_models

    @property
    def outputs(self) -> list[Output]:
        return [output for reader in self.each_reader for output in reader.outputs]

    def ready(self, molecules: Molecules) -> Molecules:
        return molecules

    def predictions(self, molecules: Molecules, outputs: list[np.ndarray]) -> Predictions:
        return self.compute(molecules)  # as the models may read the molecules in different forms

    def ready_for_each(self, molecules: Molecules) -> list[Molecules]:
        """The molecules as each model reads them, with its conditions."""
        read, ready = {self.featurizer: molecules}, []
        for model, reader in zip(self.part_models, self.each_reader, strict=True):
            if model.featurizer not in read:
                read[model.featurizer] = read_molecules(model.featurizer, molecules.smiles)
            conditions = [self.conditions_for(model, row) for row in molecules.conditions]
            ready.append(reader.ready(replace(read[model.featurizer], conditions=conditions)))
        return ready

    def sample_for(self, part: int, sample: Sample | str) -> Sample | str:
        """A molecule with those of its conditions that a model reads."""
        if not isinstance(sample, Sample):
            return sample
        conditions = self.conditions_for(self.part_models[part], sample.conditions)
        return Sample(sample.smiles, conditions) if conditions else str(sample.smiles)

    def conditions_for(self, model: PredictingModel, values: Sequence[str]) -> tuple[str, ...]:
        """Those of the conditions of a molecule that a model reads."""
        known = dict(zip(self.asked_conditions.columns, values, strict=True))
        return tuple(known[name] for name in model.asked_conditions.columns)

    def joined(self, parts: list[Predictions]) -> Predictions:
        """The predictions of the models as one; values and spread are [M, T]."""
        for number, first in enumerate(self.first_of_domain):
            parts[number] = replace(parts[number], nearness=parts[first].nearness)
        warnings = zip(*(each.warnings for each in parts), strict=True)
        return Predictions(
            values=np.stack([parts[part].values[:, number] for part, number in self.places], axis=1),
            spread=np.stack([parts[part].spread[:, number] for part, number in self.places], axis=1),
            errors=list(map(self.error_of, zip(*(each.errors for each in parts), strict=True))),
            warnings=[" ".join(dict.fromkeys(filter(None, texts))) for texts in warnings],
            alerts=parts[0].alerts,
            properties=parts[0].properties,
            parts=tuple(parts),
        )

    def error_of(self, texts: Sequence[str]) -> str:
        """Why a molecule could not be read, from the reasons of all models; each with its name if they differ."""
        errors = [(self.parts[number].name, text) for number, text in enumerate(texts) if number not in self.unshown]
        if len({text for _, text in errors}) == 1:
            return errors[0][1]
        return "; ".join(dict.fromkeys(f"{name}: {text}" for name, text in errors if text))


def parts_of(model: PredictingModel) -> list[PredictingModel]:
    """The models that stand side by side, or the one model itself."""
    return model.part_models if isinstance(model, SideBySide) else [model]


def one_model(model: PredictingModel, target: str | None) -> tuple[PredictingModel, str | None]:
    """The one that has a target among models side by side, and its name there; raises InputError if it is unclear."""
    if not isinstance(model, SideBySide):
        return model, target
    if target is None:
        raise InputError(f"there are several models: name a target, one of {', '.join(model.targets)}")
    number, own = model.owner(target)
    return model.part_models[number], own


def by_target(model: PredictingModel, facts_of: Callable[[PredictingModel], Mapping[str, Value]]) -> dict[str, Value]:
    """Facts of one model by target, or those of models side by side by what their targets are called."""
    return model.by_target(facts_of) if isinstance(model, SideBySide) else dict(facts_of(model))


def names_of_conditions(model: PredictingModel) -> set[str]:
    return {*model.asked_conditions.columns, *model.asked_conditions.given}


def have_same_domain(one: PredictingModel, other: PredictingModel) -> bool:
    """Whether two models learnt from the same molecules, both without conditions."""
    if one.trust is None or other.trust is None or names_of_conditions(one) or names_of_conditions(other):
        return False
    first, second = one.trust.domain, other.trust.domain
    names = ("bits", "kinds", "text", *(["embeddings"] if len(second.embeddings) else []))
    return one.featurizer == other.featurizer and all(
        np.array_equal(getattr(first, name), getattr(second, name)) for name in names
    )
