"""The report of a run on a table: one HTML page that needs no other file and no network.

Jinja escapes all user input, such as column names, SMILES and paths. Pictures are embedded as images, in which browsers
run no scripts. The policy of the page names its only script by its hash.
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
from graphormer_sepnorm.report.words import environment
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.version import __version__

MEDIUM, LONG = 10, 24  # characters above which a cell has the room of two on a phone, and above which it may break
MOST_COLUMNS = 4  # of a table of short texts that fits on a phone
TERMS = {
    "MAE": "mean absolute error: the mean distance between predicted and measured values",
    "RMSE": "root mean square error: like the MAE, but large errors count more",
    "R2": "share of the variance of the measured values that is explained; 1 is perfect, 0 is as good as their mean",
    "Spearman": "rank correlation: 1 if the order of the molecules is right, 0 if it is random",
    "ROC-AUC": "probability that a positive is ranked above a negative; 1 is perfect, 0.5 is chance",
    "PR-AUC": "area under precision against recall; 1 is perfect, the share of positives is chance",
    "accuracy": "share of the molecules whose most probable class is the measured one",
    "log loss": "mean negative logarithm of the probability of the measured class; 0 is perfect",
    "Brier score": "mean squared difference between the probability and the label, 0 or 1; 0 is perfect",
    "calibration error": "mean difference between predicted probabilities and the observed share of positives",
    "sensitivity": "share of the positives that are predicted as positive",
    "specificity": "share of the negatives that are predicted as negative",
    "precision": "share of positives among the molecules that are predicted as positive",
    "90 % set": "the classes that cannot be ruled out at 90 % confidence",
    "concordance": "share of the pairs of labels, bounds among them, whose order is known and predicted; 0.5 is chance",
    "coverage": "share of the measured values that are inside their interval",
    "out of fold": "predicted by a model that was fitted without the fold of the molecule",
    "interval": "of a prediction: the range that contains the measured value with this confidence, such as 90 %; of a "
    "score: the range that is likely to contain the score on very many molecules of the same kind",
    "similarity": "Tanimoto similarity of Morgan fingerprints: 1 for the same fragments, 0 for no common fragment",
}


class Card(NamedTuple):
    """A number in large type with its title, the unit behind it, and sentences below it."""

    title: str
    value: str
    unit: str = ""
    lines: tuple[str, ...] = ()


def data_uri(svg: bytes) -> str:
    """The content of an SVG file as the address of a picture, which needs no other request."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


class Picture(NamedTuple):
    """A picture, the content of an SVG file, and its description."""

    svg: bytes
    words: str

    @property
    def uri(self) -> str:
        return data_uri(self.svg)


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


class Molecule(NamedTuple):
    """A molecule with the names and texts of facts about it, and another one that is shown with it."""

    name: str
    smiles: str
    picture: Picture | None
    facts: tuple[tuple[str, str], ...]
    partner: "Molecule | None" = None


class Command(NamedTuple):
    """A command or some code to copy, and what it does."""

    words: str
    text: str


class Section(NamedTuple):
    """A section of the page; everything except its title is optional. Its words are paragraphs."""

    title: str
    words: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()
    charts: tuple[Chart, ...] = ()
    pictures: tuple[Picture, ...] = ()
    molecules: tuple[Molecule, ...] = ()
    commands: tuple[Command, ...] = ()


@dataclass(frozen=True)
class ReportPage:
    """The page: ``verdict`` on and ``hero``, the chart, of each target come first, then the other parts in their order.

    ``structures`` has drawings of molecules as SVG by their SMILES, which appear with a mark that names this SMILES.
    """

    title: str
    summary: str
    cards: tuple[Card, ...] = ()
    notes: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    verdict: tuple[str, ...] = ()
    hero: tuple[Chart, ...] = ()
    structures: Mapping[str, str] = field(default_factory=dict)


def render(report: ReportPage) -> bytes:
    """The page as HTML."""
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
    rows = tuple((term, meaning) for term, meaning in TERMS.items() if re.search(rf"(?i:\b{term}\b)", text))
    return Section("Glossary", grids=(Grid(("term", "meaning"), rows),))


def metric_words(metric: str) -> str:
    """The name of a metric for a card: an error in full, with its abbreviation."""
    title = METRICS[metric].title
    name, _, meaning = TERMS.get(title, "").partition(": ")
    return f"{name} ({title})" if "error" in name and meaning else title
