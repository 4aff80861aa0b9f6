"""Descriptions next to predictions of M molecules: nearest training molecules, units, limits, alerts, P properties."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from rdkit import Chem

from graphormer_sepnorm.chem.features import Molecules
from graphormer_sepnorm.chem.properties import PROPERTIES, basic_properties, find_alerts
from graphormer_sepnorm.config import Scale
from graphormer_sepnorm.options import Answers
from graphormer_sepnorm.predict.domain import OTHER_CONDITIONS, Domain, is_in_training, joined
from graphormer_sepnorm.predict.forward import Output
from graphormer_sepnorm.predict.predictors import Nearness, PredictingModel, Predictions, computed
from graphormer_sepnorm.predict.subsets import subsets_of
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.predict.traits import Traits, attempt, strange, traits_of_all
from graphormer_sepnorm.runs.numbers import counted, significant
from graphormer_sepnorm.runs.zoo import AssayLimit
from graphormer_sepnorm.tasks.scales import falls, measured, unit_of

UNKNOWN = "in the unit of the table"  # in place of a unit that is not known
MOST_NAMED = 4  # targets


class Describer:
    """A ``Reader`` that adds answers on the molecules to the predictions of a model; a domain needs its ``trust``.

    ``measured``: for each target to judge, by its label, which training molecules have a label of it, bool [N].
    """

    def __init__(self, model: PredictingModel, answers: Answers, measured: Mapping[str, np.ndarray] | None = None):
        self.model, self.answers = model, answers
        self.domain = model.trust.domain if answers.domain and model.trust else None
        own = (measured or {}).items() if self.domain else ()
        self.rows_of = {label: np.flatnonzero(rows) for label, rows in own if rows.any() and not rows.all()}
        if self.domain:
            _ = self.domain.usual_similarity  # computed once, before other processes start
            self.subsets = subsets_of(self.domain, list(self.rows_of.values()))
        self.models, self.featurizer, self.device = model.models, model.featurizer, model.device
        self.asked_conditions, self.ready = model.asked_conditions, model.ready

    def compute(self, molecules: Molecules) -> Predictions:
        molecules = self.ready(molecules)
        return self.predictions(molecules, computed(molecules, self.outputs))

    @property
    def outputs(self) -> list[Output]:
        """Those of the model, followed by the embeddings whose distances are asked for."""
        embedded = [self.model.embedder.output] if self.domain and len(self.domain.embeddings) else []
        return [*self.model.outputs, *embedded]

    def predictions(self, molecules: Molecules, outputs: list[np.ndarray]) -> Predictions:
        count = len(self.model.outputs)
        embeddings = outputs[count] if len(outputs) > count else None
        described = self.model.predictions(molecules, outputs[:count])
        if self.domain:
            known = self.model.trust.rows if self.model.trust else None
            matches = same_conditions(known, conditions_of(molecules))
            nearest = (self.domain, molecules.mols, embeddings, matches, tuple(self.rows_of.values()))
            nearness, within = nearness_to(*nearest)
            warnings = self.domain.add_unlike(described.warnings, nearness.similarity)
            warnings = joined(warnings, list(map(self.unlike_some, traits_of_all(molecules), within, warnings)))
            warnings = joined(warnings, under_other_conditions(nearness, matches))
            described = replace(described, nearness=nearness, warnings=warnings)
        mols, limits = molecules.mols, self.model.assay_limits
        words = {
            target: [limit_words(value, limits[target], mol) for value, mol in zip(column, mols, strict=True)]
            for target, column in zip(self.model.targets, described.values.T.tolist(), strict=True)
            if target in limits
        }
        alerts = ["; ".join(attempt(find_alerts, mol) or []) for mol in mols] if self.answers.alerts else None
        if self.answers.properties:
            nothing = np.full(len(PROPERTIES), np.nan)
            rows = (attempt(basic_properties, mol) for mol in mols)
            numbers = np.array([nothing if row is None else row for row in rows]).reshape(-1, len(PROPERTIES))
            described = replace(described, properties=numbers)
        return replace(described, limit_words=words, alerts=alerts)

    def unlike_some(self, traits: Traits | None, similar: np.ndarray, warning: str) -> str:
        """A warning for the targets whose own training molecules a molecule is unlike, with ``similar`` ones [T]."""
        assert self.domain is not None
        labels, targets = list(self.rows_of), dict[str, list[str]]()
        if traits is None:
            return ""
        for place in np.flatnonzero(similar < self.domain.usual_similarity).tolist():
            subset = self.subsets[place]
            unlike = ["No training molecule is similar."] * bool(similar[place] < subset.usual_similarity)
            for sentence in [*strange(traits, subset), *unlike]:
                targets.setdefault(sentence, []).append(labels[place])
        new = {sentence: labels for sentence, labels in targets.items() if sentence.rstrip(".") not in warning}
        return " ".join(f"{some_of(labels)}: {sentence}" for sentence, labels in new.items())


def some_of(labels: Sequence[str]) -> str:
    """Labels in words, of many only the first ones and how many others there are."""
    others = len(labels) - MOST_NAMED
    return ", ".join(labels) if others <= 0 else f"{', '.join(labels[:MOST_NAMED])} and {counted(others, 'other')}"


def conditions_of(molecules: Molecules) -> np.ndarray | None:
    """The encoded conditions of M molecules, float32 [M, C], NaN for what cannot be read; None: no conditions."""
    encoded = molecules.graphs.conditions
    if encoded is None:
        return None
    conditions = np.full((len(molecules.errors), encoded.shape[1]), np.nan, np.float32)
    conditions[molecules.rows] = encoded
    return conditions


def same_conditions(rows: TrainingRows | None, conditions: np.ndarray | None) -> Callable[[int, int], bool] | None:
    """Whether molecules, by their encoded conditions [M, C], have those of training rows; None: not known."""
    if rows is None or conditions is None or not len(rows.conditions):
        return None
    return lambda number, row: np.array_equal(conditions[number], rows.conditions[row])


def under_other_conditions(nearness: Nearness, matches: Callable[[int, int], bool] | None) -> list[str]:
    """``OTHER_CONDITIONS`` for each of M molecules whose nearest training molecule is such a one, "" for the others."""
    if matches is None:
        return [""] * len(nearness.molecule)
    assert nearness.row is not None
    neighbours = zip(nearness.row.tolist(), nearness.similarity.tolist(), nearness.molecule, strict=True)
    return [
        OTHER_CONDITIONS if row >= 0 and not matches(number, row) and is_in_training(*nearest) else ""
        for number, (row, *nearest) in enumerate(neighbours)
    ]


def nearness_to(
    domain: Domain,
    mols: Sequence[Chem.Mol | None],
    embeddings: np.ndarray | None,
    matches: Callable[[int, int], bool] | None = None,
    subsets: Sequence[np.ndarray] = (),
) -> tuple[Nearness, np.ndarray]:
    """The similarities of M molecules to the training molecules, with distances if there are embeddings [M, D].

    The second result has the largest similarities to the training molecules of each of S subsets: [M, S]."""
    similarity, rows, within = domain.nearest_rows(mols, matches, subsets)
    distance = np.full(len(mols), np.nan) if embeddings is None else domain.distance(embeddings)
    nearest = ["" if row < 0 else domain.smiles[row] for row in rows.tolist()]
    return Nearness(similarity, nearest, distance, rows), within


def limit_words(value: float, limit: AssayLimit, mol: Chem.Mol | None) -> str:
    """How to read a prediction near a limit of its assay; "" for any other prediction."""
    if mol is None or value != value:
        return ""
    if limit.unit == "uM":
        value = 1000 * 10**value / PROPERTIES["MolWt"](mol)
    if limit.side == "more":
        return "near the upper limit of the assay: read as at least" if value >= limit.value else ""
    return "near the lower limit of the assay: read as at most" if value <= limit.value else ""


def measured_unit(scale: Scale, description: str) -> str:
    """The unit behind a logarithm, from a card's description: "" for a ratio, ``UNKNOWN`` without a description."""
    if falls(scale):
        return unit_of(scale)
    before, _, unit = description.rpartition(", ")
    return unit if before else "" if description else UNKNOWN


def shown_unit(scale: Scale, description: str) -> str:
    """As ``measured_unit``, for people: of a percentage, it says whether it is the bound or the unbound fraction."""
    unit, fraction = measured_unit(scale, description), re.search(r"\b(un)?bound\b", description)
    return f"% {fraction.group()}" if unit == "%" and fraction else unit


def measured_words(value: float, scale: Scale, unit: str, low: float | None = None, high: float | None = None) -> str:
    """A prediction of a logarithm as the value itself, with its interval: "= 9.01 mL/min/kg (2.10 to 38.6)"."""

    def back(number: float) -> float:
        return float(measured(np.array([[number]]), [scale])[0, 0])

    words = f"= {significant(back(value))} {unit}".rstrip()
    if low is None or high is None:
        return words
    first, last = sorted((back(low), back(high)))
    return f"{words} ({significant(first)} to {significant(last)})"
