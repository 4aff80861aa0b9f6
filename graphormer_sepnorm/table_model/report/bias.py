"""Whether the predictions of a regression are biased, and whether they miss extreme values, out of fold.

The slope of measured against predicted values is 1 if predictions are right on average, however uncertain they are.
The slope of predicted against measured values is about R2 then: predictions vary less than labels, because they leave
out what the model cannot know. So only the first slope says whether values are biased.

Axis letters: M molecules.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from graphormer_sepnorm.inference.domain import evenly
from graphormer_sepnorm.table_model.report.reported import Reported
from graphormer_sepnorm.table_model.scores import PERCENTILES, RESAMPLES

FLAT = 0.6  # slope of predicted against measured values below which extremes are clearly missed
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

    @property
    def words(self) -> str:
        return f"{self.value:.2f} (95 % interval {self.low:.2f} to {self.high:.2f})"


def of_bias(page: Reported) -> Iterator[str]:
    """A warning for each target of a regression whose predictions are biased."""
    for target, slope, _ in slopes(page):
        if slope is not None and slope.is_biased:
            yield f"{target}: {bias_words(slope)}"


def of_extremes(page: Reported) -> Iterator[str]:
    """A paragraph for each target of a regression whose predictions miss extreme values without being biased."""
    for target, slope, spread in slopes(page):
        if spread < FLAT and not (slope is not None and slope.is_biased):
            yield f"{target}: {flat_words(spread, slope)}"


def slopes(page: Reported) -> Iterator[tuple[str, Slope | None, float]]:
    """Each target of a regression, the slope of measured against predicted values, and the slope the other way."""
    if not page.is_regression:
        return
    rows = page.folds.predicted
    values = page.fitted.out_of_fold.values[rows]
    for target, y, predicted in zip(page.task.targets, page.labels.y[rows].T, values.T, strict=True):
        known = np.isfinite(y) & np.isfinite(predicted)
        y, predicted = y[known], predicted[known]
        yield target, resampled_slope(predicted, y), slope_of(y, predicted)


def bias_words(slope: Slope) -> str:
    """The direction of a bias, its size, and the use that is left for the predictions."""
    where = "close to" if slope.value > 1 else "far from"
    advice = (
        "Use the predictions to rank molecules, not as values."
        if slope.low > 0
        else "Rely neither on the values nor on their order."
    )
    return (
        f"predictions are too {where} the mean. Out of fold, a molecule that is predicted 1 above the mean is measured "
        f"{slope.words} above it on average. {advice}"
    )


def flat_words(spread: float, slope: Slope | None) -> str:
    """That extremes are missed, and that this is no bias."""
    found = (
        "very high and very low values are predicted too close to the mean. Out of fold, a molecule that is measured 1 "
        f"above the mean is predicted {max(spread, 0):.2f} above it on average."
    )
    if slope is None:
        return found
    return (
        f"{found} The predictions show no clear bias: one that is predicted 1 above the mean is measured {slope.words} "
        "above it."
    )


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
