"""Computations of the worker process: tables, predictions and pictures."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rdkit import Chem

from graphormer_sepnorm.chem.features import Sample, read_molecules
from graphormer_sepnorm.chem.smiles import one_molecule, read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.pictures import draw, plain_svg
from graphormer_sepnorm.interfaces.web import reading, schemas
from graphormer_sepnorm.interfaces.web.schemas import ColumnFacts, EndpointFacts, MoleculePrediction, Options, TableRow
from graphormer_sepnorm.options import Answers
from graphormer_sepnorm.output.column import condition_value, shown_decimals, two_classes
from graphormer_sepnorm.output.columns import OF_CONDITION, PredictionColumns
from graphormer_sepnorm.output.resumable_writer import job_digest
from graphormer_sepnorm.predict.describing import shown_unit
from graphormer_sepnorm.predict.domain import is_in_training
from graphormer_sepnorm.predict.predictors import PredictingModel, Predictions
from graphormer_sepnorm.predict.side_by_side import SideBySide, by_target, parts_of
from graphormer_sepnorm.predict.training_rows import Drugs
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.info import shown_facts
from graphormer_sepnorm.runs.zoo import card_endpoints, resolve_model
from graphormer_sepnorm.system.device import Compute, choose, computing, current
from graphormer_sepnorm.system.workers import one_thread
from graphormer_sepnorm.table_model.evaluate import about_models, describe_any, unfinished_words
from graphormer_sepnorm.table_model.explain import explain_rows
from graphormer_sepnorm.table_model.load import load_predicting_model
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.tasks import TASKS

PICTURE = 220, 120  # width and height
MOST_ATOMS_OF_PICTURE = 30  # larger molecules have a picture as large as they need
MOST_ATOMS_DRAWN = 200


@dataclass(frozen=True)
class PredictionService:
    predictor: PredictingModel
    confidence: float  # of the intervals
    compute: Compute
    name: str  # what the page calls the models
    about: dict[str, str]  # facts for people
    endpoints: dict[str, EndpointFacts] = field(default_factory=dict)  # what cards and scores say of the targets
    origin: list[tuple[str, str]] = field(default_factory=list)  # as ``about_models``, for workbooks

    look = staticmethod(reading.look_at_table)

    @cached_property
    def identity(self) -> str:
        """A digest of the models."""
        return job_digest(self.predictor, (), self.predictor.featurizer, self.predictor.digest)

    def columns(self, options: Options) -> PredictionColumns:
        """The columns of each molecule; raises InputError for options that the models do not support."""
        endpoints = tuple(options.endpoints)
        if options.models and isinstance(several := self.predictor, SideBySide):
            places = PredictionColumns(several, Answers(endpoints=endpoints)).places
            endpoints = tuple(several.labels[at][of] for at, of in places if several.parts[at].name in options.models)
            if not endpoints:
                raise InputError(f"{', '.join(options.models)} predicts none of the chosen endpoints")
        answers = Answers(options.interval, options.domain, options.alerts, options.properties, endpoints)
        return PredictionColumns(self.predictor, answers)

    def added(self, options: Options) -> list[ColumnFacts]:
        columns = self.columns(options).all
        return [ColumnFacts(name=each.name, place=list(each.place), kind=each.kind) for each in columns]

    def facts(self) -> schemas.ModelFacts:
        predictor, parts = self.predictor, parts_of(self.predictor)
        trusts = [model.trust for model in parts]
        intervals = [trust.intervals for trust in trusts if trust and trust.intervals]
        has_confidence = all(trust and (trust.intervals or trust.class_sets) for trust in trusts)
        tables = [model for model in parts if isinstance(model, TableModel)]
        conditions = {each.name: each for model in tables for each in model.conditions.columns}.values()
        names, classes = list[str](), tuple[str, ...]()
        compared, missing, endpoints = {}, {}, {}
        if isinstance(predictor, SideBySide):
            names = [part.name for part in predictor.parts]
            places = zip(predictor.targets, predictor.places, strict=True)
            compared = {target: names[predictor.first_of_domain[part]] for target, (part, _) in places}
        elif TASKS[predictor.kind].adds_up:
            (classes,) = predictor.classes
        for name, value in (("interval", self.confidence), ("domain", True)):
            try:
                self.columns(Options.model_validate({name: value}))
            except InputError as error:
                missing[name] = str(error)
        for target, facts in by_target(predictor, facts_of_labels).items():
            endpoint = self.endpoints.get(target, EndpointFacts())
            unit = shown_unit(facts["scale"], endpoint.description) if facts["scale"] else ""
            endpoints[target] = endpoint.model_copy(update=facts | {"unit": unit})
        return schemas.ModelFacts(
            model=self.name,
            names=list(dict.fromkeys(names)),  # a panel has one name
            targets=list(predictor.targets),
            is_probability=all(TASKS[model.kind].predicts_probabilities for model in parts),
            classes=two_classes(predictor),
            class_names=dict(zip(predictor.targets, classes, strict=False)),
            models=len(predictor.models),
            confidence=self.confidence if has_confidence else None,
            calibration_molecules=min((int(each.counts.min()) for each in intervals), default=None),
            missing=missing,
            knows_domain="domain" not in missing,
            decimals=shown_decimals(predictor),
            conditions=[schemas.ConditionFacts.model_validate(each) for each in conditions],
            endpoints=endpoints,
            compared_by=compared,
            about=self.about,
        )

    def read(
        self, path: Path, title: str, most_rows: int, options: Options, smiles_column: str, sheet: str = ""
    ) -> schemas.TableRows:
        """As ``read_table``, with conditions and the columns of predictions; InputError for what is missing."""
        added = self.added(options)
        table, problem = reading.read_table(path, title, smiles_column, most_rows, sheet)
        names = self.predictor.asked_conditions.columns
        rows = reading.under_conditions(table, names, options.conditions, title)
        taken = {column.name for column in added}
        of_form = {name: name + OF_CONDITION * (name in taken) for name in names if name not in table.columns}
        added = [*(ColumnFacts(name=each, place=["conditions", name]) for name, each in of_form.items()), *added]
        smiles_column = "" if problem else table.columns[table.smiles_place]
        about = [(name, str(date.today()) if name == "on" else text) for name, text in self.origin]
        about += self.columns(options).about
        parts = added, problem, table.header, table.delimiter, about, reading.sheets_of(path) if problem else {}
        return schemas.TableRows(table.columns, rows, smiles_column, *parts)

    def predict(self, rows: list[TableRow], options: Options) -> list[MoleculePrediction]:
        """An answer for each row; one that cannot be read costs only itself."""
        columns = self.columns(options)
        samples = [Sample(row.smiles, row.conditions) if row.conditions else row.smiles for row in rows]
        with computing(self.compute), one_thread():
            predictions = columns.reader.compute(read_molecules(self.predictor.featurizer, samples))
        answers = as_answers(columns, predictions)
        names = self.predictor.asked_conditions.columns
        for row, answer in zip(rows, answers, strict=True):
            answer.conditions = dict(zip(names, map(condition_value, row.conditions), strict=False))
            for near in answer.models.values():
                one = MoleculePrediction.model_validate(near)
                near["in_training"] = is_in_training(one.similarity, one.nearest, one.warning)
            if answer.models:
                told = (f"{name}: {near['warning']}" for name, near in answer.models.items() if near["warning"])
                answer.warning = " ".join(told)
            answer.in_training = is_in_training(answer.similarity, answer.nearest, answer.warning)
            for target, (drugs, own) in self.drugs.items():
                for name in ("low", "high", "nearest") if target in answer.predictions else ():
                    if isinstance(value := getattr(answer.predictions[target], name), float):
                        place = drugs.percentiles(np.array([value]), own).item()
                        setattr(answer.predictions[target], f"drugs_{name}", place)
        return answers

    @cached_property
    def drugs(self) -> dict[str, tuple[Drugs, str]]:
        """The predictions of approved drugs with the name of the target in them, by target, where they are known."""
        if not isinstance(several := self.predictor, SideBySide):
            return {}
        known = [{own: (part.drugs, own) for own in part.drugs.targets} if part.drugs else {} for part in several.parts]
        return several.labelled(known)

    def structure(self, smiles: str) -> str:
        mol = read_small(smiles)
        size, bond_length = (PICTURE, 26) if mol.GetNumAtoms() <= MOST_ATOMS_OF_PICTURE else ((-1, -1), 20)
        with one_molecule(smiles):
            return plain_svg(mol, size, bond_length)

    def atoms(self, smiles: str, target: str, conditions: tuple[str, ...] = ()) -> schemas.AtomContributions:
        """Contributions to what is predicted under conditions; raises InputError as ``explain_rows``."""
        read_small(smiles)
        sample = Sample(smiles, conditions) if conditions else smiles
        with computing(self.compute), current().arithmetic():
            decimals = shown_decimals(self.predictor)
            explanation = explain_rows(self.predictor, [sample], target=target, decimals=decimals)[0]
        if isinstance(explanation, InputError):
            raise explanation
        atoms = zip(read_small(explanation.smiles).GetAtoms(), explanation.contributions.tolist(), strict=True)
        answer = {name: getattr(explanation, name) for name in ("caption", "meaning", "baseline", "start", "fragments")}
        answer["atoms"] = [{"symbol": atom.GetSymbol(), "contribution": value} for atom, value in atoms]
        answer |= {"decimals": explanation.shown_decimals, "picture": draw([explanation], ".svg").decode()}
        return schemas.AtomContributions.model_validate(answer, from_attributes=True)


def as_answers(columns: PredictionColumns, predictions: Predictions) -> list[MoleculePrediction]:
    answers: list[dict] = [{} for _ in predictions.errors]
    for column, cells in zip(columns.all, columns.cells(predictions, predictions.errors), strict=True):
        *outer, last = column.place
        for answer, value in zip(answers, cells.tolist() if isinstance(cells, np.ndarray) else cells, strict=True):
            value = value if value == value else None  # NaN
            reduce(lambda inner, name: inner.setdefault(name, {}), outer, answer)[last] = value
    return [MoleculePrediction(**{"error": each["error"]} if each["error"] else each) for each in answers]


def read_small(smiles: str) -> Chem.Mol:
    """A molecule that can be drawn; raises InputError for another."""
    mol = read_smiles(smiles)
    if mol.GetNumAtoms() > MOST_ATOMS_DRAWN:
        raise InputError(f"the molecule has {mol.GetNumAtoms():,} atoms; at most {MOST_ATOMS_DRAWN} are drawn")
    return mol


def load_service(
    names: list[str], confidence: float, device: str, precision: Literal["auto", "float32", "bfloat16"]
) -> PredictionService:
    compute, place = choose(device, precision), resolve_model(names[0])
    with computing(compute):
        predictor = load_predicting_model(names)
    described = describe_any(place)
    cards = predictor.endpoints if isinstance(predictor, SideBySide) else card_endpoints(place)
    endpoints = {target: EndpointFacts(**facts) for target, facts in cards.items()}
    if len(names) == 1 and not endpoints:
        endpoints = scored_endpoints(predictor.targets, described)
    name = " + ".join(Path(name).name.removesuffix(".safetensors") for name in names)
    about = shown_facts(described)
    if words := unfinished_words(RunFolder(place)):
        about["training"] = words
    origin = [(key, Path(text).name if key == "model" else text) for key, text in about_models(names)]
    models = PredictionService(predictor, confidence, compute, name, about, endpoints, origin)
    warm_up(models)
    return models


def facts_of_labels(model: PredictingModel) -> dict[str, dict[str, Any]]:
    """By target its scale, how many training molecules have a label, and the most frequent label, where known."""
    rows, unknown = model.trust.rows if model.trust else None, [None] * len(model.targets)
    has_values = not TASKS[model.kind].predicts_probabilities  # which have no percentiles among the labels
    known = {
        "scale": model.scales or [""] * len(model.targets),
        "molecules": rows.labelled if rows else unknown,
        "frequent": rows.frequent if rows and has_values else unknown,
    }
    return {target: {name: each[at] for name, each in known.items()} for at, target in enumerate(model.targets)}


def scored_endpoints(targets: Sequence[str], described: dict) -> dict[str, EndpointFacts]:
    if not (scores := described.get("test_scores")):
        return {targets[0]: EndpointFacts(test=described["test"])} if len(targets) == 1 else {}
    return {
        target: EndpointFacts(test=one["value"], test_interval=one["interval"], test_molecules=one["molecules"])
        for target, one in scores.items()
        if target in targets
    }


def warm_up(models: PredictionService) -> None:
    """Predicts a molecule with all options, so that compiling does not count against a user's time."""
    facts = models.facts()
    conditions = tuple([*each.choices, str(each.low or 0)][0] for each in facts.conditions)
    models.predict([TableRow(["C"], "C", conditions=conditions)], facts.usual_options)
