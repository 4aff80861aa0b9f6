"""The reference of the commands, written from the commands themselves while the site is built."""

from collections.abc import Iterator

import typer
from sphinx.application import Sphinx
from typer import Context
from typer.core import TyperCommand

from graphormer_sepnorm.interfaces.commands import COMMANDS, alone

PROGRAM = "graphormer-sepnorm"
PLACE = "<!-- the commands -->"


def row(*cells: str) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def parameters(command: TyperCommand, context: Context) -> Iterator[str]:
    """A line for each argument and option, in the words of the command's own help; those of a panel under its name."""
    tables: dict[str, list[str]] = {}
    for parameter in command.get_params(context):
        name, text = parameter.get_help_record(context)
        lines = tables.setdefault(getattr(parameter, "rich_help_panel", None) or "", [])
        lines.append(row(f"`{name}`", text.replace("<", "\\<").replace("*", "\\*")))
    for panel, lines in tables.items():
        yield from (*(["", f"{panel}:"] if panel else []), "", row("argument or option", ""), row("---", "---"), *lines)


def section(name: str) -> str:
    """The help of a command, as Markdown."""
    command = typer.main.get_command(alone(name))
    context = Context(command, info_name=f"{PROGRAM} {name}")
    *paragraphs, example = command.help.replace("<", "\\<").split("\n\n")
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines = [
        f"## {name}",
        "",
        "\n\n".join(paragraphs),
        "",
        f"```console\n$ {' '.join(usage.split())}\n$ {' '.join(example.removeprefix('Example: ').split())}\n```",
        *parameters(command, context),
    ]
    return "\n".join(lines)


def write_commands(app: Sphinx, page: str, source: list[str]) -> None:
    """Puts the reference in its place on the page that has one."""
    if PLACE in source[0]:
        source[0] = source[0].replace(PLACE, "\n\n".join(map(section, COMMANDS)))


def setup(app: Sphinx) -> dict:
    app.connect("source-read", write_commands)
    return {"version": "1", "parallel_read_safe": True}
