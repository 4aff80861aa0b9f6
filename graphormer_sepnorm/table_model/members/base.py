"""Interface of the members of a table model: fitted out of fold and on all rows, saved without pickle.

Axis letters: M molecules, T targets."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, Self

import numpy as np

from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import Output
from graphormer_sepnorm.table_model.features import Conditions, MoleculeFeatures
from graphormer_sepnorm.table_model.labels import Folds, Labels


class Member(Protocol):
    share: ClassVar[float]  # prior weight of the member, up to a common factor

    @classmethod
    def words(cls, task: TaskConfig, molecules: int) -> str:
        """A description of the member for users, where it predicts this task from a number of training molecules."""

    @classmethod
    def fit(cls, molecules: MoleculeFeatures, labels: Labels, folds: Folds, setting: "Setting") -> "Fitted":
        """Fits to differences from the offset fold by fold, then for new molecules; raises CannotLearn."""

    def predict(self, molecules: MoleculeFeatures) -> np.ndarray:
        """Predicted differences from the offset, or probabilities: float64 [M, T]; NaN for what cannot be predicted."""

    @property
    def models(self) -> list[tuple[Network, Config]]:
        """The networks of the member, with their configs."""

    @property
    def outputs(self) -> list[Output]:
        """The outputs that it computes with its networks for every molecule."""

    def computed(self, outputs: list[np.ndarray]) -> dict[Callable, np.ndarray]:
        """Features of M molecules from the ``outputs`` [M, width], in the form of ``MoleculeFeatures.computed``."""

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that predictions depend on, except those of networks."""

    @classmethod
    def files(cls, folder: Path) -> list[Path]:
        """The files that ``save`` writes to a folder and ``load`` reads; raises InputError if they cannot be known."""

    def save(self, folder: Path) -> None:
        """Writes the fitted member to a folder; raises InputError if writing fails."""

    @classmethod
    def load(cls, folder: Path, members: "dict[str, Member]") -> Self:
        """Reads what ``save`` wrote, after other members; raises InputError for a missing or damaged file."""


class WithoutNetworks:
    models: ClassVar[list[tuple[Network, Config]]] = []
    outputs: ClassVar[list[Output]] = []

    def computed(self, outputs: list[np.ndarray]) -> dict[Callable, np.ndarray]:
        return {}


@dataclass(frozen=True)
class Setting:
    config: Config  # its seed is used for all random numbers
    folder: Path | None = None  # for the progress of slow steps
    resume: bool = False
    verbose: bool = False
    conditions: Conditions = field(default_factory=Conditions)
    members: "dict[str, Member]" = field(default_factory=dict)  # already fitted, by name
    out_of_fold: dict[str, np.ndarray] = field(default_factory=dict)  # as in ``Fitted``
    completed: tuple[Labels, ...] = ()  # as in ``Fitted``
    look: Callable[..., str] | None = None  # ``look.reason_to_stop``; None: all networks are trained

    def known_to(self, number: int, labels: Labels) -> Labels:
        """The labels that a member learns in a fold, -1 for all rows: completed, if the kernel was fitted before."""
        return self.completed[number] if self.completed else labels


@dataclass(frozen=True)
class Fitted:
    member: Member
    out_of_fold: np.ndarray  # float64 [M, T]; NaN for a molecule that no fold predicts
    remark: str = ""  # a sentence, without its full stop, on behaviour that a user would not expect
    completed: tuple[Labels, ...] = ()  # by fold, then of all rows: labels with values in place of bounds
