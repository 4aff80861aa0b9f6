"""Results of the worker, as the page and its JSON show them."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from graphormer_sepnorm.config import Scale
from graphormer_sepnorm.dataset import SplitName
from graphormer_sepnorm.errors import InputError, did_you_mean
from graphormer_sepnorm.options import declared
from graphormer_sepnorm.output.columns import chosen_endpoints
from graphormer_sepnorm.predict.classes import check_confidence
from graphormer_sepnorm.predict.intervals import ranks_of
from graphormer_sepnorm.tables.formats.table import Row
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.writers.base import ColumnKind

Content = Literal["SMILES", "numbers", "classes", "texts"]
JobState = Literal["waiting", "computing", "done", "cancelled", "failed"]


def said(default: Any, description: str) -> Any:
    """A field that may be missing, with its description for programs."""
    return Field(default=default, description=description)


class ColumnFacts(BaseModel):
    """A column of predictions."""

    name: str = Field(description="in the CSV")
    place: list[str] = Field(description="the names that lead to its cell in the JSON of a row")
    kind: ColumnKind = said("number", "of its cells; precise numbers have twelve digits in the CSV")


class ConditionFacts(BaseModel):
    """A condition of the measurements that a model was trained on, such as a temperature."""

    model_config = ConfigDict(from_attributes=True)

    name: str = Field(description="the column of a table")
    choices: list[str] = Field(description="the words or the few numbers of the training rows; empty for many numbers")
    low: float | None = said(None, "the least number of the training rows, where it is known")
    high: float | None = said(None, "the largest one")


class EndpointFacts(BaseModel):
    """Facts about a target."""

    description: str = said("", "what it is, with its scale and unit; empty if that is not known")
    scale: Scale = said("", "of the predictions, such as log10; empty: as measured")
    unit: str = said("", "of the values behind a logarithm; 'in the unit of the table' if not known")
    molecules: int | None = said(None, "how many training molecules have a label, where known")
    positives: float | None = said(None, "the share of class 1 among them")
    group: str = said("", "heading that it is listed under, such as Absorption")
    direction: str = said("", "whether 'higher' or 'lower' values are better; empty: it depends")
    score: float | None = said(None, "of a shipped model on test molecules; see 'metric'")
    metric: str = said("", "name of the metric of 'score'")
    source: str = said("", "of its training data")
    licence: str = said("", "of its training data")
    trust: str = said("", "when not to trust its predictions")
    frequent: tuple[float, float] | None = said(None, "most frequent training label, its share if >= 0.25")
    limit: str = said("", "predictions near a limit of the assay, such as '0.8 or less'")
    rmse_out_of_fold: float | None = said(None, "of a shipped model, where its card has it")
    test: float | None = said(None, "score on the test molecules, where it is known")
    test_interval: tuple[float, float] | None = said(None, "95 % interval of that score")
    test_molecules: int | None = said(None, "how many test molecules have a label")


class ModelFacts(BaseModel):
    """Facts about the models."""

    model: str = Field(description="name of the model; of several, joined by +")
    names: list[str] = said([], "of several models, their names; a prediction may be of some of them")
    targets: list[str]
    is_probability: bool = Field(description="whether predictions are probabilities")
    classes: dict[str, tuple[str, ...]] = said({}, "names of classes 0 and 1 by target; predictions are of the second")
    class_names: dict[str, str] = said({}, "if the targets are the classes of one column, their names by target")
    models: int = Field(description="how many networks predict")
    confidence: float | None = Field(description="usual one of intervals or sets of classes; null where there are none")
    calibration_molecules: int | None = said(None, "labels that intervals were calibrated on, the fewest of a target")
    missing: dict[str, str] = said({}, "why the options interval and domain cannot be used")
    knows_domain: bool = Field(description="whether molecules are compared with the training molecules")
    decimals: dict[str, int] = said({}, "of the training labels, by target, where known")
    conditions: list[ConditionFacts] = said([], "of measurements, which predictions depend on")
    endpoints: dict[str, EndpointFacts] = said({}, "what is known of each target")
    compared_by: dict[str, str] = said({}, "by target, which of several models compares molecules for it")
    about: dict[str, str] = Field(description="architecture, training data and scores")

    @property
    def usual_options(self) -> "Options":
        return Options(interval=self.confidence, domain=self.knows_domain, alerts=True, properties=True)

    def endpoint(self, target: str) -> EndpointFacts:
        return self.endpoints.get(target, EndpointFacts())

    def check(self, options: "Options") -> None:
        """Raises InputError for options and conditions that the models do not have."""
        names = [condition.name for condition in self.conditions]
        for name in set(options.conditions) - set(names):
            read = f"its conditions are {', '.join(names)}" if names else "it reads none"
            raise InputError(f"{name} is not a condition of the model: {read}{did_you_mean(name, names)}")
        parts = [f"{name}_" for name in self.names]
        if unknown := set(options.models) - set(self.names):
            raise InputError(f"unknown models {', '.join(sorted(unknown))}, choose of {', '.join(self.names) or 'one'}")
        known = [vars(self.endpoint(each)) for each in self.targets]
        chosen_endpoints(options.endpoints, [{each, *map(each.removeprefix, parts)} for each in self.targets], known)
        for option, sentence in self.missing.items():
            if getattr(options, option) not in (None, False):
                raise InputError(sentence)
        if options.interval is not None and self.is_probability:
            check_confidence(options.interval)
        elif options.interval is not None and self.calibration_molecules is not None:
            ranks_of(options.interval, np.array([self.calibration_molecules]))


class TargetPrediction(BaseModel):
    """A target of a molecule."""

    value: float = Field(description="on the target's own scale, or a probability")
    unlogged: float | None = said(None, "the value without its logarithm, in the table's unit, if any")
    std: float | None = said(None, "of a table model's regression, of the error; else over members or networks")
    low: float | None = said(None, "lower end of the interval")
    high: float | None = said(None, "upper end of the interval")
    unlogged_low: float | None = said(None, "lower end of the interval around 'unlogged'")
    unlogged_high: float | None = said(None, "upper end of the interval around 'unlogged'")
    class_name: float | str | None = said(None, "of two classes, the one of probability 0.5 or more")
    set: str | None = said(None, "the class, or both, at the confidence of the sets")
    percentile: float | None = said(None, "how many of 100 training values are lower")
    percentile_low: float | None = said(None, "the fewest that can be lower; null if no training label is a bound")
    percentile_high: float | None = said(None, "the most that can be lower")
    drugs: float | None = said(None, "how many of 100 approved drugs have a lower prediction")
    drugs_low: float | None = said(None, "the same of the lower end of the interval")
    drugs_high: float | None = said(None, "the same of the upper end")
    drugs_nearest: float | None = said(None, "the same of 'nearest', if that is a number")
    nearest: float | str | None = said(None, "measured of the nearest training molecule, or its class")
    nearest_bound: str | None = said(None, "its censored label, such as <-6.5")
    limit: str | None = said(None, "how to read a value near a limit of the assay; null without a limit")

    @property
    def width(self) -> float | None:
        return None if self.low is None or self.high is None else self.high - self.low


class MoleculePrediction(BaseModel):
    """The predictions for a molecule."""

    error: str = said("", "why there is no prediction; empty where there is one")
    predictions: dict[str, TargetPrediction] = said({}, "by target")
    conditions: dict[str, float | str] = said({}, "of the measurement that is predicted")
    class_name: str = said("", "of several classes, the most probable one")
    class_set: str = said("", "of several classes, those that it may be of at the confidence")
    nearest: str = said("", "SMILES of the nearest training molecule; empty if it was not kept")
    nearest_id: str = said("", "what that molecule is called; empty if that is not known")
    similarity: float | None = said(None, "Tanimoto, to that training molecule")
    in_training: bool = said(False, "whether that training molecule is this molecule")
    cls_distance: float | None = said(None, "smallest distance to a training molecule in the model's space")
    warning: str = said("", "what the training molecules did not have")
    models: dict[str, dict[str, str | float | bool | None]] = said({}, "of several, their comparisons by name")
    alerts: str = said("", "parts that often disturb assays, react or are toxic")
    properties: dict[str, float | None] = said({}, "basic properties, by RDKit's names")


class Atom(BaseModel):
    """An atom of a molecule, in the order of its SMILES."""

    symbol: str
    contribution: float


class Fragment(BaseModel):
    """A part of a molecule."""

    smiles: str
    atoms: list[int] = Field(description="their numbers, from 0 on, in the order of the SMILES of the molecule")
    contribution: float = Field(description="the sum of those of its atoms")


class AtomContributions(BaseModel):
    """The atoms that a prediction depends on."""

    caption: str
    meaning: str = Field(description="what the contributions are")
    baseline: float | None = Field(description="what the contributions start from")
    start: str = Field(description="what has the baseline as its prediction")
    decimals: int = said(3, "of contributions and baseline, for people")
    atoms: list[Atom]
    fragments: list[Fragment] = Field(description="the largest contribution of either sign first")
    picture: str = Field(description="SVG")


class TrainingChoice(BaseModel):
    """The options of the command ``train`` that the page offers, as fields of a form."""

    targets: list[str] = []  # empty: the only one that is left
    feature_columns: list[str] = []
    task: Literal["", "regression", "classification"] = ""
    sheet: str = ""  # of a workbook
    smiles_column: str = ""
    decimal: Literal["", "point", "comma"] = ""
    scale: Literal["", "log10", "M", "mM", "uM", "nM", "pM"] = ""  # a unit: -log10 of concentrations in it
    split: SplitName = TableOptions.split
    split_column: str = ""
    parents: bool = False
    quick: bool = True

    def given(self) -> dict[str, Any]:
        """The fields of ``TableOptions`` that are chosen."""
        fields = self.model_dump(exclude={"task", "scale", "parents", "quick"}, exclude_defaults=True)
        if self.split not in ("column", "time"):
            fields.pop("split_column", None)
        if self.parents:
            fields["standardize"] = "parent"
        if self.scale:
            is_log10 = self.scale == "log10"
            fields["log10" if is_log10 else "negative_log_molar"] = self.targets if is_log10 else [self.scale]
        return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}

    def arguments(self) -> list[str]:
        """The same as arguments of the command."""
        fields, words = self.given(), ["--task", self.task] if self.task else []
        for each in declared(TableOptions):
            if value := fields.get(each.field):
                values = value if isinstance(value, tuple) else (value,)
                dashed = any(text.startswith("-") for text in values)
                words += [f"{each.name}={text}" for text in values] if dashed else [each.name, *values]
        return [*words, *["--quick"] * self.quick]


@dataclass(frozen=True)
class LookedColumn:
    """A column of a table to train on; ``filled`` cells are not empty."""

    name: str
    content: Content = "texts"
    filled: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LookedTarget:
    """The labels of a prediction: how many are exact and how many bounds, their unit, and their range or classes."""

    name: str
    labels: int
    bounds: int
    unit: str
    values: str


@dataclass(frozen=True)
class TableLook:
    """How the command ``train`` understands a table, or the problem; ``reasons`` are of its first skipped rows.

    Rows are numbered as a spreadsheet does it: the header is row 1.
    """

    columns: list[LookedColumn]
    rows: int = 0
    smiles_column: str = ""
    chosen: list[str] = field(default_factory=list)
    targets: list[LookedTarget] = field(default_factory=list)
    splits: dict[str, int] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)
    skipped: int = 0
    reasons: list[tuple[int, str, str]] = field(default_factory=list)
    problem: str = ""
    sheets: list[str] = field(default_factory=list)  # of a workbook


class Problem(BaseModel):
    """Why a request was not answered."""

    detail: str = Field(description="one sentence")


class FormOptions(BaseModel):
    """The columns to add, as the options of the command ``predict``."""

    interval: float | None = said(None, "confidence, such as 0.9, of intervals or of sets of classes")
    domain: bool = said(False, "compare molecules with the training molecules")
    alerts: bool = said(False, "name structural alerts (PAINS, Brenk)")
    properties: bool = said(False, "add molecular weight, logP, TPSA and others")
    endpoints: list[str] = said([], "targets, by name or a pattern such as CYP3A4*; empty: all")
    models: list[str] = said([], "names of those of several models that predict; empty: all")


class Options(FormOptions):
    """The same with conditions."""

    model_config = ConfigDict(extra="forbid")

    conditions: dict[str, str] = said({}, "of all molecules, by column; a column of the table wins")


class SmilesList(Options):
    """Molecules to predict."""

    smiles: list[str | None] = Field(min_length=1, description="null: none", examples=[["CCO", "c1ccccc1O"]])


class JobStatus(BaseModel):
    """How far a table is."""

    id: str = Field(description="the table's, for the other addresses")
    state: JobState
    problem: str = Field(description="why it failed")
    rows: int = Field(description="in the table; 0 until it is read")
    done: int
    unreadable: int = Field(description="rows so far without a prediction")
    warned: int = said(0, "rows so far with a warning; 0 without the option domain")
    columns: list[str] = said([], "of the table")
    smiles_column: str = said("", "the one of the SMILES; empty if none was found")


class RowPrediction(MoleculePrediction):
    """A row of a table with its answer."""

    row: int = Field(description="from 0")
    smiles: str
    fields: dict[str, str] = Field(description="what the row had, by column")


@dataclass(frozen=True)
class TableRow(Row):
    """A row of a table as it was read; bytes that are not UTF-8 are surrogates, as ``surrogateescape`` has them."""

    conditions: tuple[str, ...] = ()


@dataclass
class TableRows:
    """A whole table as it was read, with the columns of its predictions, or the problem why it has none."""

    columns: list[str] = field(default_factory=list)
    rows: list[TableRow] = field(default_factory=list)
    smiles_column: str = ""  # "" if there is none
    added: list[ColumnFacts] = field(default_factory=list)
    problem: str = ""
    header: int = 0  # lines above the first row
    delimiter: str = ""
    about: list[tuple[str, str]] = field(default_factory=list)  # pairs of texts on the predictions, for a workbook
    sheets: dict[str, list[str]] = field(default_factory=dict)  # the columns of each sheet, if none has molecules
