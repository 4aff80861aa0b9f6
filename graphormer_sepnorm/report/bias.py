"""Whether the predictions of a regression are biased, and whether they miss extreme values.

The slope of measured against predicted values is 1 if predictions are right on average, however uncertain they are.
The slope of predicted against measured values is about R2 then: predictions vary less than labels, because they leave
out what the model cannot know. So only the first slope says whether values are biased.
"""

from collections.abc import Iterator

from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.report.slopes import Slope

FLAT = 0.6  # slope of predicted against measured values below which extremes are clearly missed
NARROW = 0.5  # width of the interval of a slope above which it does not say whether predictions are right


def of_bias(page: Reported) -> Iterator[str]:
    """A warning for each target of a regression with a strong bias, out of fold or on the test molecules."""
    for target, slope, _ in page.slopes:
        if slope is not None and slope.is_biased:
            yield f"{target}: {bias_words(slope)}"
    for target, slope in page.test_slopes:
        if slope.is_biased:
            yield f"{target}: {test_words(slope)}"


def of_extremes(page: Reported) -> Iterator[str]:
    """A paragraph for each target of a regression whose predictions miss extreme values without being biased."""
    for target, slope, spread in page.slopes:
        if spread < FLAT and not (slope is not None and slope.is_biased):
            yield f"{target}: {flat_words(spread, slope)}"


def of_test_bias(page: Reported) -> Iterator[str]:
    """A paragraph for each target of a regression with a bias on the test molecules that is too small for a warning."""
    for target, slope in page.test_slopes:
        if not slope.low <= 1 <= slope.high and not slope.is_biased:
            yield f"{target}: {test_words(slope)}"


def test_words(slope: Slope) -> str:
    """The direction and size of a bias on the test molecules."""
    where = "close to" if slope.value > 1 else "far from"
    return (
        f"on the test molecules, predictions are too {where} the mean: a molecule that is predicted 1 above the mean "
        f"is measured {slope.value:.2f} above it on average ({slope.ends}; 1 means no bias). Expect the same for other "
        "molecules that are as unlike the training molecules."
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
        f"{slope.value:.2f} above it on average ({slope.ends}; 1 means no bias). {advice}"
    )


def flat_words(spread: float, slope: Slope | None) -> str:
    """That extremes are missed, and whether values are right on average: if the slope is 1, with a narrow interval."""
    found = (
        "extremes are missed. Out of fold, a molecule that is measured 1 above the mean is predicted "
        f"{spread:.2f} above it on average."
    )
    if slope is None:
        return found
    if slope.low > 1:
        whether = "Predictions also understate slightly"
    elif slope.high < 1:
        whether = "Even so, predictions exaggerate slightly"
    elif slope.high - slope.low <= NARROW:
        whether = "Even so, predictions are right on average"
    else:
        whether = "There are too few molecules to tell whether predictions are right on average"
    return (
        f"{found} {whether}: a molecule that is predicted 1 above the mean is measured {slope.value:.2f} above it "
        f"({slope.ends}; 1 means no bias)."
    )
