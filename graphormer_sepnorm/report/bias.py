"""Whether the predictions of a regression are biased, and whether they miss extreme values.

The slope of measured against predicted values is 1 if predictions are right on average, however uncertain they are.
The slope of predicted against measured values is about R2 then: predictions vary less than labels, because they leave
out what the model cannot know. So only the first slope says whether values are biased.
"""

from collections.abc import Iterator

from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.report.words import line

FLAT = 0.6  # slope of predicted against measured values below which extremes are clearly missed
NARROW = 0.5  # width of the interval of a slope above which it does not say whether predictions are right


def of_bias(page: Reported) -> Iterator[str]:
    """A warning for each target of a regression with a strong bias, out of fold or on the test molecules."""
    for target, slope, _ in page.slopes:
        if slope is not None and slope.is_biased:
            yield line("headline.bias", target=target, slope=slope)
    for target, slope in page.test_slopes:
        if slope.is_biased:
            yield line("headline.test_bias", target=target, slope=slope)


def of_extremes(page: Reported) -> Iterator[str]:
    """A paragraph for each target of a regression whose predictions miss extreme values without being biased."""
    for target, slope, spread in page.slopes:
        if spread < FLAT and not (slope is not None and slope.is_biased):
            yield line("headline.extremes", target=target, spread=spread, slope=slope, narrow=NARROW)


def of_test_bias(page: Reported) -> Iterator[str]:
    """A paragraph for each target of a regression with a bias on the test molecules that is too small for a warning."""
    for target, slope in page.test_slopes:
        if not slope.low <= 1 <= slope.high and not slope.is_biased:
            yield line("headline.test_bias", target=target, slope=slope)
