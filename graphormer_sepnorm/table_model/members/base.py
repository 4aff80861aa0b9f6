"""What every member of a table model is: fitted out of fold and on all rows, saved and loaded without pickle.

Axis letters: M molecules, T targets.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, Self

import numpy as np

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.inference.predict import Output
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.table_model.conditions import Conditions
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import Folds, Labels


class Member(Protocol):
    """A model of a table that takes part in a table model.

    Attributes:
        share: in proportion to which members are expected to weigh, before anything is known of a table.
    """

    share: ClassVar[float]

    @classmethod
    def fit(cls, molecules: MoleculeFeatures, labels: Labels, folds: Folds, setting: "Setting") -> "Fitted":
        """Fits to molecules fold by fold, and then as it will predict others.

        Args:
            molecules: that are learnt from; what is computed of them is kept there for other members.
            labels: of them.
            folds: in which each of them is predicted without having been seen.
            setting: all else that a member may need.

        Raises:
            CannotLearn: the molecules cannot be learnt from by this kind of member.
        """

    def predict(self, molecules: MoleculeFeatures) -> np.ndarray:
        """Values, or probabilities: float64 [M, T]; NaN for a molecule that it cannot predict."""

    @property
    def models(self) -> list[tuple[Network, Config]]:
        """The networks that it computes with."""

    @property
    def outputs(self) -> list[Output]:
        """What it computes with them of every molecule."""

    def computed(self, outputs: list[np.ndarray]) -> dict[Callable, np.ndarray]:
        """What is known of M molecules from the ``outputs`` [M, width], as ``MoleculeFeatures.computed`` has it."""

    def arrays(self) -> dict[str, np.ndarray]:
        """What predictions depend on apart from networks."""

    def save(self, folder: Path) -> None:
        """Writes what was learnt into a folder; raises InputError if it cannot be written."""

    @classmethod
    def load(cls, folder: Path, members: "dict[str, Member]") -> Self:
        """Reads what ``save`` wrote; raises InputError for what is missing or damaged.

        Args:
            members: those that were loaded before, by name.
        """


@dataclass(frozen=True)
class Setting:
    """How and where members are fitted.

    Attributes:
        config: of the networks; its seed is that of everything that is drawn.
        folder: where what takes long is kept as it comes; None: nowhere.
        resume: go on with what is there.
        verbose: show progress.
        conditions: of the measurements.
        members: those that were fitted before, by name.
    """

    config: Config
    folder: Path | None = None
    resume: bool = False
    verbose: bool = False
    conditions: Conditions = field(default_factory=Conditions)
    members: "dict[str, Member]" = field(default_factory=dict)


@dataclass(frozen=True)
class Fitted:
    """A member, and what members of its kind predict for molecules that they did not see.

    Attributes:
        member: fitted as it will predict others.
        out_of_fold: float64 [M, T]; NaN for a molecule that no fold predicts.
        remark: a sentence on what a user would not expect, without its full stop; "" if there is nothing.
    """

    member: Member
    out_of_fold: np.ndarray
    remark: str = ""
