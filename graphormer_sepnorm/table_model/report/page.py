"""The report of a run on a table: one HTML page that needs no other file and no network.

Jinja escapes all user input, such as column names, SMILES and paths. Pictures are embedded as images, in which browsers
run no scripts.
"""

import base64
from dataclasses import dataclass
from importlib import resources

TEMPLATE = "report.html"
KINDS = {"png": "image/png", "svg": "image/svg+xml"}


@dataclass(frozen=True)
class Picture:
    """A picture and its description.

    Attributes:
        kind: "png" or "svg".
        content: content of the file.
        words: description.
    """

    kind: str
    content: bytes
    words: str

    @property
    def uri(self) -> str:
        """The picture as a data URI."""
        return f"data:{KINDS[self.kind]};base64,{base64.b64encode(self.content).decode()}"


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    Attributes:
        header: names of the columns.
        rows: rows of texts, each as long as the header.
        words: description.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: str = ""


@dataclass(frozen=True)
class Molecule:
    """A molecule with facts about it; ``picture`` is None if it cannot be drawn."""

    smiles: str
    picture: Picture | None
    facts: tuple[tuple[str, str], ...]


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
    pictures: tuple[Picture, ...] = ()
    molecules: tuple[Molecule, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReportPage:
    """The page.

    Attributes:
        title: title of the page.
        summary: the first paragraph.
        sections: the sections.
        version: version of this package.
    """

    title: str
    summary: str
    sections: tuple[Section, ...]
    version: str


def render(report: ReportPage) -> bytes:
    """The page as HTML."""
    from jinja2 import Environment, StrictUndefined  # its import takes a while

    text = (resources.files("graphormer_sepnorm.resources") / TEMPLATE).read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(text).render(report=report).encode(errors="replace")
