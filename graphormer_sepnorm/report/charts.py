"""Charts of a report as inline SVG. The title of a mark, which pages show on hover, gives its values.

All texts pass through ``xml.etree``, which escapes them.

Axis letters: M molecules, P points, C confidence levels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np

from graphormer_sepnorm.output.columns import PROBABILITY_DECIMALS
from graphormer_sepnorm.report.page import Chart
from graphormer_sepnorm.runs.numbers import decimals_for, shown, shown_interval

WIDTH, HEIGHT = 400, 320
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 30, 44
RADIUS = 3.5
TICKS = 6
STEPS = (1, 2, 2.5, 5, 10)  # between ticks, up to a power of ten
BINS = 20
UNIT = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # ticks of an axis from 0 to 1


@dataclass(frozen=True)
class Axis:
    """A linear axis.

    Attributes:
        label: description of the axis.
        ticks: values of the ticks in ascending order; the axis ends at the first and the last.
        names: texts of the ticks; empty: their values.
    """

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
    def texts(self) -> tuple[str, ...]:
        return self.names or tuple(f"{tick:.12g}" for tick in self.ticks)


@dataclass(frozen=True)
class Points:
    """Labelled predictions of one target.

    Attributes:
        measured, predicted: float64 [P].
        low, high: float64 [P], ends of the intervals; None: there are no intervals.
        words: P descriptions, shown on hover.
        arrows: float64 [P], 1 where the measured value is above ``measured``, -1 where it is below, otherwise 0; None:
            all are equal.
    """

    measured: np.ndarray
    predicted: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    words: Sequence[str]
    arrows: np.ndarray | None = None


class Drawing:
    """A chart with two axes. Coordinates of its methods are values on the axes."""

    def __init__(self, title: str, x: Axis, y: Axis):
        self.x, self.y = x, y
        box = f"0 0 {WIDTH} {HEIGHT}"
        self.root = ElementTree.Element("svg", {"viewBox": box, "role": "img", "aria-label": title})
        self.text(title, LEFT, 18, "start", "title")
        for tick, text in zip(x.ticks, x.texts, strict=True):
            self.line("grid", [tick, tick], [y.ticks[0], y.ticks[-1]])
            self.text(text, self.across(tick), HEIGHT - BOTTOM + 16, "middle")
        for tick, text in zip(y.ticks, y.texts, strict=True):
            self.line("grid", [x.ticks[0], x.ticks[-1]], [tick, tick])
            self.text(text, LEFT - 6, self.up(tick) + 4, "end")
        self.text(x.label, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "middle")
        middle = (TOP + HEIGHT - BOTTOM) / 2
        self.text(y.label, 14, middle, "middle", turn=f"rotate(-90 14 {middle:g})")

    def across(self, value: float) -> float:
        return LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)

    def up(self, value: float) -> float:
        return HEIGHT - BOTTOM - self.y.share(value) * (HEIGHT - TOP - BOTTOM)

    def text(self, text: str, x: float, y: float, anchor: str, kind: str = "", turn: str = "") -> None:
        """Adds a text at a position in pixels."""
        settings = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
        settings |= {name: value for name, value in (("class", kind), ("transform", turn)) if value}
        ElementTree.SubElement(self.root, "text", settings).text = text

    def line(
        self, kind: str, xs: Sequence[float], ys: Sequence[float], group: ElementTree.Element | None = None
    ) -> None:
        """Adds a line through points."""
        points = " ".join(f"{self.across(x):.1f},{self.up(y):.1f}" for x, y in zip(xs, ys, strict=True))
        parent = self.root if group is None else group
        ElementTree.SubElement(parent, "polyline", {"class": kind, "points": points})

    def mark(self, words: str) -> ElementTree.Element:
        """Adds a group of shapes with a description."""
        group = ElementTree.SubElement(self.root, "g", {"class": "mark"})
        ElementTree.SubElement(group, "title").text = words
        return group

    def dot(
        self, x: float, y: float, words: str, interval: tuple[float, float] | None = None, arrow: float = 0
    ) -> None:
        """Adds a point, with a vertical line for its interval; an arrow to the right for 1, and to the left for -1."""
        group = self.mark(words)
        if interval is not None and np.isfinite(interval).all():
            self.line("interval", [x, x], interval, group)
        if arrow:
            left, top = self.across(x), self.up(y)
            corners = ((left + 3 * RADIUS * arrow, top), (left, top - RADIUS), (left, top + RADIUS))
            points = " ".join(f"{across:.1f},{down:.1f}" for across, down in corners)
            ElementTree.SubElement(group, "polygon", {"class": "dot", "points": points})
            return
        place = {"cx": f"{self.across(x):.1f}", "cy": f"{self.up(y):.1f}", "r": f"{RADIUS:g}"}
        ElementTree.SubElement(group, "circle", {"class": "dot", **place})

    def bar(self, start: float, end: float, height: float, words: str, kind: str = "") -> None:
        """Adds a bar from the bottom of the chart."""
        left, right, top = self.across(start), self.across(end), self.up(height)
        sizes = {"x": left, "y": top, "width": right - left - 1, "height": HEIGHT - BOTTOM - top}
        settings = {name: f"{max(value, 0):.1f}" for name, value in sizes.items()}
        ElementTree.SubElement(self.mark(words), "rect", {"class": f"bar {kind}".strip(), **settings})

    def chart(self, words: str) -> Chart:
        return Chart(ElementTree.tostring(self.root, encoding="unicode"), words)


def parity_chart(title: str, points: Points, words: str) -> Chart:
    """Predicted against measured values, with their intervals."""
    ends = [points.measured, points.predicted, *(each for each in (points.low, points.high) if each is not None)]
    axis = Axis.around("", *ends)
    drawing = Drawing(title, Axis("measured", axis.ticks), Axis("predicted", axis.ticks))
    drawing.line("guide", [axis.ticks[0], axis.ticks[-1]], [axis.ticks[0], axis.ticks[-1]])
    for place, text in enumerate(points.words):
        interval = None
        if points.low is not None and points.high is not None:
            interval = float(points.low[place]), float(points.high[place])
        arrow = 0.0 if points.arrows is None else float(points.arrows[place])
        drawing.dot(points.measured[place], points.predicted[place], text, interval, arrow)
    return drawing.chart(words)


def residual_chart(title: str, points: Points, words: str) -> Chart:
    """Measured minus predicted values against predicted values."""
    residuals = points.measured - points.predicted
    x, y = Axis.around("predicted", points.predicted), Axis.around("measured minus predicted", residuals, np.zeros(1))
    drawing = Drawing(title, x, y)
    drawing.line("guide", [x.ticks[0], x.ticks[-1]], [0, 0])
    for predicted, residual, text in zip(points.predicted, residuals, points.words, strict=True):
        drawing.dot(predicted, residual, text)
    return drawing.chart(words)


def error_chart(
    title: str,
    labels: tuple[str, str],
    points: tuple[np.ndarray, np.ndarray],
    means: tuple[np.ndarray, np.ndarray] | None,
    names: Sequence[str],
    words: str,
) -> Chart:
    """Errors against a distance: points [P] with names that are shown on hover, and a line of means."""
    drawing = Drawing(title, Axis.around(labels[0], points[0]), Axis.around(labels[1], points[1], np.zeros(1)))
    for x, y, text in zip(*points, names, strict=True):
        drawing.dot(x, y, text)
    if means is not None:
        drawing.line("mean", *(each.tolist() for each in means))
    return drawing.chart(words)


def coverage_chart(title: str, confidences: Sequence[float], shares: np.ndarray, words: str) -> Chart:
    """Shares of values inside their interval [C], NaN where undefined, against confidence levels [C]."""
    names = tuple(f"{100 * tick:.0f}" for tick in UNIT)
    drawing = Drawing(title, Axis("confidence level, %", UNIT, names), Axis("coverage, %", UNIT, names))
    drawing.line("guide", [0, 1], [0, 1])
    known = [(level, share) for level, share in zip(confidences, shares.tolist(), strict=True) if np.isfinite(share)]
    drawing.line("trend", [level for level, _ in known], [share for _, share in known])
    for level, share in known:
        text = f"{100 * level:.0f} % intervals\n{100 * share:.0f} % of the test values are inside"
        drawing.dot(level, share, text)
    return drawing.chart(words)


def reliability_chart(
    title: str, before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray], words: str
) -> Chart:
    """Shares of positives against mean predicted probabilities, both [P], before and after calibration."""
    axes = Axis("mean predicted probability", UNIT), Axis("share of positives", UNIT)
    drawing = Drawing(title, *axes)
    drawing.line("guide", [0, 1], [0, 1])
    drawing.line("mean", *(each.tolist() for each in before))
    drawing.line("trend", *(each.tolist() for each in after))
    for probability, share in zip(*after, strict=True):
        text = (
            f"mean predicted probability {shown(probability, PROBABILITY_DECIMALS)}\n{100 * share:.0f} % are positive"
        )
        drawing.dot(probability, share, text)
    return drawing.chart(words)


def lines_chart(
    title: str, axes: tuple[Axis, Axis], lines: Mapping[str, tuple[np.ndarray, np.ndarray]], words: str
) -> Chart:
    """Lines through points x and y [P] by their kind: blue "trend", orange "mean" or dashed "guide"."""
    drawing = Drawing(title, *axes)
    for kind, points in lines.items():
        drawing.line(kind, *(each.tolist() for each in points))
    return drawing.chart(words)


def histogram_chart(title: str, learnt: np.ndarray, tested: np.ndarray, words: str) -> Chart:
    """Shares of labels in bins; the test labels [P] as narrower bars before the training labels [M]."""
    both = np.concatenate([learnt, tested])
    edges = np.histogram_bin_edges(both, min(BINS, max(len(np.unique(both)), 1)))
    rounded = edges.round(decimals_for([edges[1] - edges[0]])).tolist()
    counts = [np.histogram(labels, edges)[0] for labels in (learnt, tested)]
    shares = [100 * each / max(each.sum(), 1) for each in counts]
    y = Axis.around("% of the labels", np.zeros(1), *shares)
    drawing = Drawing(title, Axis.around("measured", edges), y)
    names = ("training", "test")
    for name, shrink, each, share in zip(names, (0.0, 0.25), counts, shares, strict=True):
        for place, (start, end, count, height) in enumerate(zip(edges, edges[1:], each.tolist(), share, strict=False)):
            first, last = rounded[place : place + 2]
            text = f"{first:.12g} to {last:.12g}: {count} of {each.sum()} {name} labels"
            gap = shrink * (end - start)
            drawing.bar(start + gap, end - gap, height, text, name)
    return drawing.chart(words)


def strip_chart(title: str, points: Points, names: tuple[str, str], words: str) -> Chart:
    """Probabilities of class 1, one row of points per measured class; points are spread to show them all."""
    drawing = Drawing(
        title,
        Axis(f"predicted probability of {names[1]}", (0, 0.25, 0.5, 0.75, 1)),
        Axis("measured", (-0.5, 0, 1, 1.5), ("", *names, "")),
    )
    drawing.line("guide", [0.5, 0.5], [-0.5, 1.5])
    spread = np.random.default_rng(0).uniform(-0.3, 0.3, len(points.words))
    for label, predicted, shift, text in zip(points.measured, points.predicted, spread, points.words, strict=True):
        drawing.dot(predicted, label + shift, text)
    return drawing.chart(words)


def learning_chart(title: str, metric: str, rows: Sequence[int], facts: dict, words: str) -> Chart:
    """Scores with their intervals against the number of training rows; ``facts`` as ``curve_of_target``."""
    values = np.array(facts["values"], np.float64)
    ends = np.array([each or [np.nan, np.nan] for each in facts["interval"]])
    x = Axis.around("training molecules", np.zeros(1), np.array(rows))
    drawing = Drawing(title, x, Axis.around(metric, values, ends))
    known = np.isfinite(values)
    drawing.line("trend", np.array(rows)[known].tolist(), values[known].tolist())
    decimals = decimals_for([*values.tolist(), *ends.ravel().tolist()])
    for place in np.flatnonzero(known).tolist():
        low, high = ends[place].tolist()
        score, interval = shown(values[place], decimals), shown_interval(facts["interval"][place], decimals)
        text = f"{rows[place]:,} training molecules\n{metric} {score}\n95 % interval {interval}"
        drawing.dot(rows[place], values[place], text, (low, high))
    return drawing.chart(words)
