"""Members of table models: fitted out of fold and on all rows, saved without pickle. M molecules, T targets."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, Self

import numpy as np

from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import Output
from graphormer_sepnorm.runs.arrays import save_arrays
from graphormer_sepnorm.table_model.features import Conditions, MoleculeFeatures
from graphormer_sepnorm.table_model.labels import Folds, Labels


class Member(Protocol):
    share: ClassVar[float]  # prior weight of the member, up to a common factor
    file: ClassVar[str] = ""  # of the ``arrays``
    described: ClassVar[str] = ""  # for users

    @classmethod
    def words(cls, task: TaskConfig, molecules: int) -> str:
        """The description, where the member predicts this task from a number of training molecules."""
        return cls.described

    @classmethod
    def fit(cls, table: "ToFit") -> "Fitted":
        """Fits to differences from the offset fold by fold, then for new molecules; raises CannotLearn."""

    def predict(self, molecules: MoleculeFeatures) -> np.ndarray:
        """Predicted differences from the offset, or probabilities: float64 [M, T]; NaN for what cannot be predicted."""

    @property
    def models(self) -> list[tuple[Network, Config]]:
        """The networks of the member, with their configs."""
        return []

    @property
    def outputs(self) -> list[Output]:
        """The outputs that it computes with its networks for every molecule."""
        return []

    def computed(self, outputs: list[np.ndarray]) -> dict[Callable, np.ndarray]:
        """Features of M molecules from the ``outputs`` [M, width], in the form of ``MoleculeFeatures.computed``."""
        return {}

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that predictions depend on, except those of networks."""
        return {}

    def facts(self) -> dict:
        """The format of the file and other facts in it."""
        return {}

    @classmethod
    def files(cls, folder: Path) -> list[Path]:
        """The files that ``save`` writes to a folder and ``load`` reads; raises InputError if they cannot be known."""
        return [folder / cls.file]

    def save(self, folder: Path) -> None:
        save_arrays(folder / self.file, self.arrays(), self.facts())

    @classmethod
    def load(cls, folder: Path, members: "dict[str, Member]") -> Self:
        """Reads what ``save`` wrote, after other members; raises InputError for a missing or damaged file."""


@dataclass(frozen=True)
class ToFit:
    """All that members are fitted to, and how."""

    molecules: MoleculeFeatures
    labels: Labels
    folds: Folds
    config: Config  # its seed is used for all random numbers
    folder: Path | None = None  # for the progress of slow steps
    resume: bool = False
    verbose: bool = False
    conditions: Conditions = field(default_factory=Conditions)
    fitted: "dict[str, Fitted]" = field(default_factory=dict)  # members that were fitted before, by name
    look: "Callable[[ToFit, np.ndarray], str] | None" = None  # ``fit.reason_to_stop``; None: all networks are trained

    @property
    def members(self) -> dict[str, Member]:
        return {name: each.member for name, each in self.fitted.items()}

    def known(self, fold: int) -> Labels:
        """The labels that a member learns in a fold, -1 for all rows: completed, if the kernel was fitted before."""
        return next((each.completed[fold] for each in self.fitted.values() if each.completed), self.labels)


@dataclass(frozen=True)
class Fitted:
    member: Member
    out_of_fold: np.ndarray  # float64 [M, T]; NaN for a molecule that no fold predicts
    remark: str = ""  # a sentence, without its full stop, on behaviour that a user would not expect
    completed: tuple[Labels, ...] = ()  # by fold, then of all rows: labels with values in place of bounds
