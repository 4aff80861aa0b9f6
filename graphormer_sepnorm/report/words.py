"""The words of a report: macros in ``templates``, which get numbers and other facts."""

from functools import cache
from typing import TYPE_CHECKING

from graphormer_sepnorm.runs.numbers import counted, percent, shown, shown_interval

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> "Environment":
    """The templates; only HTML and SVG are escaped, once, with all words in them."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # their import takes a while

    found = Environment(
        loader=PackageLoader("graphormer_sepnorm.report"),
        autoescape=select_autoescape(("html", "svg")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"counted": counted, "ends": shown_interval, "percent": percent, "shown": shown}
    found.filters |= {"thousands": "{:,}".format, "begin": lambda text: f"{text[:1].upper()}{text[1:]}"}
    return found


def words(name: str, /, **facts: object) -> tuple[str, ...]:
    """The paragraphs of a macro, ``FILE.MACRO``, which are separated by empty lines."""
    file, _, macro = name.partition(".")
    text = getattr(environment().get_template(f"{file}.jinja").module, macro)(**facts)
    return tuple(" ".join(paragraph.split()) for paragraph in str(text).split("\n\n") if paragraph.strip())


def line(name: str, /, **facts: object) -> str:
    """The only paragraph of a macro; empty if it has none."""
    return " ".join(words(name, **facts))
