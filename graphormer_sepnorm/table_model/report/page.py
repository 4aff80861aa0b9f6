"""A run on a table as one page of HTML that needs no other file and no network.

Whatever comes from the user, such as the names of columns, SMILES and paths, is escaped by Jinja; pictures are embedded
as images, in which a browser runs nothing.
"""

import base64
from dataclasses import dataclass
from importlib import resources

TEMPLATE = "report.html"
KINDS = {"png": "image/png", "svg": "image/svg+xml"}


@dataclass(frozen=True)
class Picture:
    """A picture with what it shows.

    Attributes:
        kind: "png" or "svg".
        content: of the file.
        words: what it shows.
    """

    kind: str
    content: bytes
    words: str

    @property
    def uri(self) -> str:
        """The picture itself, as the source of an image."""
        return f"data:{KINDS[self.kind]};base64,{base64.b64encode(self.content).decode()}"


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    Attributes:
        header: of the columns.
        rows: as long as the header.
        words: what it shows.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: str = ""


@dataclass(frozen=True)
class Molecule:
    """A molecule with what is said of it; ``picture`` is None where it cannot be drawn."""

    smiles: str
    picture: Picture | None
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Section:
    """A part of the page; all but its title may be left out.

    Attributes:
        words: paragraphs.
        commands: to be copied.
    """

    title: str
    words: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()
    pictures: tuple[Picture, ...] = ()
    molecules: tuple[Molecule, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReportPage:
    """A page.

    Attributes:
        title: of the page.
        summary: the first paragraph.
        sections: the rest.
        version: of this package.
    """

    title: str
    summary: str
    sections: tuple[Section, ...]
    version: str


def render(report: ReportPage) -> bytes:
    """The page."""
    from jinja2 import Environment, StrictUndefined  # its import takes a while

    text = (resources.files("graphormer_sepnorm.resources") / TEMPLATE).read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(text).render(report=report).encode(errors="replace")
