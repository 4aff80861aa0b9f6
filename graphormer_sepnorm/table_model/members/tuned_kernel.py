"""Kernel machines with embeddings of the fine-tuned networks: those of each fold are averaged.

Axis letters: R networks, M molecules, N training molecules, G groups of similarities, D width, T targets."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.calibration import Calibration
from graphormer_sepnorm.runs.arrays import checked_array, load_format, save_arrays
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import CannotLearn, Folds, Labels
from graphormer_sepnorm.table_model.machines import Machines
from graphormer_sepnorm.table_model.members.base import Fitted, Member, Setting, WithoutNetworks
from graphormer_sepnorm.table_model.members.kernel import (
    EMBEDDINGS,
    KernelMember,
    as_values,
    calibration_arrays,
    calibration_of,
    fit_tuned,
    read_calibration,
    seen_by,
)
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from graphormer_sepnorm.table_model.reference import SHARES, Space

TUNED = "tuned_kernel.safetensors"
FORMAT = 1


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
        """As ``Member.fit``; the kernel and the networks must have been fitted before."""
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
        return {
            "embeddings": np.stack([space.embeddings for space in self.spaces]),
            "mean": np.stack([space.mean for space in self.spaces]),
            "scale": np.stack([space.scale for space in self.spaces]),
            "widths": np.array([space.width for space in self.spaces]),
            "weights": np.stack([machines.weights for machines in self.machines]),
            "coefficients": np.stack([machines.coefficients for machines in self.machines]),
            "intercept": np.stack([machines.intercept for machines in self.machines]),
            **calibration_arrays(self.calibration),
        }

    @classmethod
    def files(cls, folder: Path) -> list[Path]:
        return [folder / TUNED]

    def save(self, folder: Path) -> None:
        save_arrays(folder / TUNED, self.arrays(), {"format": FORMAT})

    @classmethod
    def load(cls, folder: Path, members: dict[str, Member]) -> "TunedKernelMember":
        path = folder / TUNED
        arrays, _ = load_format(path, FORMAT)

        def read(name: str, dtype: type, ndim: int) -> np.ndarray:
            return checked_array(arrays, name, dtype, ndim, path)

        spaces = zip(
            read("embeddings", np.float32, 3),
            read("mean", np.float32, 2),
            read("scale", np.float32, 2),
            read("widths", np.float64, 1).tolist(),
            strict=False,
        )
        machines = zip(
            read("weights", np.float64, 3),
            read("coefficients", np.float64, 3),
            read("intercept", np.float64, 2),
            strict=False,
        )
        member = cls(
            *beside(members),
            [Space(*each) for each in spaces],
            [Machines(*each) for each in machines],
            read_calibration(arrays, path),
        )
        if not member.fits_together():
            raise InputError(f"{path} is damaged: its arrays do not fit together")
        return member

    def fits_together(self) -> bool:
        """Whether numbers and shapes match the kernel and the networks."""
        count, targets = self.kernel.machines.coefficients.shape
        width = self.networks.models[0][0].config.width
        return (
            len(self.spaces) == len(self.machines) == len(self.networks.models)
            and all(space.embeddings.shape == (count, width) for space in self.spaces)
            and all(space.mean.shape == space.scale.shape == (width,) and space.width > 0 for space in self.spaces)
            and all(machines.weights.shape == (len(SHARES), targets) for machines in self.machines)
            and all(machines.coefficients.shape == (count, targets) for machines in self.machines)
            and all(machines.intercept.shape == (targets,) for machines in self.machines)
            and (self.calibration is None or self.calibration.slope.shape == (targets,))
        )


def beside(members: dict[str, Member]) -> tuple[KernelMember, NetworksMember]:
    """The kernel and the networks; raises CannotLearn if one of them was left out."""
    kernel, networks = members.get("kernel"), members.get("networks")
    if not (isinstance(kernel, KernelMember) and isinstance(networks, NetworksMember)):
        raise CannotLearn("it needs the kernel and the networks, and one of them was left out")
    return kernel, networks
