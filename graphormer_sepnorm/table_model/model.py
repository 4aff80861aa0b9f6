"""The model of a user's table as one object that saves, loads and predicts; ``fit`` creates it.

Axis letters: K members, M molecules, N training molecules, T targets."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError

from graphormer_sepnorm.chem.features import FEATURIZERS, Molecules, read_molecules
from graphormer_sepnorm.chem.fingerprints import BITS, known_kinds
from graphormer_sepnorm.config import Config, TaskConfig, first_problem
from graphormer_sepnorm.datasets.store import sha256_of_file
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import Output, share_trunks
from graphormer_sepnorm.predict.predictors import Embedder, Predictions, computed
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.predict.trust import Trust, calibrated, read_trust, trust_arrays
from graphormer_sepnorm.runs.arrays import array_digest, checked_array, load_format, save_arrays
from graphormer_sepnorm.runs.checkpoint import recorded_checksum
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.zoo import AssayLimit, read_card
from graphormer_sepnorm.system.workers import Smiles
from graphormer_sepnorm.table_model.features import Conditions, MoleculeFeatures, condition_values
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.base import Member
from graphormer_sepnorm.table_model.members.kernel import KernelMember
from graphormer_sepnorm.table_model.reference import damaged_arrays, read_shaped
from graphormer_sepnorm.table_model.stacking import SIGNS, Difficulty, Stacked
from graphormer_sepnorm.tables.prepared_table import TABLE, damaged
from graphormer_sepnorm.tables.rows import AskedConditions
from graphormer_sepnorm.tasks.scales import limited

FORMAT = 3
FEW_BEYOND = 3  # exact labels beyond the strongest bound from which on predictions there rest on labels
Fact = TypeVar("Fact")


@dataclass(repr=False)
class TableModel:
    """Members, averaged with weights that were fitted out of fold; it has the interface of ``Predictor``."""

    task: TaskConfig
    featurizer: str
    members: dict[str, Member]  # K members, by their names in ``MEMBERS``
    weights: np.ndarray  # float64 [K, T], as ``stacking_weights``
    trust: Trust | None = None
    difficulty: Difficulty | None = None
    conditions: Conditions = field(default_factory=Conditions)  # predictions require those of the molecule
    assay_limits: Mapping[str, AssayLimit] = field(default_factory=dict)  # from the card, as descriptions
    descriptions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kind, self.targets, self.classes = self.task.kind, self.task.targets, self.task.classes
        self.scales, self.offset, self.limits = self.task.scales, self.task.offset, self.task.limits
        share_trunks([network for network, _ in self.models])

    def __repr__(self) -> str:
        return f"TableModel({', '.join(self.member_weights)}; {', '.join(self.targets)})"

    @property
    def member_weights(self) -> list[str]:
        means = self.weights.mean(axis=1).tolist()
        return [f"{name} {weight:.2f}" for name, weight in zip(self.members, means, strict=True)]

    @property
    def asked_conditions(self) -> AskedConditions:
        fixed = {name: self.conditions.given[name] for name in self.conditions.names if name in self.conditions.given}
        return AskedConditions(self.conditions.asked, fixed)

    @property
    def embedder(self) -> Embedder:
        return Embedder(*(self.members.get("kernel") or self.members["networks"]).models[0])

    @property
    def models(self) -> list[tuple[Network, Config]]:
        return [pair for member in self.members.values() for pair in member.models]

    @property
    def device(self) -> torch.device:
        return self.embedder.device

    @property
    def num_parameters(self) -> int:
        return sum(parameter.numel() for network, _ in self.models for parameter in network.parameters())

    @property
    def gives_spread(self) -> bool:
        return self.difficulty is not None or len(self.members) > 1

    @property
    def digest(self) -> str:
        arrays = {f"{name}.{part}": each for name, own in self.members.items() for part, each in own.arrays().items()}
        fixed = {"given": dict(self.conditions.given)} if self.conditions.given else {}
        return array_digest(arrays | self.arrays(), self.facts() | fixed)

    @property
    def outputs(self) -> list[Output]:
        return [output for member in self.members.values() for output in member.outputs]

    def to(self, device: torch.device) -> "TableModel":
        for network, _ in self.models:
            network.to(device)
        return self

    def under(self, conditions: Mapping[str, object]) -> "TableModel":
        return replace(self, conditions=self.conditions.under(conditions))

    def predict(self, smiles: Smiles) -> Predictions:
        return self.compute(read_molecules(self.featurizer, smiles))

    def compute(self, molecules: Molecules) -> Predictions:
        molecules = self.ready(molecules)
        return self.predictions(molecules, computed(molecules, self.outputs))

    def ready(self, molecules: Molecules) -> Molecules:
        if not self.conditions.columns:
            return molecules
        values, _ = self.encoded(molecules)
        return replace(molecules, graphs=replace(molecules.graphs, conditions=values[molecules.rows]))

    def encoded(self, molecules: Molecules) -> tuple[np.ndarray, list[str]]:
        return self.conditions.encode_all(self.asked_of(molecules))

    def asked_of(self, molecules: Molecules) -> Sequence[tuple[str, ...]]:
        return (molecules.conditions if self.conditions.columns else []) or [()] * len(molecules.errors)

    def predictions(self, molecules: Molecules, outputs: list[np.ndarray]) -> Predictions:
        shape = (len(molecules.errors), len(self.targets))
        values = np.full(shape, np.nan, np.float64 if self.task.offset else np.float32)
        spread = np.full(shape, np.nan, np.float32)
        stacked = self.stacked(self.features(molecules, outputs))
        values[molecules.rows] = self.final(stacked.values)
        spread[molecules.rows] = stacked.spread
        warnings = self.trust.domain.warnings_on(molecules) if self.trust else [""] * len(molecules.errors)
        _, strange = self.encoded(molecules)
        errors = [error or other for error, other in zip(molecules.errors, strange, strict=True)]
        unknown = [place for place, error in enumerate(strange) if error]
        values[unknown], spread[unknown] = np.nan, np.nan
        return Predictions(values, spread, errors, self.conditions.add_warnings(warnings, self.asked_of(molecules)))

    def final(self, values: np.ndarray) -> np.ndarray:
        return limited(calibrated(values, self.trust), self.limits)

    def features(self, molecules: Molecules, outputs: list[np.ndarray]) -> MoleculeFeatures:
        shared: dict[Callable, Any] = {condition_values: self.encoded(molecules)[0][molecules.rows]}
        features = MoleculeFeatures([molecules.mols[row] for row in molecules.rows], shared, molecules.shared)
        rest = (output[molecules.rows] for output in outputs)
        for member in self.members.values():
            features.computed |= member.computed(list(islice(rest, len(member.outputs))))
        return features

    def stacked(self, molecules: MoleculeFeatures) -> Stacked:
        offset = np.array(self.task.offset or 0.0)
        by_member = np.stack([member.predict(molecules) for member in self.members.values()]) + offset
        stacked = Stacked.of(self.task, by_member, self.weights)
        if self.difficulty is None:
            return stacked
        similarity = similarity_to_training(self.members, molecules)
        return replace(stacked, spread=self.difficulty(stacked.spread, similarity))

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {"weights": self.weights, **({} if self.trust is None else trust_arrays(self.trust))}
        if difficulty := self.difficulty:
            arrays |= {"difficulty": difficulty.coefficients, "errors": difficulty.errors, "limits": difficulty.limits}
        return arrays

    def facts(self) -> dict:
        task = {name: value for name, value in asdict(self.task).items() if value or name != "offset"}
        facts = {"format": FORMAT, "members": list(self.members), "task": task, "featurizer": self.featurizer}
        columns = [column.facts() for column in self.conditions.columns]
        return facts | ({"conditions": {"columns": columns}} if columns else {})

    def save(self, folder: Path) -> None:
        for member in self.members.values():
            member.save(folder)
        parts = {"files": manifest(folder, self.members), "domain": BITS[-1:], "table": table_digest(folder)}
        save_arrays(RunFolder(folder).stack, self.arrays(), self.facts() | parts)

    @classmethod
    def load(cls, folder: Path) -> "TableModel":
        """Reads what ``save`` wrote, onto the device of ``device.current``; raises InputError for a damaged folder."""
        run = RunFolder(folder)
        arrays, facts = load_format(run.stack, FORMAT)
        known_kinds(facts, run.stack, BITS[:1], BITS, "domain")
        names, featurizer = facts.get("members"), facts.get("featurizer")
        task = read_fact(TaskConfig, facts.get("task"), "task", run.stack)
        if not (isinstance(names, list) and names and set(names) <= MEMBERS.keys() and featurizer in FEATURIZERS):
            raise InputError(f"{run.stack} names members or features that this release does not have")
        check_files(folder, names, facts.get("files"))
        sizes, difficulty = {"K": len(names), "T": len(task.targets), "S": 1 + SIGNS, "E": 2}, None
        (weights,) = read_shaped(arrays, {"weights": (np.float64, "KT")}, sizes, run.stack)
        if "difficulty" in arrays:
            errors = checked_array(arrays, "errors", np.float64, 2, run.stack, finite=False)
            shapes = {"difficulty": (np.float64, "ST"), "limits": (np.float64, "ET")}
            coefficients, limits = read_shaped(arrays, shapes, sizes, run.stack)
            difficulty = Difficulty(coefficients, errors, limits)
        trust = read_trust(arrays, run.stack)
        members: dict[str, Member] = {}
        for name in names:
            members[name] = MEMBERS[name].load(folder, members)
        conditions = read_fact(Conditions, facts.get("conditions", {"columns": []}), "conditions", run.stack)
        model, card = cls(task, featurizer, members, weights, trust, difficulty, conditions), read_card(folder)
        model.assay_limits = card.limits if card else strongest_bounds(task.targets, trust.rows if trust else None)
        model.descriptions = card.descriptions if card else {}
        fits = trust is None or trust.fits(len(task.targets), model.embedder.width)
        if not fits or (weights < 0).any() or (difficulty and not difficulty.fits(len(task.targets))):
            raise InputError(damaged_arrays(run.stack))
        return model


def manifest(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The checksum of each file of members, by its path in the folder; "" for a missing file."""
    files = [file for name in names for file in MEMBERS[name].files(folder)]
    return {file.relative_to(folder).as_posix(): recorded_checksum(file) if file.exists() else "" for file in files}


def table_digest(folder: Path) -> str:
    return sha256_of_file(folder / TABLE) if (folder / TABLE).exists() else ""


def check_table(folder: Path) -> None:
    _, facts = load_format(RunFolder(folder).stack, FORMAT)
    if facts.get("table", "") not in ("", table_digest(folder)):
        raise InputError(damaged(folder / TABLE))


def check_files(folder: Path, names: Sequence[str], listed: object) -> None:
    """Raises InputError unless the files of the members are those whose ``manifest`` was ``listed``."""
    if not isinstance(listed, dict):
        raise InputError(f"{RunFolder(folder).stack} is damaged: it does not list the files of its model")
    files = manifest(folder, names)
    for name in [*files, *listed]:
        if listed.get(name) != files.get(name):
            problem = "is not the file that was saved with the model" if (folder / name).exists() else "is missing"
            advice = "copy the whole folder again, or continue its training with --resume"
            raise InputError(f"{folder / name} {problem}: {advice}")


def strongest_bounds(targets: Sequence[str], rows: TrainingRows | None) -> dict[str, AssayLimit]:
    """The strongest bound of each target beyond which few exact labels are; of both sides, that with more bounds."""
    limits: dict[str, AssayLimit] = {}
    known = zip(targets, rows.sorted_labels, rows.sorted_bounds, strict=True) if rows else ()
    for name, exact, (lower, upper) in known:
        if len(lower) > len(upper) and (exact > lower[-1]).sum() < FEW_BEYOND:
            limits[name] = AssayLimit(float(lower[-1]), "more")
        elif len(upper) >= max(len(lower), 1) and (exact < upper[0]).sum() < FEW_BEYOND:
            limits[name] = AssayLimit(float(upper[0]), "less")
    return limits


def similarity_to_training(members: dict[str, Member], molecules: MoleculeFeatures) -> np.ndarray:
    """Kernel similarities of molecules to the training molecules: [M, N]; [M, 0] without a kernel."""
    kernel = members.get("kernel")
    if isinstance(kernel, KernelMember):
        return molecules.of(kernel.reference.similarity)
    return np.zeros((len(molecules), 0))


def read_fact(kind: type[Fact], value: object, name: str, path: Path) -> Fact:
    try:
        return TypeAdapter(kind).validate_json(json.dumps(value))
    except ValidationError as error:
        raise InputError(f"{path} is damaged: its {name} cannot be read: {first_problem(error)}") from None
