"""A report as one HTML page that needs no other file and no network: its parts and the layout.

Pictures are embedded as images, in which browsers run no scripts. The policy of the page names its only script by its
hash.
"""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib import resources
from typing import NamedTuple

from graphormer_sepnorm.report.charts import Chart
from graphormer_sepnorm.report.words import environment, terms
from graphormer_sepnorm.version import __version__

MEDIUM, LONG = 10, 24  # characters above which a cell has the room of two on a phone, and above which it may break


class Card(NamedTuple):
    """A number in large type with its title, the unit behind it, and sentences below it."""

    title: str
    value: str
    unit: str = ""
    lines: tuple[str, ...] = ()


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
