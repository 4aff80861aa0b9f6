"""What a measurement of a molecule promises, from its prediction and the expected error of it.

Axis letters: M molecules.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from graphormer_sepnorm.config import STRICT

Promise = Literal["expected-improvement", "confidence-bound", "prediction"]


@dataclass(frozen=True, config=STRICT)
class Acquisition:
    """How molecules are ranked.

    Attributes:
        by: by how much a molecule is expected to exceed ``best``; how good it may be, ``kappa`` standard deviations
            beyond its prediction; or its prediction.
        target: that is to be as high as possible, or as low as possible.
        minimize: whether it is to be low.
        best: value so far, for the expected improvement.
        kappa: of the confidence bound.

    Sources: Jones et al., "Efficient global optimization of expensive black-box functions", J. Global Optim. 1998;
    Srinivas et al., "Gaussian process optimization in the bandit setting", ICML 2010.
    """

    by: Promise
    target: str
    minimize: bool = False
    best: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    kappa: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0

    @property
    def column(self) -> str:
        """The name of the column of what is ranked."""
        return self.target if self.by == "prediction" else self.by.replace("-", "_")

    @property
    def lowest_first(self) -> bool:
        """Whether the lowest number of that column is the best."""
        return self.minimize and self.by != "expected-improvement"

    def __call__(self, value: np.ndarray, deviation: np.ndarray) -> np.ndarray:
        """The column of molecules: float64 [M], NaN where the prediction is.

        Args:
            value: [M], predictions.
            deviation: [M], standard deviations of their errors.
        """
        if self.by == "prediction":
            return np.asarray(value, np.float64)
        deviation = np.asarray(deviation, np.float64)
        if self.by == "confidence-bound":
            return value + (-self.kappa if self.minimize else self.kappa) * deviation
        return expected_improvement((self.best - value) if self.minimize else (value - self.best), deviation)


def expected_improvement(gain: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """The mean of what is above 0 of a normal variable with these means and standard deviations: float64 [M]."""
    from scipy.special import ndtr  # its import takes a while, which other predictions need not spend

    gain = np.asarray(gain, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = gain / deviation
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        return np.where(deviation > 0, gain * ndtr(z) + deviation * density, np.where(gain > 0, gain, 0 * gain))
