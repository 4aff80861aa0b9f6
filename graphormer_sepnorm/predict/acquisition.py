"""Acquisition functions: the expected value of measuring M molecules, from predictions and expected errors."""

from typing import Annotated

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from graphormer_sepnorm.config import STRICT
from graphormer_sepnorm.options import Promise


@dataclass(frozen=True, config=STRICT)
class Acquisition:
    """A ranking criterion (Jones et al., J. Global Optim. 1998; Srinivas et al., ICML 2010)."""

    by: Promise
    target: str
    minimize: bool = False
    best: Annotated[float, Field(allow_inf_nan=False)] = 0.0  # value so far, for the expected improvement
    kappa: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0  # standard deviations of the confidence bound

    @property
    def column(self) -> str:
        """The name of the column that molecules are ranked by."""
        return self.target if self.by == "prediction" else self.by.replace("-", "_")

    @property
    def lowest_first(self) -> bool:
        """Whether the lowest value of that column is the best."""
        return self.minimize and self.by != "expected-improvement"

    def __call__(self, value: np.ndarray, deviation: np.ndarray) -> np.ndarray:
        """The column, float64 [M], from predictions and the standard deviations of their errors; NaN for NaN."""
        if self.by == "prediction":
            return np.asarray(value, np.float64)
        deviation = np.asarray(deviation, np.float64)
        if self.by == "confidence-bound":
            return value + (-self.kappa if self.minimize else self.kappa) * deviation
        return expected_improvement((self.best - value) if self.minimize else (value - self.best), deviation)


def expected_improvement(gain: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """The mean of the positive part of normal variables with these means and standard deviations: float64 [M]."""
    from scipy.special import ndtr  # its import takes a while, which other predictions need not spend

    gain = np.asarray(gain, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = gain / deviation
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        return np.where(deviation > 0, gain * ndtr(z) + deviation * density, np.where(gain > 0, gain, 0 * gain))
