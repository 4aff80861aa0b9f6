"""Kernel machines on similarities by count fingerprints, descriptors and embeddings of the foundation model.

Axis letters: M molecules, N training molecules, T targets."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from graphormer_sepnorm.chem.count_fingerprints import known_kinds
from graphormer_sepnorm.chem.fast_descriptors import VERSIONS
from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.classes import Calibration, fit_calibration
from graphormer_sepnorm.predict.forward import Output
from graphormer_sepnorm.predict.predictors import load_embedder
from graphormer_sepnorm.runs.arrays import load_format, save_arrays
from graphormer_sepnorm.runs.checkpoint import save_model
from graphormer_sepnorm.system.progress import tracked
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import CannotLearn, Folds, Labels
from graphormer_sepnorm.table_model.machines import Compared, Machines, completed, fit_machines
from graphormer_sepnorm.table_model.members.base import Fitted, Member, Setting, WithoutNetworks
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from graphormer_sepnorm.table_model.reference import (
    BODY,
    MOST_ROWS,
    SHARES,
    Encoder,
    Reference,
    Space,
    body_named,
    damaged_arrays,
    landmarks,
    read_shaped,
)
from graphormer_sepnorm.tasks import TASKS

KERNEL, BODY_FILE, TUNED = "kernel.safetensors", "body.safetensors", "tuned_kernel.safetensors"
FORMAT, TUNED_FORMAT = 3, 1
EMBEDDINGS = 2  # index of the embeddings among the groups of similarities
Shapes = dict[str, tuple[type, str]]  # types and axes of arrays
MACHINES: Shapes = {"weights": (np.float64, "GT"), "coefficients": (np.float64, "NT"), "intercept": (np.float64, "T")}
EMBEDDED: Shapes = {"embeddings": (np.float32, "RND"), "mean": (np.float32, "RD"), "scale": (np.float32, "RD")}


@dataclass(frozen=True)
class KernelMember:
    share: ClassVar = 0.55

    reference: Reference
    machines: Machines
    calibration: Calibration | None = None  # of decisions to probabilities of a classification

    @classmethod
    def words(cls, task: TaskConfig, molecules: int) -> str:
        compared = "molecules by fingerprints, descriptors and a pretrained network"
        if TASKS[task.kind].predicts_probabilities or molecules > MOST_ROWS:
            return f"a Gaussian process that compares {compared}"
        return f"the mean of two methods, a Gaussian process and a support vector machine, that compare {compared}"

    @classmethod
    def fit(cls, molecules: MoleculeFeatures, labels: Labels, folds: Folds, setting: Setting) -> Fitted:
        """As ``Member.fit``; embeds with the networks' pretrained model, and uses landmarks if molecules are many."""
        body = body_of(setting.config)
        numbers = landmarks(len(molecules))
        reference = Reference.of(molecules.take(numbers) if len(numbers) < len(molecules) else molecules, body)
        compared = Compared(molecules.of(reference.similarities), numbers)
        decisions = np.full_like(labels.y, np.nan)
        parts, known = list(folds.parts()), []
        for learnt, predicted in tracked(parts, len(parts) + 1, 0.5):
            known.append(completed(compared, labels, learnt))
            decisions[predicted] = fit_machines(compared, known[-1], learnt)(compared.similarities[predicted])
        calibration = calibration_of(labels, decisions, folds.predicted)
        every = np.arange(len(labels))
        known.append(completed(compared, labels, every))
        member = cls(reference, fit_machines(compared, known[-1], every), calibration)
        return Fitted(member, as_values(decisions, calibration), remark(numbers, labels, folds), tuple(known))

    def predict(self, molecules: MoleculeFeatures) -> np.ndarray:
        return as_values(self.machines(molecules.of(self.reference.similarities)), self.calibration)

    @property
    def models(self) -> list[tuple[Network, Config]]:
        return self.reference.body.embedder.models

    @property
    def outputs(self) -> list[Output]:
        return [self.reference.body.embedder.output]

    def computed(self, outputs: list[np.ndarray]) -> dict[Callable, np.ndarray]:
        return {self.reference.body: outputs[0]}

    def arrays(self) -> dict[str, np.ndarray]:
        machines = {name: getattr(self.machines, name) for name in MACHINES}
        return self.reference.arrays() | machines | calibration_arrays(self.calibration)

    @classmethod
    def files(cls, folder: Path) -> list[Path]:
        return [folder / KERNEL, folder / BODY_FILE]

    def save(self, folder: Path) -> None:
        save_model(folder / BODY_FILE, *self.models[0], {})
        facts = {"format": FORMAT, "kinds": self.reference.kinds, "descriptors": VERSIONS[-1:]}
        save_arrays(folder / KERNEL, self.arrays(), facts)

    @classmethod
    def load(cls, folder: Path, members: dict[str, Member]) -> "KernelMember":
        path = folder / KERNEL
        arrays, facts = load_format(path, FORMAT)
        kinds = known_kinds(facts, path)
        known_kinds(facts, path, VERSIONS[:1], VERSIONS, "descriptors")
        reference = Reference.from_arrays(arrays, Encoder(load_embedder(str(folder / BODY_FILE))), kinds, path)
        sizes = {"N": reference.counts.shape[0], "G": len(SHARES)}
        machines = Machines(*read_shaped(arrays, MACHINES, sizes, path))
        return cls(reference, machines, read_calibration(arrays, sizes, path))


def fit_tuned(
    kernel: KernelMember,
    molecules: MoleculeFeatures,
    embeddings: np.ndarray,
    labels: Labels,
    learnt: np.ndarray,
    predicted: np.ndarray,
) -> tuple[Space, Machines, np.ndarray]:
    """A fine-tuned network's space, the machines of a fold in it, and their decisions for the ``predicted``."""
    numbers = landmarks(len(molecules))
    space = Space.of(embeddings[numbers])
    similarities = molecules.of(kernel.reference.similarities).copy()
    similarities[:, EMBEDDINGS] = seen_by(kernel, molecules, space, embeddings)
    machines = fit_machines(Compared(similarities, numbers), labels, learnt)
    return space, machines, machines(similarities[predicted])


def seen_by(kernel: KernelMember, molecules: MoleculeFeatures, space: Space, embeddings: np.ndarray) -> np.ndarray:
    """Similarities to the training molecules in a space, with conditions if there are any: float32 [M, N]."""
    found = space.similarities(embeddings)
    return kernel.reference.under_conditions(molecules, found[:, None])[:, 0]


def body_of(config: Config) -> Encoder:
    return body_named(config.train.start_from or BODY)


def calibration_of(labels: Labels, decisions: np.ndarray, rows: np.ndarray) -> Calibration | None:
    return fit_calibration(labels.y[rows], probabilities(decisions[rows])) if labels.is_classification else None


def as_values(decisions: np.ndarray, calibration: Calibration | None) -> np.ndarray:
    """Decisions [M, T] as values or, with a calibration, as probabilities."""
    return decisions if calibration is None else calibration(probabilities(decisions))


def probabilities(decisions: np.ndarray) -> np.ndarray:
    return torch.from_numpy(decisions).sigmoid().numpy()


def calibration_arrays(calibration: Calibration | None) -> dict[str, np.ndarray]:
    return {} if calibration is None else {"slope": calibration.slope, "shift": calibration.intercept}


def read_calibration(arrays: dict[str, np.ndarray], sizes: dict[str, int], path: Path) -> Calibration | None:
    shapes = {"slope": (np.float64, "T"), "shift": (np.float64, "T")}
    return Calibration(*read_shaped(arrays, shapes, sizes, path)) if "slope" in arrays else None


def remark(numbers: np.ndarray, labels: Labels, folds: Folds) -> str:
    """A sentence for users if the kernel was fitted with landmarks or without the labels of a fold, otherwise ""."""
    found = []
    if len(numbers) < len(labels):
        found.append(f"the kernel compares molecules with {len(numbers):,} of its {len(labels):,} training molecules")
    known = [np.flatnonzero(~np.isnan(column)) for column in labels.y.T]
    in_one = [len(rows) and any(not np.isin(learnt, rows).any() for learnt, _ in folds.parts()) for rows in known]
    if names := list(compress(labels.task.targets, in_one)):
        apart = f"all exact labels of {', '.join(names)} are in one fold, which the kernel predicts as their mean"
        found.append(f"{apart}: the expected errors are too large")
    return "; ".join(found)


@dataclass(frozen=True)
class TunedKernelMember(WithoutNetworks):
    """The kernel machines of all folds. The networks that they read belong to the other members."""

    share: ClassVar = 0.4

    kernel: KernelMember  # its training molecules are the references
    networks: NetworksMember
    spaces: list[Space]  # one per network
    machines: list[Machines]  # one per network
    calibration: Calibration | None = None

    @classmethod
    def words(cls, task: TaskConfig, molecules: int) -> str:
        return "the same as the kernel, on the embeddings of the fine-tuned networks"

    @classmethod
    def fit(cls, molecules: MoleculeFeatures, labels: Labels, folds: Folds, setting: Setting) -> Fitted:
        kernel, networks = beside(setting.members)
        decisions = np.full_like(labels.y, np.nan)
        spaces, machines = [], []
        for number, (learnt, predicted) in enumerate(folds.parts()):
            embeddings = molecules.of(networks.embeddings)[:, number]
            known = setting.known_to(number, labels)
            space, found, decisions[predicted] = fit_tuned(kernel, molecules, embeddings, known, learnt, predicted)
            spaces.append(space)
            machines.append(found)
        calibration = calibration_of(labels, decisions, folds.predicted)
        return Fitted(cls(kernel, networks, spaces, machines, calibration), as_values(decisions, calibration))

    def predict(self, molecules: MoleculeFeatures) -> np.ndarray:
        similarities = molecules.of(self.kernel.reference.similarities).copy()
        embeddings = molecules.of(self.networks.embeddings)
        total = np.zeros((len(molecules), len(self.machines[0].intercept)))
        for number, (space, machines) in enumerate(zip(self.spaces, self.machines, strict=True)):
            similarities[:, EMBEDDINGS] = seen_by(self.kernel, molecules, space, embeddings[:, number])
            total += machines(similarities)
        return as_values(total / len(self.machines), self.calibration)

    def arrays(self) -> dict[str, np.ndarray]:
        spaces = {name: np.stack([getattr(space, name) for space in self.spaces]) for name in EMBEDDED}
        machines = {name: np.stack([getattr(each, name) for each in self.machines]) for name in MACHINES}
        widths = {"widths": np.array([space.width for space in self.spaces])}
        return spaces | widths | machines | calibration_arrays(self.calibration)

    @classmethod
    def files(cls, folder: Path) -> list[Path]:
        return [folder / TUNED]

    def save(self, folder: Path) -> None:
        save_arrays(folder / TUNED, self.arrays(), {"format": TUNED_FORMAT})

    @classmethod
    def load(cls, folder: Path, members: dict[str, Member]) -> "TunedKernelMember":
        path = folder / TUNED
        arrays, _ = load_format(path, TUNED_FORMAT)
        kernel, networks = beside(members)
        sizes = {"R": len(networks.models), "G": len(SHARES), "D": networks.models[0][0].config.width}
        sizes["N"], sizes["T"] = kernel.machines.coefficients.shape
        *parts, widths = read_shaped(arrays, EMBEDDED | {"widths": (np.float64, "R")}, sizes, path)
        shapes = {name: (kind, f"R{axes}") for name, (kind, axes) in MACHINES.items()}
        machines = read_shaped(arrays, shapes, sizes, path)
        if (widths <= 0).any():
            raise InputError(damaged_arrays(path))
        spaces = [Space(*each) for each in zip(*parts, widths.tolist(), strict=True)]
        calibration = read_calibration(arrays, sizes, path)
        return cls(kernel, networks, spaces, [Machines(*each) for each in zip(*machines, strict=True)], calibration)


def beside(members: dict[str, Member]) -> tuple[KernelMember, NetworksMember]:
    kernel, networks = members.get("kernel"), members.get("networks")
    if not (isinstance(kernel, KernelMember) and isinstance(networks, NetworksMember)):
        raise CannotLearn("it needs the kernel and the networks, and one of them was left out")
    return kernel, networks
