"""The commands: each is a module that parses, calls the package and prints; its last line of output is JSON.

A new one is a module with a function of its name, and a line in ``COMMANDS``. A module is imported when its command is
run or its help is read, and its function imports what it calls, so that help does not wait for PyTorch.
"""

import importlib
from typing import Annotated

import typer
from typer.core import TyperGroup

from graphormer_sepnorm.interfaces.commands.expanding import ListCommand
from graphormer_sepnorm.system.signals import leaving_at_once
from graphormer_sepnorm.version import __version__

COMMANDS = {
    "train": "Train a Graphormer and score its best checkpoint on the test molecules.",
    "pretrain": "Pre-train a Graphormer on molecules without labels, to be fine-tuned by train --from OUT.",
    "evaluate": "Score a run, or the mean of several, on a split of its dataset, with OGB's evaluators.",
    "compare": "Compare runs that were tested on the same rows, by a paired bootstrap of their test scores.",
    "sweep": "Train every dataset with every norm and seed, as far as it is unfinished, and sum the scores up.",
    "tune": "Search for a recipe that suits your table, and say whether it is better than the one it started from.",
    "explain": "Draw which atoms and fragments a prediction rests on.",
    "predict": "Predict the targets of a model for every row of a table.",
    "suggest": "Choose the molecules of a library to measure next: those that promise most and differ from each other.",
    "embed": "Write the embedding of the CLS token for every row of a table, with its number, SMILES and error.",
    "serve": "Show a page in the browser that predicts drawn, pasted and uploaded molecules.",
    "info": "Say what a model is: architecture, training data, scores, vocabulary, licence.",
    "analyze": "Measure how the CLS embeddings of a split lie in space, and draw several models side by side.",
}


def alone(name: str) -> typer.Typer:
    """The command of that name in ``COMMANDS``, as a program of its own."""
    with leaving_at_once():
        module = importlib.import_module(f"{__name__}.{name}")
    program = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    program.command(name, cls=ListCommand)(getattr(module, name))
    return program


class Commands(TyperGroup):
    """The group of all commands, of which the one that is asked for is imported."""

    def list_commands(self, ctx: object) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: object, cmd_name: str):
        return typer.main.get_command(alone(cmd_name)) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: object, formatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def show_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


app = typer.Typer(
    cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)


@app.callback()
def graphormer_sepnorm(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Graphormer with separate normalization of the CLS token, for molecular property prediction.

    What a command needs to know: graphormer-sepnorm COMMAND --help.

    Example: graphormer-sepnorm predict zinc CCO c1ccccc1O
    """
