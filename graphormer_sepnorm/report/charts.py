"""Charts of a report as inline SVG. The title of a mark, which pages show on hover, gives its values.

All texts pass through ``xml.etree``, which escapes them.

Axis letters: M molecules, P points, C confidence levels.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np

from graphormer_sepnorm.output.column import PROBABILITY_DECIMALS
from graphormer_sepnorm.report.page import Chart
from graphormer_sepnorm.runs.numbers import decimals_for, shown, shown_interval
from graphormer_sepnorm.tasks.censored import is_bounded

WIDTH, HEIGHT = 400, 320
LARGE = (520, 430)  # of the chart on top of a report
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 30, 44
RADIUS = 3.5
TICKS = 6
STEPS = (1, 2, 2.5, 5, 10)  # between ticks, up to a power of ten
BINS = 20
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
    def texts(self) -> tuple[str, ...]:
        return self.names or tuple(f"{tick:.12g}" for tick in self.ticks)


@dataclass(frozen=True)
class Points:
    """Labelled predictions [P] of one target, the ends of their intervals if there are such, and words shown on hover.

    ``arrows`` is 1 where the measured value is above ``measured``, -1 where it is below; None: all are equal.
    """

    measured: np.ndarray
    predicted: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    words: Sequence[str]
    arrows: np.ndarray | None = None


def on_axis(y: np.ndarray, bounds: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Labels [M] or their bounds [M, 2], NaN where both are missing, and ``arrows`` as in ``Points``."""
    if bounds is None:
        return y, np.zeros(len(y))
    arrows = np.where(is_bounded(y, bounds), np.isfinite(bounds) @ [1.0, -1.0], 0)
    return np.where(arrows > 0, bounds[:, 0], np.where(arrows < 0, bounds[:, 1], y)), arrows


class Drawing:
    """A chart with two axes. Coordinates of its methods are values on the axes."""

    def __init__(self, title: str, x: Axis, y: Axis, size: tuple[int, int] = (WIDTH, HEIGHT)):
        self.x, self.y = x, y
        self.width, self.height = size
        box = f"0 0 {self.width} {self.height}"
        self.root = ElementTree.Element("svg", {"viewBox": box, "role": "img", "aria-label": title})
        self.text(title, LEFT, 18, "start", "title")
        for tick, text in zip(x.ticks, x.texts, strict=True):
            self.line("grid", [tick, tick], [y.ticks[0], y.ticks[-1]])
            self.text(text, self.across(tick), self.height - BOTTOM + 16, "middle")
        for tick, text in zip(y.ticks, y.texts, strict=True):
            self.line("grid", [x.ticks[0], x.ticks[-1]], [tick, tick])
            self.text(text, LEFT - 6, self.up(tick) + 4, "end")
        self.text(x.label, (LEFT + self.width - RIGHT) / 2, self.height - 8, "middle")
        middle = (TOP + self.height - BOTTOM) / 2
        self.text(y.label, 14, middle, "middle", turn=f"rotate(-90 14 {middle:g})")

    def across(self, value: float) -> float:
        return LEFT + self.x.share(value) * (self.width - LEFT - RIGHT)

    def up(self, value: float) -> float:
        return self.height - BOTTOM - self.y.share(value) * (self.height - TOP - BOTTOM)

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
        ElementTree.SubElement(self.root if group is None else group, "polyline", {"class": kind, "points": points})

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
        sizes = {"x": left, "y": top, "width": right - left - 1, "height": self.height - BOTTOM - top}
        settings = {name: f"{max(value, 0):.1f}" for name, value in sizes.items()}
        ElementTree.SubElement(self.mark(words), "rect", {"class": f"bar {kind}".strip(), **settings})

    def chart(self, words: str) -> Chart:
        return Chart(ElementTree.tostring(self.root, encoding="unicode"), words)


def parity_chart(title: str, points: Points, words: str) -> Chart:
    """Predicted against measured values, with their intervals."""
    intervals = [] if points.low is None or points.high is None else [points.low, points.high]
    ticks = Axis.around("", points.measured, points.predicted, *intervals).ticks
    count, ends = len(points.words), (ticks[0], ticks[-1])
    ranges = zip(*intervals, strict=True) if intervals else [None] * count
    arrows = [0.0] * count if points.arrows is None else points.arrows
    dots = zip(points.measured, points.predicted, points.words, ranges, arrows, strict=True)
    axes = Axis("measured", ticks), Axis("predicted", ticks)
    return lines_chart(title, axes, {"guide": (ends, ends)}, words, dots, LARGE)


def residual_chart(title: str, points: Points, words: str) -> Chart:
    """Measured minus predicted values against predicted values."""
    residuals = points.measured - points.predicted
    x, y = Axis.around("predicted", points.predicted), Axis.around("measured minus predicted", residuals, np.zeros(1))
    guide = {"guide": ([x.ticks[0], x.ticks[-1]], [0.0, 0.0])}
    return lines_chart(title, (x, y), guide, words, zip(points.predicted, residuals, points.words, strict=True))


def coverage_chart(title: str, confidences: Sequence[float], shares: np.ndarray, words: str) -> Chart:
    """Shares of values inside their interval [C], NaN where undefined, against confidence levels [C]."""
    names = tuple(f"{100 * tick:.0f}" for tick in UNIT)
    axes = Axis("confidence level, %", UNIT, names), Axis("coverage, %", UNIT, names)
    known = np.isfinite(shares)
    trend = np.array(confidences)[known].tolist(), shares[known].tolist()
    texts = "{:.0f} % intervals\n{:.0f} % of the test values are inside"
    dots = [(level, share, texts.format(100 * level, 100 * share)) for level, share in zip(*trend, strict=True)]
    return lines_chart(title, axes, {"guide": DIAGONAL, "trend": trend}, words, dots)


def reliability_chart(
    title: str, before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray], words: str
) -> Chart:
    """Shares of positives against mean predicted probabilities, both [P], before and after calibration."""
    texts = [
        f"mean predicted probability {shown(probability, PROBABILITY_DECIMALS)}\n{100 * share:.0f} % are positive"
        for probability, share in zip(*after, strict=True)
    ]
    axes = Axis("mean predicted probability", UNIT), Axis("share of positives", UNIT)
    lines: dict[str, Line] = {"guide": DIAGONAL, "mean": before, "trend": after}
    return lines_chart(title, axes, lines, words, zip(*after, texts, strict=True))


def lines_chart(
    title: str,
    axes: tuple[Axis, Axis],
    lines: Mapping[str, Line],
    words: str,
    dots: Iterable[Sequence] = (),
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Chart:
    """Lines by their kind: blue "trend", orange "mean" or dashed "guide"; and points, as ``Drawing.dot``."""
    drawing = Drawing(title, *axes, size)
    for kind, points in lines.items():
        drawing.line(kind, *(np.asarray(each).tolist() for each in points))
    for dot in dots:
        drawing.dot(*dot)
    return drawing.chart(words)


def histogram_chart(title: str, learnt: np.ndarray, tested: np.ndarray, words: str) -> Chart:
    """Shares of labels in bins; the test labels [P] as narrower bars before the training labels [M]."""
    both = np.concatenate([learnt, tested])
    edges = np.histogram_bin_edges(both, min(BINS, max(len(np.unique(both)), 1)))
    rounded = edges.round(decimals_for([edges[1] - edges[0]])).tolist()
    counts = [np.histogram(labels, edges)[0] for labels in (learnt, tested)]
    shares = [100 * each / max(each.sum(), 1) for each in counts]
    drawing = Drawing(title, Axis.around("measured", edges), Axis.around("% of the labels", np.zeros(1), *shares))
    for name, shrink, each, share in zip(("training", "test"), (0.0, 0.25), counts, shares, strict=True):
        for place, (start, end, count, height) in enumerate(zip(edges, edges[1:], each.tolist(), share, strict=False)):
            first, last = rounded[place : place + 2]
            text = f"{first:.12g} to {last:.12g}: {count} of {each.sum()} {name} labels"
            gap = shrink * (end - start)
            drawing.bar(start + gap, end - gap, height, text, name)
    return drawing.chart(words)


def strip_chart(title: str, points: Points, names: tuple[str, str], words: str) -> Chart:
    """Probabilities of class 1, one row of points per measured class; points are spread to show them all."""
    axes = (
        Axis(f"predicted probability of {names[1]}", (0, 0.25, 0.5, 0.75, 1)),
        Axis("measured", (-0.5, 0, 1, 1.5), ("", *names, "")),
    )
    rows = points.measured + np.random.default_rng(0).uniform(-0.3, 0.3, len(points.words))
    guide = {"guide": ([0.5, 0.5], [-0.5, 1.5])}
    return lines_chart(title, axes, guide, words, zip(points.predicted, rows, points.words, strict=True), LARGE)


def learning_chart(title: str, metric: str, rows: Sequence[int], facts: dict, words: str) -> Chart:
    """Scores with their intervals against the number of training rows; ``facts`` as ``curve_of_target``."""
    values = np.array(facts["values"], np.float64)
    ends = np.array([each or [np.nan, np.nan] for each in facts["interval"]])
    x = Axis.around("training molecules", np.zeros(1), np.array(rows))
    known, dots = np.flatnonzero(np.isfinite(values)), []
    decimals = decimals_for([*values.tolist(), *ends.ravel().tolist()])
    for place in known.tolist():
        score, interval = shown(values[place], decimals), shown_interval(facts["interval"][place], decimals)
        text = f"{rows[place]:,} training molecules\n{metric} {score}\n95 % interval {interval}"
        dots.append((rows[place], values[place], text, tuple(ends[place].tolist())))
    trend = {"trend": (np.array(rows)[known], values[known])}
    return lines_chart(title, (x, Axis.around(metric, values, ends)), trend, words, dots)
