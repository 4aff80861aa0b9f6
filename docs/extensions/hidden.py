"""Directives that only the site reads: those in comments of Markdown, which a reader of the repository does not see.

``<!-- {toctree}``, lines and ``-->`` are read as a fenced block of that directive.
"""

import re

from sphinx.application import Sphinx

HIDDEN = re.compile(r"^<!-- (\{[\w-]+\}\n.*?)^-->$", re.MULTILINE | re.DOTALL)


def show_directives(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = HIDDEN.sub(r"```\1```", source[0])


def setup(app: Sphinx) -> dict:
    app.connect("source-read", show_directives)
    return {"version": "1", "parallel_read_safe": True}
