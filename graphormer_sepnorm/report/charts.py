"""Charts of a report as inline SVG. The title of a mark, which pages show on hover, gives its values.

Axis letters: M molecules, P points, C confidence levels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from graphormer_sepnorm.output.column import PROBABILITY_DECIMALS
from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.report.words import environment, line
from graphormer_sepnorm.runs.numbers import decimals_for, shown, shown_interval
from graphormer_sepnorm.runs.plots import at_bounds

SMALL, LARGE = (400, 320), (520, 430)  # width and height; large ones are on top of a report
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 30, 44
RADIUS = 3.5
TICKS = 6
STEPS = (1, 2, 2.5, 5, 10)  # between ticks, up to a power of ten
BINS = 20
MOST_POINTS = 1_000  # of a chart
UNIT = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # ticks of an axis from 0 to 1
DIAGONAL = ([0.0, 1.0], [0.0, 1.0])
Line = tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray]  # x and y [P]


@dataclass(frozen=True)
class Axis:
    """A linear axis from its first to its last tick; without names, ticks have their values as texts."""

    label: str
    ticks: tuple[float, ...]
    names: tuple[str, ...] = ()

    @classmethod
    def around(cls, label: str, *values: np.ndarray) -> "Axis":
        """An axis with round ticks that shows all finite values."""
        from matplotlib.ticker import MaxNLocator  # its import takes a while

        known = np.concatenate([np.ravel(each) for each in values])
        known = known[np.isfinite(known)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        if low == high:
            low, high = low - 0.5, high + 0.5
        return cls(label, tuple(map(float, MaxNLocator(TICKS, steps=STEPS).tick_values(low, high))))

    def share(self, value: float) -> float:
        """The position of a value: 0 at the start of the axis, 1 at its end."""
        return (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])

    @property
    def named(self) -> list[tuple[float, str]]:
        texts = self.names or tuple(f"{tick:.12g}" for tick in self.ticks)
        return list(zip(self.ticks, texts, strict=True))


class Dot(NamedTuple):
    """A point, with a vertical line for its interval; an arrow to the right for 1, and to the left for -1."""

    x: float
    y: float
    words: str
    ends: Sequence[float] = (np.nan, np.nan)
    arrow: float = 0

    @property
    def has_interval(self) -> bool:
        return bool(np.isfinite(self.ends).all())


class HistogramBar(NamedTuple):
    """A bar from the bottom of a chart, of training or test labels."""

    start: float
    end: float
    height: float
    words: str
    kind: str


@dataclass(frozen=True)
class Chart:
    """Marks, and lines by their kind, blue "trend", orange "mean" or dashed "guide", with words below."""

    title: str
    x: Axis
    y: Axis
    words: str = ""
    lines: Mapping[str, Line] = field(default_factory=dict)
    dots: Sequence[Dot] = ()
    bars: Sequence[HistogramBar] = ()
    size: tuple[int, int] = SMALL

    def across(self, value: float) -> float:
        return LEFT + self.x.share(value) * (self.size[0] - LEFT - RIGHT)

    def up(self, value: float) -> float:
        return self.size[1] - BOTTOM - self.y.share(value) * (self.size[1] - TOP - BOTTOM)

    def points(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        return " ".join(f"{self.across(x):.1f},{self.up(y):.1f}" for x, y in zip(xs, ys, strict=True))

    @property
    def svg(self) -> str:
        """The markup, in which all texts are escaped."""
        sides = {"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM, "radius": RADIUS}
        return environment().get_template("chart.svg").render(chart=self, **sides)


@dataclass(frozen=True)
class Points:
    """Labelled predictions [P] of a target, words shown on hover, and the ends of intervals [P, 2], NaN without.

    ``arrows`` is 1 where the measured value is above ``measured``, -1 where it is below, and 0 where it is equal.
    """

    measured: np.ndarray
    predicted: np.ndarray
    words: Sequence[str]
    ends: np.ndarray
    arrows: np.ndarray

    @classmethod
    def of(
        cls,
        y: np.ndarray,
        bounds: np.ndarray | None,
        predicted: np.ndarray,
        text_of: Callable[[int], str],
        ends: np.ndarray | None = None,
    ) -> "Points":
        """At most ``MOST_POINTS`` of the labels [M] and of the bounds [M, 2]; ``text_of`` has the words of a row."""
        y, arrows = at_bounds(y, bounds)
        known = np.flatnonzero(~np.isnan(y))
        rows = known[evenly(len(known), MOST_POINTS)] if len(known) else known
        ends = np.full((len(y), 2), np.nan) if ends is None else ends
        found = y[rows].astype(np.float64), predicted[rows].astype(np.float64), list(map(text_of, rows.tolist()))
        return cls(*found, ends[rows], arrows[rows])


def parity_chart(target: str, points: Points, confidence: float | None = None) -> Chart:
    """Predicted against measured values, with their intervals at a confidence level."""
    ticks = Axis.around("", points.measured, points.predicted, points.ends).ticks
    dots = list(map(Dot, points.measured, points.predicted, points.words, points.ends.tolist(), points.arrows))
    axes, guide = (Axis("measured", ticks), Axis("predicted", ticks)), {"guide": ((ticks[0], ticks[-1]),) * 2}
    words = line("predictions.parity", confidence=confidence, has_bounds=bool(points.arrows.any()))
    return Chart(f"{target}: predicted against measured", *axes, words, guide, dots, size=LARGE)


def residual_chart(title: str, points: Points, words: str) -> Chart:
    """Measured minus predicted values against predicted values."""
    residuals = points.measured - points.predicted
    x, y = Axis.around("predicted", points.predicted), Axis.around("measured minus predicted", residuals, np.zeros(1))
    guide = {"guide": ([x.ticks[0], x.ticks[-1]], [0.0, 0.0])}
    return Chart(title, x, y, words, guide, list(map(Dot, points.predicted, residuals, points.words)))


def coverage_chart(title: str, confidences: Sequence[float], shares: np.ndarray, words: str) -> Chart:
    """Shares of values inside their interval [C], NaN where undefined, against confidence levels [C]."""
    names = tuple(f"{100 * tick:.0f}" for tick in UNIT)
    axes = Axis("confidence level, %", UNIT, names), Axis("coverage, %", UNIT, names)
    known = np.isfinite(shares)
    trend = np.array(confidences)[known].tolist(), shares[known].tolist()
    texts = "{:.0f} % intervals\n{:.0f} % of the test values are inside"
    dots = [Dot(level, share, texts.format(100 * level, 100 * share)) for level, share in zip(*trend, strict=True)]
    return Chart(title, *axes, words, {"guide": DIAGONAL, "trend": trend}, dots)


def reliability_chart(title: str, before: Line, after: Line, words: str) -> Chart:
    """Shares of positives against mean predicted probabilities, before and after calibration."""
    text = "mean predicted probability {}\n{:.0f} % are positive"
    dots = [Dot(x, y, text.format(shown(x, PROBABILITY_DECIMALS), 100 * y)) for x, y in zip(*after, strict=True)]
    axes = Axis("mean predicted probability", UNIT), Axis("share of positives", UNIT)
    return Chart(title, *axes, words, {"guide": DIAGONAL, "mean": before, "trend": after}, dots)


def histogram_chart(title: str, learnt: np.ndarray, tested: np.ndarray, words: str) -> Chart:
    """Shares of labels in bins; the test labels [P] as narrower bars before the training labels [M]."""
    both = np.concatenate([learnt, tested])
    edges = np.histogram_bin_edges(both, min(BINS, max(len(np.unique(both)), 1)))
    rounded, bars = edges.round(decimals_for([edges[1] - edges[0]])).tolist(), []
    for name, shrink, labels in (("training", 0.0, learnt), ("test", 0.25, tested)):
        for place, count in enumerate(np.histogram(labels, edges)[0].tolist()):
            (first, last), (start, end) = rounded[place : place + 2], edges[place : place + 2]
            text = f"{first:.12g} to {last:.12g}: {count} of {len(labels)} {name} labels"
            gap = shrink * (end - start)
            bars.append(HistogramBar(start + gap, end - gap, 100 * count / max(len(labels), 1), text, name))
    heights = np.array([0, *(bar.height for bar in bars)])
    return Chart(title, Axis.around("measured", edges), Axis.around("% of the labels", heights), words, bars=bars)


def strip_chart(title: str, points: Points, names: Sequence[str], words: str) -> Chart:
    """Probabilities of class 1, one row of points per measured class; points are spread to show them all."""
    axes = (
        Axis(f"predicted probability of {names[1]}", (0, 0.25, 0.5, 0.75, 1)),
        Axis("measured", (-0.5, 0, 1, 1.5), ("", *names, "")),
    )
    rows = points.measured + np.random.default_rng(0).uniform(-0.3, 0.3, len(points.words))
    dots = list(map(Dot, points.predicted, rows, points.words))
    return Chart(title, *axes, words, {"guide": ([0.5, 0.5], [-0.5, 1.5])}, dots, size=LARGE)


def learning_chart(title: str, metric: str, rows: Sequence[int], facts: dict, words: str) -> Chart:
    """Scores with their intervals against the number of training rows; ``facts`` as ``curve_of_target``."""
    values = np.array(facts["values"], np.float64)
    ends = np.array([each or [np.nan, np.nan] for each in facts["interval"]])
    x, decimals = Axis.around("training molecules", np.zeros(1), np.array(rows)), decimals_for([*values, *ends.ravel()])
    known, dots = np.flatnonzero(np.isfinite(values)), []
    for place in known.tolist():
        score, interval = shown(values[place], decimals), shown_interval(facts["interval"][place], decimals)
        text = f"{rows[place]:,} training molecules\n{metric} {score}\n95 % interval {interval}"
        dots.append(Dot(rows[place], values[place], text, ends[place]))
    trend = {"trend": (np.array(rows)[known], values[known])}
    return Chart(title, x, Axis.around(metric, values, ends), words, trend, dots)
