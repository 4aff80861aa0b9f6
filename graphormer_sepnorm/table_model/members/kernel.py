"""Kernel machines on similarities by count fingerprints, descriptors and embeddings of the foundation model.

Axis letters: M molecules, N training molecules, T targets."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from graphormer_sepnorm.chem.descriptors import VERSIONS
from graphormer_sepnorm.chem.fingerprints import known_kinds
from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.classes import Calibration, fit_calibration
from graphormer_sepnorm.predict.forward import Output
from graphormer_sepnorm.runs.arrays import load_format
from graphormer_sepnorm.runs.checkpoint import save_model
from graphormer_sepnorm.system.progress import tracked
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import CannotLearn, Labels
from graphormer_sepnorm.table_model.machines import Compared, Machines, completed, fit_machines
from graphormer_sepnorm.table_model.members.base import Fitted, Member, ToFit
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from graphormer_sepnorm.table_model.reference import BODY, SHARES, Encoder, Reference, Space, landmarks, read_shaped
from graphormer_sepnorm.tasks import TASKS

KERNEL, BODY_FILE, TUNED = "kernel.safetensors", "body.safetensors", "tuned_kernel.safetensors"
FORMAT, TUNED_FORMAT = 3, 1
EMBEDDINGS = 2  # index of the embeddings among the groups of similarities
Shapes = dict[str, tuple[type, str]]  # types and axes of arrays
MACHINES: Shapes = {"weights": (np.float64, "GT"), "coefficients": (np.float64, "NT"), "intercept": (np.float64, "T")}
EMBEDDED: Shapes = {"embeddings": (np.float32, "RND"), "mean": (np.float32, "RD"), "scale": (np.float32, "RD")}


@dataclass(frozen=True)
class KernelMember(Member):
    share: ClassVar = 0.55
    file: ClassVar = KERNEL

    reference: Reference
    machines: Machines
    calibration: Calibration | None = None  # of decisions to probabilities of a classification

    @classmethod
    def words(cls, task: TaskConfig, molecules: int) -> str:
        compared = "molecules by fingerprints, descriptors and a pretrained network"
        if TASKS[task.kind].predicts_probabilities or len(landmarks(molecules)) < molecules:
            return f"a Gaussian process that compares {compared}"
        return f"the mean of two methods, a Gaussian process and a support vector machine, that compare {compared}"

    @classmethod
    def fit(cls, table: ToFit) -> Fitted:
        """As ``Member.fit``; embeds with the networks' pretrained model, and uses landmarks if molecules are many."""
        molecules, labels = table.molecules, table.labels
        numbers, every = landmarks(len(molecules)), np.arange(len(molecules))
        used = molecules.take(numbers) if len(numbers) < len(molecules) else molecules
        reference = Reference.of(used, body_of(table.config))
        compared = Compared(molecules.of(reference.similarities), numbers)
        decisions = np.full_like(labels.y, np.nan)
        parts, labelled = table.folds.parts(), []
        for learnt, predicted in tracked(parts, len(parts) + 1, 0.5):
            labelled.append(completed(compared, labels, learnt))
            decisions[predicted] = fit_machines(compared, labelled[-1], learnt)(compared.similarities[predicted])
        calibration = calibration_of(labels, decisions, table.folds.predicted)
        labelled.append(completed(compared, labels, every))
        member = cls(reference, fit_machines(compared, labelled[-1], every), calibration)
        return Fitted(member, as_values(decisions, calibration), remark(numbers, table), tuple(labelled))

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
        return self.reference.arrays() | vars(self.machines) | calibration_arrays(self.calibration)

    def facts(self) -> dict:
        return {"format": FORMAT, "kinds": self.reference.kinds, "descriptors": VERSIONS[-1:]}

    @classmethod
    def files(cls, folder: Path) -> list[Path]:
        return [folder / KERNEL, folder / BODY_FILE]

    def save(self, folder: Path) -> None:
        save_model(folder / BODY_FILE, *self.models[0], {})
        super().save(folder)

    @classmethod
    def load(cls, folder: Path, members: dict[str, Member]) -> "KernelMember":
        path = folder / KERNEL
        arrays, facts = load_format(path, FORMAT)
        kinds = known_kinds(facts, path)
        known_kinds(facts, path, VERSIONS[:1], VERSIONS, "descriptors")
        reference = Reference.from_arrays(arrays, Encoder.named(str(folder / BODY_FILE)), kinds, path)
        sizes = {"N": reference.counts.shape[0], "G": len(SHARES)}
        machines = Machines(*read_shaped(arrays, MACHINES, sizes, path))
        return cls(reference, machines, read_calibration(arrays, sizes, path))


def fit_tuned(
    kernel: KernelMember, table: ToFit, number: int, embeddings: np.ndarray
) -> tuple[Space, Machines, np.ndarray]:
    """The space of the fine-tuned network of a fold, the machines in it, and their decisions for the fold."""
    numbers, (learnt, predicted) = landmarks(len(table.molecules)), table.folds.parts()[number]
    space = Space.of(embeddings[numbers])
    similarities = similarities_in(space, kernel, table.molecules, embeddings)
    machines = fit_machines(Compared(similarities, numbers), table.known(number), learnt)
    return space, machines, machines(similarities[predicted])


def similarities_in(
    space: Space, kernel: KernelMember, molecules: MoleculeFeatures, embeddings: np.ndarray
) -> np.ndarray:
    """As ``Reference.similarities``, in another space than that of the foundation model."""
    similarities = molecules.of(kernel.reference.similarities).copy()
    seen = space.similarities(embeddings)[:, None]
    similarities[:, EMBEDDINGS] = kernel.reference.under_conditions(molecules, seen)[:, 0]
    return similarities


def body_of(config: Config) -> Encoder:
    return Encoder.named(config.train.start_from or BODY)


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


def remark(numbers: np.ndarray, table: ToFit) -> str:
    """A sentence for users if the kernel was fitted with landmarks or without the labels of a fold, otherwise ""."""
    labels, exact, remarks = table.labels, ~np.isnan(table.labels.y), []
    if len(numbers) < len(labels):
        remarks.append(f"the kernel compares molecules with {len(numbers):,} of its {len(labels):,} training molecules")
    in_one = exact.any(axis=0) & np.any([~exact[learnt].any(axis=0) for learnt, _ in table.folds.parts()], axis=0)
    if names := list(compress(labels.task.targets, in_one)):
        apart = f"all exact labels of {', '.join(names)} are in one fold, which the kernel predicts as their mean"
        remarks.append(f"{apart}: the expected errors are too large")
    return "; ".join(remarks)


@dataclass(frozen=True)
class TunedKernelMember(Member):
    """The kernel machines of all folds. The networks that they read belong to the other members."""

    share: ClassVar = 0.4
    file: ClassVar = TUNED
    described: ClassVar = "the same as the kernel, on the embeddings of the fine-tuned networks"

    kernel: KernelMember  # its training molecules are the references
    networks: NetworksMember
    spaces: list[Space]  # one per network
    machines: list[Machines]  # one per network
    calibration: Calibration | None = None

    @classmethod
    def fit(cls, table: ToFit) -> Fitted:
        kernel, networks = beside(table.members)
        decisions = np.full_like(table.labels.y, np.nan)
        spaces, machines = [], []
        for number, (_, predicted) in enumerate(table.folds.parts()):
            embeddings = table.molecules.of(networks.embeddings)[:, number]
            space, solution, decisions[predicted] = fit_tuned(kernel, table, number, embeddings)
            spaces.append(space)
            machines.append(solution)
        calibration = calibration_of(table.labels, decisions, table.folds.predicted)
        return Fitted(cls(kernel, networks, spaces, machines, calibration), as_values(decisions, calibration))

    def predict(self, molecules: MoleculeFeatures) -> np.ndarray:
        embeddings = molecules.of(self.networks.embeddings)
        total = np.zeros((len(molecules), len(self.machines[0].intercept)))
        for number, (space, machines) in enumerate(zip(self.spaces, self.machines, strict=True)):
            total += machines(similarities_in(space, self.kernel, molecules, embeddings[:, number]))
        return as_values(total / len(self.machines), self.calibration)

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {name: np.stack([getattr(space, name) for space in self.spaces]) for name in EMBEDDED}
        arrays["widths"] = np.array([space.width for space in self.spaces])
        arrays |= {name: np.stack([getattr(each, name) for each in self.machines]) for name in MACHINES}
        return arrays | calibration_arrays(self.calibration)

    def facts(self) -> dict:
        return {"format": TUNED_FORMAT}

    @classmethod
    def load(cls, folder: Path, members: dict[str, Member]) -> "TunedKernelMember":
        path = folder / TUNED
        arrays, _ = load_format(path, TUNED_FORMAT)
        kernel, networks = beside(members)
        sizes = {"R": len(networks.models), "G": len(SHARES), "D": networks.models[0][0].config.width}
        sizes["N"], sizes["T"] = kernel.machines.coefficients.shape
        *parts, widths = read_shaped(arrays, EMBEDDED | {"widths": (np.float64, "R+")}, sizes, path)
        shapes = {name: (kind, f"R{axes}") for name, (kind, axes) in MACHINES.items()}
        machines = [Machines(*each) for each in zip(*read_shaped(arrays, shapes, sizes, path), strict=True)]
        spaces = [Space(*each) for each in zip(*parts, widths.tolist(), strict=True)]
        return cls(kernel, networks, spaces, machines, read_calibration(arrays, sizes, path))


def beside(members: dict[str, Member]) -> tuple[KernelMember, NetworksMember]:
    kernel, networks = members.get("kernel"), members.get("networks")
    if not (isinstance(kernel, KernelMember) and isinstance(networks, NetworksMember)):
        raise CannotLearn("it needs the kernel and the networks, and one of them was left out")
    return kernel, networks
