"""The report of a run on a table: one HTML page that needs no other file and no network.

Jinja escapes all user input, such as column names, SMILES and paths; charts come escaped from ``charts``. Pictures are
embedded as images, in which browsers run no scripts. The only script of the page is the one that shows the values of
marks in charts and saves charts: the page's policy names it by its hash.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib import resources
from typing import NamedTuple

from graphormer_sepnorm.report.words import environment

MEDIUM, LONG = 10, 24  # characters above which a cell has the room of two on a phone, and above which it may break
MOST_COLUMNS = 4  # of a table of short texts that fits on a phone


@dataclass(frozen=True)
class Card:
    """A number in large type with its title, the unit behind it, and sentences below it."""

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
    """A table of texts and small pictures, and its description."""

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
    """A molecule with the names and texts of facts about it, and another one that is shown with it."""

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
    """A section of the page; everything except its title is optional. Its words are paragraphs."""

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
    """The page: its first paragraph, the most important numbers, warnings, and its sections.

    ``verdict`` has a sentence on each target, and ``hero`` the chart of each, which come first; ``structures`` drawings
    of molecules by their SMILES, as SVG, which appear with the words of marks that contain this SMILES.
    """

    title: str
    summary: str
    cards: tuple[Card, ...]
    notes: tuple[str, ...]
    sections: tuple[Section, ...]
    version: str
    verdict: tuple[str, ...] = ()
    hero: tuple[Chart, ...] = ()
    structures: Mapping[str, str] = field(default_factory=dict)


def render(report: ReportPage) -> bytes:
    """The page as HTML."""
    script = (resources.files(__package__) / "templates" / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    facts = {"script": script, "digest": digest, "long": LONG, "medium": MEDIUM, "day": date.today().isoformat()}
    if report.structures:
        content = json.dumps(dict(report.structures)).encode()
        facts["packed"] = base64.b64encode(zlib.compress(content, 9)).decode()
    return environment().get_template("report.html").render(report=report, **facts).encode(errors="replace")
