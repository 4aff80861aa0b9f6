"""The columns that predictions add to a table: declared once, for files and for Python.

Axis letters: M molecules.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import NO_TRUST, PredictingModel, Predictions
from graphormer_sepnorm.inference.trust import Intervals
from graphormer_sepnorm.tables.formats.table import with_free_names
from graphormer_sepnorm.tasks import TASKS

DOMAIN = ("similarity", "cls_distance", "nearest", "warning")


@dataclass(frozen=True)
class Columns:
    """Which columns there are: per target its value, its spread and its interval, then the domain, then the error.

    Attributes:
        model: that predicts.
        interval: confidence of the intervals in ``NAME_low`` and ``NAME_high``; None: none.
        domain: whether the training molecules are compared with.

    Raises:
        InputError: intervals that the model cannot give.
    """

    model: PredictingModel
    interval: float | None = None
    domain: bool = False

    def __post_init__(self) -> None:
        if self.interval is not None:
            known_intervals(self.model).half_widths(self.interval, np.zeros((1, len(self.model.targets))))

    def names(self, taken: list[str]) -> list[str]:
        """The names; one that is ``taken`` is made another."""
        targets = self.model.targets
        found = [*targets]
        if self.model.gives_spread:
            found += [f"{target}_std" for target in targets]
        if self.interval is not None:
            found += [f"{target}_{end}" for end in ("low", "high") for target in targets]
        return with_free_names([*found, *(DOMAIN if self.domain else ()), "error"], taken)

    def numbers(self, predictions: Predictions) -> np.ndarray:
        """The columns of numbers, which come first: [M, columns]."""
        columns = [predictions.values]
        if self.model.gives_spread:
            columns.append(predictions.spread)
        if self.interval is not None:
            half_widths = known_intervals(self.model).half_widths(self.interval, predictions.spread)
            columns += [predictions.values - half_widths, predictions.values + half_widths]
        if predictions.nearness is not None:
            columns += [predictions.nearness.similarity[:, None], predictions.nearness.distance[:, None]]
        return np.hstack(columns)

    def texts(self, predictions: Predictions) -> list[Sequence[str]]:
        """The columns of text between the numbers and the error: M texts each."""
        return [predictions.nearness.molecule, predictions.warnings] if predictions.nearness else []


def known_intervals(model: PredictingModel) -> Intervals:
    """The intervals of a model; raises InputError if it has none."""
    if TASKS[model.kind].predicts_probabilities:
        raise InputError("--interval is for models of numbers; the probabilities of two classes are calibrated instead")
    if model.trust is None:
        raise InputError(f"--interval: {NO_TRUST}")
    if model.trust.intervals is None:
        raise InputError(
            "--interval: the model has no intervals, because a target had no labels in its validation split"
        )
    return model.trust.intervals
