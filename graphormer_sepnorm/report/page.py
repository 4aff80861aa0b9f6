"""A report as one HTML page that needs no other file and no network: its parts, their words, and the layout.

Words are macros in ``templates``. Jinja escapes all user input, such as column names, SMILES and paths. Pictures are
embedded as images, in which browsers run no scripts. The policy of the page names its only script by its hash.
"""

import base64
import hashlib
import json
import re
import shlex
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphormer_sepnorm.runs.numbers import counted, percent, shown, shown_interval
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

MEDIUM, LONG = 10, 24  # characters above which a cell has the room of two on a phone, and above which it may break
MOST_COLUMNS = 4  # of a table of short texts that fits on a phone
SMALL, LARGE = (400, 320), (520, 430)  # width and height of charts; large ones are on top of a report
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 30, 44
RADIUS = 3.5
TICKS = 6
STEPS = (1, 2, 2.5, 5, 10)  # between ticks, up to a power of ten
MOST_POINTS = 1_000  # of a chart
UNIT = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # ticks of an axis from 0 to 1
DIAGONAL = ([0.0, 1.0], [0.0, 1.0])
Line = tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray]  # x and y of its points


@cache
def environment() -> "Environment":
    """The templates; only HTML and SVG are escaped, once, with all words in them."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # their import takes a while

    jinja = Environment(
        loader=PackageLoader("graphormer_sepnorm.report"),
        autoescape=select_autoescape(("html", "svg")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.filters |= {"counted": counted, "ends": shown_interval, "percent": percent, "shown": shown, "uri": data_uri}
    jinja.filters |= {"thousands": "{:,}".format, "begin": lambda text: f"{text[:1].upper()}{text[1:]}"}
    jinja.filters |= {"factor": lambda number: f"{float(f'{number:.2g}'):,.12g}", "quote": quoted}
    return jinja


def blocks(name: str, /, **facts: object) -> list[str]:
    """The parts of a macro, ``FILE.MACRO``, which are separated by empty lines."""
    file, _, macro = name.partition(".")
    text = getattr(environment().get_template(f"{file}.jinja").module, macro)(**facts)
    return [part.strip() for part in str(text).split("\n\n") if part.strip()]


def words(name: str, /, **facts: object) -> tuple[str, ...]:
    return tuple(" ".join(paragraph.split()) for paragraph in blocks(name, **facts))


def line(name: str, /, **facts: object) -> str:
    """The only paragraph of a macro; empty if it has none."""
    return " ".join(words(name, **facts))


def terms() -> dict[str, str]:
    meanings: dict[str, str] = vars(environment().get_template("terms.jinja").module)["terms"]
    return meanings


class Card(NamedTuple):
    """A number in large type with its title, the unit behind it, and sentences below it."""

    title: str
    value: str
    unit: str = ""
    lines: tuple[str, ...] = ()


def quoted(value: object) -> str:
    """A word of a shell command."""
    return shlex.quote(str(value))


def data_uri(svg: bytes) -> str:
    """The content of an SVG file as the address of a picture, which needs no other request."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


class Picture(NamedTuple):
    svg: bytes
    words: str  # its description


class Grid(NamedTuple):
    """A table of texts and small pictures, and its description."""

    header: tuple[str, ...]
    rows: tuple[tuple[str | Picture, ...], ...]
    words: str = ""

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str | Picture]], words: str = "") -> "Grid":
        return cls(tuple(columns), tuple(zip(*columns.values(), strict=True)), words)

    @property
    def is_wide(self) -> bool:
        """Whether a phone shows each row as a block, in which every cell has the name of its column."""
        cells = (cell for row in self.rows for cell in row)
        return len(self.header) > MOST_COLUMNS or any(isinstance(cell, str) and len(cell) > LONG for cell in cells)


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


class Molecule(NamedTuple):
    """A molecule with the names and texts of facts about it, and another one that is shown with it."""

    name: str
    smiles: str
    picture: Picture | None
    facts: tuple[tuple[str, str], ...]
    partner: "Molecule | None" = None


class Section(NamedTuple):
    """A section of the page; everything except its title is optional. Its words are paragraphs."""

    title: str
    words: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()
    charts: tuple[Chart, ...] = ()
    pictures: tuple[Picture, ...] = ()
    molecules: tuple[Molecule, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()  # what one does, and the command, or some code, to copy


@dataclass(frozen=True)
class ReportPage:
    title: str
    summary: str
    cards: tuple[Card, ...] = ()
    notes: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    verdict: tuple[str, ...] = ()  # on each target, and its chart: these come first
    hero: tuple[Chart, ...] = ()
    structures: Mapping[str, str] = field(default_factory=dict)  # SVG by the SMILES that a mark names


def render(report: ReportPage) -> bytes:
    script = (resources.files(__package__) / "templates" / "report.js").read_text(encoding="utf-8")
    structures = zlib.compress(json.dumps(dict(report.structures)).encode(), 9) if report.structures else b""
    facts = {
        "script": script,
        "digest": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "packed": base64.b64encode(structures).decode(),
        "version": __version__,
        "day": date.today().isoformat(),
    }
    page = environment().get_template("report.html").render(report=report, long=LONG, medium=MEDIUM, **facts)
    return page.encode(errors="replace")


def glossary(cards: Sequence[Card], sections: Sequence[Section]) -> Section:
    """The terms that occur in the other parts of a report."""
    text = repr((cards, sections)).replace("out-of-fold", "out of fold")
    rows = tuple((term, meaning) for term, meaning in terms().items() if re.search(rf"(?i:\b{term}\b)", text))
    return Section("Glossary", grids=(Grid(("term", "meaning"), rows),))


def metric_words(metric: str) -> str:
    """The name of a metric for a card: an error in full, with its abbreviation."""
    title = METRICS[metric].title
    name, _, meaning = terms().get(title, "").partition(": ")
    return f"{name} ({title})" if "error" in name and meaning else title
