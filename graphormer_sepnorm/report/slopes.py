"""The slope of values against others, with a bootstrap interval.

Axis letters: M molecules.
"""

from typing import NamedTuple

import numpy as np

from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.table_model.scores import PERCENTILES, RESAMPLES

UNBIASED = (0.8, 1.25)  # slopes of measured against predicted values of which users need not be warned
MOST_DRAWN = 2_000  # molecules that are resampled; with more, the interval is very narrow
LEAST_DRAWN = 10  # with fewer, resamples say nothing about the noise


class Slope(NamedTuple):
    """The slope of measured against predicted values, with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_biased(self) -> bool:
        """Whether the interval has no slope in common with ``UNBIASED``."""
        return self.high < UNBIASED[0] or self.low > UNBIASED[1]


def resampled_slope(x: np.ndarray, y: np.ndarray) -> Slope | None:
    """The slope of y against x [M] with its bootstrap interval over molecules; None for too few or equal x."""
    drawn = evenly(len(x), MOST_DRAWN)
    value = slope_of(x, y)
    if len(drawn) < LEAST_DRAWN or not np.isfinite(value):
        return None
    generator = np.random.default_rng(0)
    slopes = [slope_of(x[rows], y[rows]) for rows in generator.choice(drawn, (RESAMPLES, len(drawn)))]
    low, high = np.nanpercentile(slopes, PERCENTILES)
    return Slope(value, float(low), float(high))


def slope_of(x: np.ndarray, y: np.ndarray) -> float:
    """The slope of y against x [M]; NaN if fewer than two x differ."""
    if len(x) < 2 or x.min() == x.max():
        return float("nan")
    centred = x - x.mean()
    return float(centred @ y / (centred @ centred))
