"""Whether the predictions of a regression are biased, and whether they miss extreme values, out of fold.

The slope of measured against predicted values is 1 if predictions are right on average, however uncertain they are.
The slope of predicted against measured values is about R2 then: predictions vary less than labels, because they leave
out what the model cannot know. So only the first slope says whether values are biased.
"""

from collections.abc import Iterator

import numpy as np

from graphormer_sepnorm.table_model.report.reported import Reported
from graphormer_sepnorm.table_model.report.slopes import Slope, resampled_slope

FLAT = 0.6  # slope of predicted against measured values below which extremes are clearly missed


def of_bias(page: Reported) -> Iterator[str]:
    """A warning for each target of a regression whose predictions are biased."""
    for target, slope, _ in page.slopes:
        if slope is not None and slope.is_biased:
            yield f"{target}: {bias_words(slope)}"


def of_extremes(page: Reported) -> Iterator[str]:
    """A paragraph for each target of a regression whose predictions miss extreme values without being biased."""
    for target, slope, spread in page.slopes:
        if spread < FLAT and not (slope is not None and slope.is_biased):
            yield f"{target}: {flat_words(spread, slope)}"


def of_test_bias(page: Reported) -> Iterator[str]:
    """A paragraph for each target of a regression whose predictions are biased on the test molecules."""
    if page.is_regression:
        for place, target in enumerate(page.task.targets):
            y, predicted = page.labelled_pairs(place, page.test.prediction)
            slope = resampled_slope(predicted.astype(np.float64), y)
            if slope is not None and not slope.low <= 1 <= slope.high:
                yield f"{target}: {test_words(slope)}"


def test_words(slope: Slope) -> str:
    """The direction and size of a bias on the test molecules."""
    where = "close to" if slope.value > 1 else "far from"
    return (
        f"on the test molecules, predictions are too {where} the mean: a molecule that is predicted 1 above the mean "
        f"is measured {slope.words} above it on average, where 1 means no bias. Expect this also of other molecules "
        "that differ from the training molecules as much as the test molecules do."
    )


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
    """That extremes are missed, and whether values are right on average: if the interval of the slope contains 1."""
    found = (
        "very high and very low values are predicted too close to the mean. Out of fold, a molecule that is measured 1 "
        f"above the mean is predicted {max(spread, 0):.2f} above it on average."
    )
    if slope is None:
        return found
    if slope.low > 1:
        whether = "The values themselves are also slightly too close to the mean"
    elif slope.high < 1:
        whether = "The values themselves are slightly too far from the mean"
    else:
        whether = "Out of fold, such predictions are still right on average"
    return (
        f"{found} {whether}: a molecule that is predicted 1 above the mean is measured {slope.value:.2f} above it "
        f"(95 % interval {slope.low:.2f} to {slope.high:.2f}; 1 means no bias)."
    )
