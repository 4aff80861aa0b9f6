"""The report of a run on a table: one HTML page that needs no other file and no network.

Jinja escapes all user input, such as column names, SMILES and paths; charts come escaped from ``charts``. Pictures are
embedded as images, in which browsers run no scripts. The only script of the page is the one that shows the values of
marks in charts: the page's policy names it by its hash.
"""

import base64
import hashlib
from dataclasses import dataclass
from datetime import date
from importlib import resources
from typing import NamedTuple

TEMPLATE = "report.html"
SCRIPT = "report.js"
MEDIUM, LONG = 10, 24  # characters above which a cell has the room of two on a phone, and above which it may break
MOST_COLUMNS = 4  # of a table of short texts that fits on a phone


@dataclass(frozen=True)
class Card:
    """A number in large type with sentences below it.

    Attributes:
        title: description of the number.
        value: the number.
        unit: text behind the number, such as the name of a metric.
        lines: sentences.
    """

    title: str
    value: str
    unit: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A chart as SVG markup, in which all texts are escaped, and its description."""

    svg: str
    words: str


def data_uri(svg: bytes) -> str:
    """The content of an SVG file as the address of a picture, which needs no other request."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


@dataclass(frozen=True)
class Picture:
    """A picture, the content of an SVG file, and its description."""

    svg: bytes
    words: str

    @property
    def uri(self) -> str:
        """The picture as a data URI."""
        return data_uri(self.svg)


@dataclass(frozen=True)
class Grid:
    """A table of texts and small pictures.

    Attributes:
        header: names of the columns.
        rows: rows of cells, each as long as the header.
        words: description.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str | Picture, ...], ...]
    words: str = ""

    @property
    def is_wide(self) -> bool:
        """Whether a phone shows each row as a block, in which every cell has the name of its column."""
        cells = (cell for row in self.rows for cell in row)
        return len(self.header) > MOST_COLUMNS or any(isinstance(cell, str) and len(cell) > LONG for cell in cells)


@dataclass(frozen=True)
class Molecule:
    """A molecule with facts about it.

    Attributes:
        name: name of the molecule.
        smiles: SMILES of the molecule.
        picture: its structure; None if it cannot be drawn.
        facts: names and texts of facts.
        partner: another molecule that is shown with it.
    """

    name: str
    smiles: str
    picture: Picture | None
    facts: tuple[tuple[str, str], ...]
    partner: "Molecule | None" = None

    @property
    def parts(self) -> "tuple[Molecule, ...]":
        """The molecule and its partner."""
        return (self,) if self.partner is None else (self, self.partner)


class Command(NamedTuple):
    """A command or some code to copy, and what it does."""

    words: str
    text: str


@dataclass(frozen=True)
class Section:
    """A section of the page; everything except its title is optional.

    Attributes:
        words: paragraphs.
        commands: commands to copy.
    """

    title: str
    words: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()
    charts: tuple[Chart, ...] = ()
    pictures: tuple[Picture, ...] = ()
    molecules: tuple[Molecule, ...] = ()
    commands: tuple[Command, ...] = ()

    @property
    def anchor(self) -> str:
        """The name of the section in links."""
        return self.title.lower().replace(" ", "-")


@dataclass(frozen=True)
class ReportPage:
    """The page.

    Attributes:
        title: title of the page.
        summary: the first paragraph.
        cards: the most important numbers.
        notes: warnings, one sentence each.
        sections: the sections.
        version: version of this package.
    """

    title: str
    summary: str
    cards: tuple[Card, ...]
    notes: tuple[str, ...]
    sections: tuple[Section, ...]
    version: str


def render(report: ReportPage) -> bytes:
    """The page as HTML."""
    from jinja2 import Environment, StrictUndefined  # its import takes a while

    files = resources.files("graphormer_sepnorm.resources")
    text, script = ((files / name).read_text(encoding="utf-8") for name in (TEMPLATE, SCRIPT))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(text).render(
        report=report, script=script, digest=digest, long=LONG, medium=MEDIUM, day=date.today().isoformat()
    )
    return page.encode(errors="replace")
