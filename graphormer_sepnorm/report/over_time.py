"""Predictions that were checked by later measurements, over time, and alarms where chance does not explain them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.predict.predictors import PredictingModel
from graphormer_sepnorm.report.charts import UNIT, Axis, Chart, Dot, Line
from graphormer_sepnorm.report.page import Grid, Section
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.report.words import line, words
from graphormer_sepnorm.runs.numbers import percent, shown, shown_together
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.table_model.reliability import error_words
from graphormer_sepnorm.tables.label_text import in_order, periods

LEVEL = 0.05  # chance of a false alarm on a page
MOST_NAMES = 6  # of periods on the axis of a chart
PERIOD = (
    *("target", "name", "n", "error", "bias", "intervals", "held"),
    *("similarity", "chance_of_error", "chance_of_coverage", "coverage"),
)


class Checked(NamedTuple):
    """A prediction of a target that was checked by a measurement; NaN where there is no interval or similarity."""

    target: str
    period: str
    measured: float
    predicted: float
    low: float = np.nan
    high: float = np.nan
    similarity: float = np.nan


def over_time(
    checked: Sequence[Checked],
    reference: Mapping[str, np.ndarray],
    confidence: float = 0.9,
    calibrated: Mapping[str, int] | None = None,
) -> pd.DataFrame:
    """The periods of each target, in the order of the predictions; unknown numbers are NaN.

    A period has the number ``n`` of its predictions, their mean ``error`` and ``bias`` (predicted minus measured), the
    number of ``intervals`` and of those that ``held`` their measurement, and two p-values: of errors larger than the
    reference, by ranks (Mann and Whitney, 1947), and of so few measurements inside, as ``chance_of_holding``.
    By target, ``reference`` has absolute errors that are expected, and ``calibrated`` the numbers of labels that
    intervals were calibrated on; None: very many.
    """
    from scipy.stats import mannwhitneyu  # its import takes a while

    periods = []
    for target, of_target in pd.DataFrame(checked, columns=Checked._fields).groupby("target", sort=False):
        expected = reference.get(str(target), np.empty(0))
        expected = expected[~np.isnan(expected)]
        for name, part in of_target.groupby("period", sort=False):
            measured, predicted, low, high, similarity = part.iloc[:, 2:].to_numpy(np.float64).T
            errors, with_interval = np.abs(measured - predicted), np.isfinite(low) & np.isfinite(high)
            intervals, held = with_interval.sum(), ((low <= measured) & (measured <= high) & with_interval).sum()
            near, labels = similarity[~np.isnan(similarity)], (calibrated or {}).get(str(target))
            larger = mannwhitneyu(errors, expected, alternative="greater").pvalue if len(expected) else np.nan
            outside = chance_of_holding(held, intervals, confidence, labels) if intervals else np.nan
            period = {"target": target, "name": name, "n": len(part), "intervals": intervals, "held": held}
            period |= {"error": errors.mean(), "bias": (predicted - measured).mean()}
            period |= {"similarity": near.mean() if len(near) else np.nan, "chance_of_error": larger}
            period |= {"chance_of_coverage": outside, "coverage": held / intervals if intervals else np.nan}
            periods.append(period)
    return pd.DataFrame(periods, columns=PERIOD)


def chance_of_holding(held: int, intervals: int, confidence: float, calibrated: int | None) -> float:
    """The probability that at most ``held`` of the intervals hold their label.

    Intervals that few labels were calibrated on may all be somewhat too narrow: their coverage has a beta distribution
    (Vovk, "Conditional validity of inductive conformal predictors", 2012), and ``held`` a beta-binomial one.
    """
    from scipy.stats import betabinom, binom  # their import takes a while

    if calibrated is None:
        return float(binom.cdf(held, intervals, confidence))
    rank = min(np.ceil(np.round((calibrated + 1) * confidence, 9)), calibrated)
    return float(betabinom.cdf(held, intervals, rank, calibrated + 1 - rank))


def calibrated_labels(model: PredictingModel) -> dict[str, int] | None:
    """By target, the number of labels that the intervals of a model were calibrated on; None without intervals."""
    intervals = model.trust.intervals if model.trust else None
    return dict(zip(model.targets, intervals.counts.tolist(), strict=True)) if intervals else None


def level_of(periods: pd.DataFrame) -> float:
    """The p-value below which there is an alarm: ``LEVEL``, divided by the number of tests."""
    return LEVEL / max(1, int(periods[["chance_of_error", "chance_of_coverage"]].count().sum()))


def alarms(periods: pd.DataFrame, expected: str, confidence: float = 0.9) -> list[str]:
    """Where chance does not explain errors or coverage; ``expected`` says whose errors are the reference."""
    level = level_of(periods)
    return [
        line(f"time.{kind}", period=each, confidence=confidence, expected=expected)
        for each in periods.to_dict("records")
        for kind in ("coverage", "errors")
        if each["chance_of_" + kind.removesuffix("s")] < level
    ]


def section(
    periods: pd.DataFrame, reference: Mapping[str, np.ndarray], expected: str, of: str, confidence: float = 0.9
) -> Section:
    """The section on errors over time; arguments as ``over_time`` and ``alarms``, and ``of``: the errors in words."""
    sentences, grids, charts = alarms(periods, expected, confidence), [], []
    said = words("time.section", alarms=len(sentences), level=level_of(periods), total=LEVEL, expected=expected)
    for target, parts in list(periods.groupby("target", sort=False))[:MAX_PANELS]:
        errors, shares = parts["error"].tolist(), parts["coverage"].dropna().tolist()
        texts = shown_together(parts[["error", "bias"]].to_numpy().ravel().tolist(), errors[0])
        columns = {"period": list(parts["name"]), "measurements": [f"{count:,}" for count in parts["n"]]}
        columns |= {f"mean {of}": texts[::2], "bias": texts[1::2]}
        if len(shares) == len(parts):
            columns[f"inside {percent(confidence)} intervals"] = list(map(percent, shares))
        if parts["similarity"].notna().all():
            columns["mean similarity"] = [shown(each, 2) for each in parts["similarity"]]
        grids.append(Grid.of(columns, str(target)))
        if len(parts) > 1:
            mean = float(np.nanmean(reference.get(str(target), [np.nan])))
            y, texts = Axis.around(of, np.array([0.0, mean, *errors])), shown_together(errors)
            charts.append(period_chart(f"{target}: errors", y, parts, errors, mean, texts))
        if len(parts) == len(shares) > 1:
            y, texts = Axis("share inside", UNIT), list(map(percent, shares))
            charts.append(period_chart(f"{target}: coverage", y, parts, shares, confidence, texts))
    return Section("Error over time", (*said, *sentences), tuple(grids), tuple(charts))


def period_chart(
    title: str, y: Axis, periods: pd.DataFrame, values: Sequence[float], guide: float, texts: list[str]
) -> Chart:
    """A number by period, with its texts, and a dashed line at what was expected."""
    names, places, named = list(periods["name"]), np.arange(len(periods)), evenly(len(periods), MOST_NAMES)
    x = Axis("period", tuple(named.astype(float).tolist()), tuple(names[place] for place in named))
    lines: dict[str, Line] = {"trend": (places, values)}
    lines |= {"guide": (places[[0, -1]], [guide, guide])} if guide == guide else {}
    said = map("{}: {}\n{:,} measurements".format, names, texts, periods.n)
    caption = line("time.guide", is_error=y.ticks is not UNIT)
    return Chart(title, x, y, caption, lines, list(map(Dot, places.tolist(), values, said)))


def time_section(page: Reported) -> Section | None:
    """The test molecules of a split by time, against the errors out of fold; None for other splits."""
    if page.options.split != "time" or page.adds_up or page.results:
        return None
    rows, times = page.folds.predicted, [row.time for row in page.tested]
    column = [row.time for row in page.labelled.rows]
    try:
        names, order = periods(times, column), in_order(times, column)
    except InputError:  # times that only the rows before averaging tell apart
        return None
    values = page.model.final(page.fitted.out_of_fold.values[rows])
    reference = dict(zip(page.task.targets, np.abs(page.labels.y[rows] - values).T, strict=True))
    similarity = np.broadcast_to(page.looked.nearness.similarity[:, None], page.test.y.shape)
    facts = np.stack([page.test.y, page.test.prediction, *np.moveaxis(page.interval_ends, 2, 0), similarity])
    checked = [
        Checked(target, names[row], *facts[:, row, place].tolist())
        for place, target in enumerate(page.task.targets)
        for row in order
        if not np.isnan(page.test.y[row, place])
    ]
    by_target = over_time(checked, reference, page.level, calibrated_labels(page.model))
    expected = "those out of fold on the training molecules"
    return section(by_target, reference, expected, error_words(page.task), page.level) if checked else None
