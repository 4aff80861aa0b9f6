"""Whether the predictions of a regression are biased, and whether they miss extreme values.

The slope of measured against predicted values is 1 if predictions are right on average. That of predicted against
measured values is about R2 then, as predictions leave out what the model cannot know: it says nothing about a bias.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.report.words import line
from graphormer_sepnorm.table_model.reliability import are_many
from graphormer_sepnorm.table_model.scores import PERCENTILES, RESAMPLES
from graphormer_sepnorm.tasks.censored import is_bounded

UNBIASED = (0.8, 1.25)  # slopes of measured against predicted values of which users need not be warned
MOST_DRAWN = 2_000  # molecules that are resampled; with more, the interval is very narrow
LEAST_DRAWN = 10  # with fewer, resamples say nothing about the noise
FLAT = 0.6  # slope of predicted against measured values below which extremes are clearly missed


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
    drawn, value = evenly(len(x), MOST_DRAWN), slope_of(x, y)
    if len(drawn) < LEAST_DRAWN or not np.isfinite(value):
        return None
    samples = np.random.default_rng(0).choice(drawn, (RESAMPLES, len(drawn)))
    low, high = np.nanpercentile([slope_of(x[rows], y[rows]) for rows in samples], PERCENTILES)
    return Slope(value, float(low), float(high))


def slope_of(x: np.ndarray, y: np.ndarray) -> float:
    """The slope of y against x [M]; NaN if fewer than two x differ."""
    if len(x) < 2 or x.min() == x.max():
        return float("nan")
    centred = x - x.mean()
    return float(centred @ y / (centred @ centred))


def known_pairs(page: Reported) -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
    """Each target of a regression with its place, and its exact training labels with their predictions out of fold.

    Without targets with many bounds: their exact labels have another slope than all labels.
    """
    rows, labels = page.folds.predicted, page.labels
    for place, target in enumerate(page.task.targets if page.is_regression else ()):
        y, predicted = labels.y[:, place], page.fitted.out_of_fold.values[rows, place]
        if labels.bounds is not None:
            bounded = int(is_bounded(y, labels.bounds[:, place]).sum())
            if are_many(bounded, int(np.isfinite(y).sum())):
                continue
        known = np.isfinite(y[rows]) & np.isfinite(predicted)
        yield target, place, y[rows][known], predicted[known]


def of_bias(page: Reported) -> Iterator[str]:
    """A warning for each target of a regression with a strong bias, out of fold or on the test molecules."""
    for target, place, y, predicted in known_pairs(page):
        tested, of_tested = page.labelled_pairs(place)
        slopes = {"out of fold": resampled_slope(predicted, y)}
        slopes["on the test molecules"] = resampled_slope(of_tested.astype(np.float64), tested)
        for where, slope in slopes.items():
            if slope is not None and slope.is_biased:
                yield line("headline.bias", target=target, slope=slope, where=where)


def of_extremes(page: Reported) -> Iterator[str]:
    """A paragraph for each target of a regression whose predictions miss extreme values without being biased."""
    for target, _, y, predicted in known_pairs(page):
        slope, spread = resampled_slope(predicted, y), slope_of(y, predicted)
        if spread < FLAT and not (slope is not None and slope.is_biased):
            yield line("headline.extremes", target=target, spread=spread, slope=slope)
