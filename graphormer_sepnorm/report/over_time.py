"""Predictions that were checked by later measurements, over time, and alarms where chance does not explain them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.predict.predictors import PredictingModel
from graphormer_sepnorm.report.page import UNIT, Axis, Chart, Dot, Grid, Line, Section, line, words
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.runs.numbers import percent, shown, shown_together
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.table_model.reliability import error_words
from graphormer_sepnorm.tables.label_text import in_order, periods

LEVEL = 0.05  # chance of a false alarm on a page
MOST_NAMES = 6  # of periods on the axis of a chart


class Checked(NamedTuple):
    """A prediction of a target that was checked by a measurement; NaN where there is no interval or similarity."""

    target: str
    period: str
    measured: float
    predicted: float
    low: float = np.nan
    high: float = np.nan
    similarity: float = np.nan


@dataclass(frozen=True)
class Period:
    """The predictions of a target that were checked in one period, such as "2026-11"; unknown numbers are NaN."""

    name: str
    n: int
    error: float  # means, also of predicted minus measured values
    bias: float
    intervals: int
    held: int  # number of intervals that contain their measurement
    similarity: float
    chance_of_error: float  # p-value of larger errors than the reference, by ranks (Mann and Whitney, 1947)
    chance_of_coverage: float  # p-value of so few measurements inside, as ``chance_of_holding``

    @property
    def coverage(self) -> float:
        return self.held / self.intervals if self.intervals else np.nan


def over_time(
    checked: Sequence[Checked],
    reference: Mapping[str, np.ndarray],
    confidence: float = 0.9,
    calibrated: Mapping[str, int] | None = None,
) -> dict[str, list[Period]]:
    """The periods of each target, in the order of the predictions.

    By target, ``reference`` has absolute errors that are expected, and ``calibrated`` the numbers of labels that
    intervals were calibrated on; None: very many.
    """
    from scipy.stats import mannwhitneyu  # its import takes a while

    groups: dict[tuple[str, str], list[Checked]] = {}
    for each in checked:
        groups.setdefault((each.target, each.period), []).append(each)
    periods: dict[str, list[Period]] = {}
    for (target, name), part in groups.items():
        expected = reference.get(target, np.empty(0))
        expected = expected[~np.isnan(expected)]
        measured, predicted, low, high, similarity = np.array([each[2:] for each in part], np.float64).T
        errors, with_interval = np.abs(measured - predicted), np.isfinite(low) & np.isfinite(high)
        intervals, held = int(with_interval.sum()), int(((low <= measured) & (measured <= high) & with_interval).sum())
        near, labels = similarity[~np.isnan(similarity)], (calibrated or {}).get(target)
        error, bias = float(errors.mean()), float((predicted - measured).mean())
        larger = float(mannwhitneyu(errors, expected, alternative="greater").pvalue) if len(expected) else np.nan
        outside = chance_of_holding(held, intervals, confidence, labels) if intervals else np.nan
        closeness = float(near.mean()) if len(near) else np.nan
        period = Period(name, len(part), error, bias, intervals, held, closeness, larger, outside)
        periods.setdefault(target, []).append(period)
    return periods


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


def level_of(periods: Mapping[str, Sequence[Period]]) -> float:
    """The p-value below which there is an alarm: ``LEVEL``, divided by the number of tests."""
    chances = [(each.chance_of_error, each.chance_of_coverage) for parts in periods.values() for each in parts]
    return LEVEL / max(1, int(np.isfinite(chances).sum()))


def alarms(periods: Mapping[str, Sequence[Period]], expected: str, confidence: float = 0.9) -> list[str]:
    """Where chance does not explain errors or coverage; ``expected`` says whose errors are the reference."""
    level, sentences = level_of(periods), []
    for target, each in ((target, each) for target, parts in periods.items() for each in parts):
        facts = {"target": target, "period": each, "confidence": confidence, "expected": expected}
        for kind, chance in (("coverage", each.chance_of_coverage), ("errors", each.chance_of_error)):
            sentences += [line(f"time.{kind}", **facts)] if chance < level else []
    return sentences


def section(
    periods: Mapping[str, Sequence[Period]],
    reference: Mapping[str, np.ndarray],
    expected: str,
    of: str,
    confidence: float = 0.9,
) -> Section:
    """The section on errors over time; arguments as ``over_time`` and ``alarms``, and ``of``: the errors in words."""
    sentences = alarms(periods, expected, confidence)
    paragraphs = words("time.section", alarms=len(sentences), level=level_of(periods), total=LEVEL, expected=expected)
    grids, charts = [], []
    for target, parts in list(periods.items())[:MAX_PANELS]:
        grids.append(grid_of(target, parts, of, confidence))
        if len(parts) > 1:
            errors, mean = [each.error for each in parts], float(np.nanmean(reference.get(target, [np.nan])))
            y, texts = Axis.around(of, np.array([0.0, mean, *errors])), shown_together(errors)
            charts.append(period_chart(f"{target}: errors", y, parts, errors, mean, texts))
        if len(parts) > 1 and all(each.intervals for each in parts):
            shares, y = [each.coverage for each in parts], Axis("share inside", UNIT)
            texts = list(map(percent, shares))
            charts.append(period_chart(f"{target}: coverage", y, parts, shares, confidence, texts))
    return Section("Error over time", (*paragraphs, *sentences), tuple(grids), tuple(charts))


def grid_of(target: str, periods: Sequence[Period], of: str, confidence: float) -> Grid:
    errors = shown_together([number for each in periods for number in (each.error, each.bias)], periods[0].error)
    columns = {
        "period": [each.name for each in periods],
        "measurements": [f"{each.n:,}" for each in periods],
        f"mean {of}": errors[::2],
        "bias": errors[1::2],
        f"inside {percent(confidence)} intervals": [percent(each.coverage) for each in periods if each.intervals],
        "mean similarity": [shown(each.similarity, 2) for each in periods if each.similarity == each.similarity],
    }
    return Grid.of({name: column for name, column in columns.items() if len(column) == len(periods)}, target)


def period_chart(
    title: str, y: Axis, periods: Sequence[Period], values: list[float], guide: float, texts: list[str]
) -> Chart:
    """A number by period, with its texts, and a dashed line at what was expected."""
    places, named = np.arange(len(periods)), evenly(len(periods), MOST_NAMES)
    x = Axis("period", tuple(named.astype(float).tolist()), tuple(periods[place].name for place in named))
    lines: dict[str, Line] = {"trend": (places, values)}
    lines |= {"guide": (places[[0, -1]], [guide, guide])} if guide == guide else {}
    said = (f"{each.name}: {text}\n{each.n:,} measurements" for each, text in zip(periods, texts, strict=True))
    caption = line("time.guide", is_error=y.ticks is not UNIT)
    return Chart(title, x, y, caption, lines, list(map(Dot, places.tolist(), values, said)))


def time_section(page: Reported) -> Section | None:
    """The test molecules of a split by time, against the errors out of fold; None for other splits."""
    if page.options.split != "time" or page.adds_up:
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
    confidence = float(page.confidence or 0.9)
    by_target = over_time(checked, reference, confidence, calibrated_labels(page.model))
    expected = "those out of fold on the training molecules"
    return section(by_target, reference, expected, error_words(page.task), confidence) if by_target else None
