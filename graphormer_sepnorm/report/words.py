"""The words of a report: macros in ``templates``, which read what is reported and return paragraphs.

Jinja escapes all user input of HTML and SVG, such as column names, SMILES and paths.
"""

import base64
import shlex
from functools import cache
from typing import TYPE_CHECKING

from graphormer_sepnorm.runs.numbers import counted, percent, shown, shown_interval, shown_together
from graphormer_sepnorm.tasks import METRICS

if TYPE_CHECKING:
    from jinja2 import Environment


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
    jinja.filters["together"] = shown_together
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


def metric_words(metric: str) -> str:
    """The name of a metric for a card: an error in full, with its abbreviation."""
    title = METRICS[metric].title
    name, _, meaning = terms().get(title, "").partition(": ")
    return f"{name} ({title})" if "error" in name and meaning else title


def quoted(value: object) -> str:
    """A word of a shell command."""
    return shlex.quote(str(value))


def data_uri(svg: bytes) -> str:
    """The content of an SVG file as the address of a picture, which needs no other request."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
