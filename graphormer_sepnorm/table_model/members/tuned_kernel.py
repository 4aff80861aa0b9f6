"""Kernel machines with embeddings of the fine-tuned networks: those of each fold are averaged.

Axis letters: R networks, M molecules, N training molecules, G groups of similarities, D width, T targets."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.calibration import Calibration
from graphormer_sepnorm.runs.arrays import load_format, save_arrays
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import CannotLearn, Folds, Labels
from graphormer_sepnorm.table_model.machines import Machines
from graphormer_sepnorm.table_model.members.base import Fitted, Member, Setting, WithoutNetworks
from graphormer_sepnorm.table_model.members.kernel import (
    EMBEDDINGS,
    MACHINES,
    KernelMember,
    as_values,
    calibration_arrays,
    calibration_of,
    fit_tuned,
    read_calibration,
    seen_by,
)
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from graphormer_sepnorm.table_model.reference import SHARES, Space, damaged_arrays, read_shaped

TUNED = "tuned_kernel.safetensors"
FORMAT = 1
SPACES: dict[str, tuple[type, str]] = {
    "embeddings": (np.float32, "RND"),
    "mean": (np.float32, "RD"),
    "scale": (np.float32, "RD"),
    "widths": (np.float64, "R"),
}


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
        spaces = {
            name: np.stack([getattr(space, name) for space in self.spaces]) for name in SPACES if name != "widths"
        }
        machines = {name: np.stack([getattr(each, name) for each in self.machines]) for name in MACHINES}
        widths = {"widths": np.array([space.width for space in self.spaces])}
        return spaces | widths | machines | calibration_arrays(self.calibration)

    @classmethod
    def files(cls, folder: Path) -> list[Path]:
        return [folder / TUNED]

    def save(self, folder: Path) -> None:
        save_arrays(folder / TUNED, self.arrays(), {"format": FORMAT})

    @classmethod
    def load(cls, folder: Path, members: dict[str, Member]) -> "TunedKernelMember":
        path = folder / TUNED
        arrays, _ = load_format(path, FORMAT)

        kernel, networks = beside(members)
        sizes = {"R": len(networks.models), "G": len(SHARES), "D": networks.models[0][0].config.width}
        sizes["N"], sizes["T"] = kernel.machines.coefficients.shape
        *parts, widths = read_shaped(arrays, SPACES, sizes, path)
        machines = read_shaped(
            arrays, {name: (kind, f"R{axes}") for name, (kind, axes) in MACHINES.items()}, sizes, path
        )
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
