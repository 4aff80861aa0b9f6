"""Charts of a report as SVG: axes, points with their intervals, bars and lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from graphormer_sepnorm.report.words import environment

SMALL, LARGE = (400, 320), (520, 430)  # width and height of charts; large ones are on top of a report
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 30, 44
RADIUS = 3.5
TICKS = 6
STEPS = (1, 2, 2.5, 5, 10)  # between ticks, up to a power of ten
MOST_DOTS = 1_000  # of a chart
UNIT = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # ticks of an axis from 0 to 1
DIAGONAL = ([0.0, 1.0], [0.0, 1.0])
Line = tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray]  # x and y of its points


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

        finite = np.concatenate([np.ravel(each) for each in values])
        finite = finite[np.isfinite(finite)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        if low == high:
            low, high = low - 0.5, high + 0.5
        return cls(label, tuple(map(float, MaxNLocator(TICKS, steps=STEPS).tick_values(low, high))))

    def share(self, value: float) -> float:
        """The position of a value: 0 at the start of the axis, 1 at its end."""
        return (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])


class Dot(NamedTuple):
    """A point, with a vertical line for its interval; an arrow to the right for 1, and to the left for -1."""

    x: float
    y: float
    words: str  # shown on hover
    ends: Sequence[float] = (np.nan, np.nan)
    arrow: float = 0

    @property
    def has_interval(self) -> bool:
        return bool(np.isfinite(self.ends).all())


class HistogramBar(NamedTuple):
    start: float
    end: float
    height: float
    words: str
    kind: str  # training or test


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
        sides = {"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM, "radius": RADIUS}
        return environment().get_template("chart.svg").render(chart=self, **sides)
