"""The commands: each parses, calls the package and prints; a result on standard output is one line of JSON.

A module is imported for its command only, whose function imports what it calls: help does not wait for PyTorch.
"""

import importlib
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from graphormer_sepnorm.errors import did_you_mean
from graphormer_sepnorm.interfaces.commands.shared import ListCommand, expanded
from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.system.signals import leaving_at_once
from graphormer_sepnorm.version import __version__

COMMANDS = {
    "train": "Train a model on your own table, or a Graphormer on a dataset, and score it on the test molecules.",
    "pretrain": "Pretrain a Graphormer on unlabelled molecules, to be fine-tuned with train --from OUT.",
    "evaluate": "Score a model of your table on its test molecules or on another table, or runs on a dataset.",
    "compare": "Compare runs on the test rows that all of them have, by a paired bootstrap of their scores.",
    "sweep": "Train every dataset with every norm and seed, skip finished runs, and summarize the scores.",
    "tune": "Search for a better recipe for your table, and compare it with the one it started from.",
    "explain": "Draw the contributions of atoms and fragments to a prediction.",
    "predict": "Predict properties of molecules: of every row of a table, or of SMILES.",
    "suggest": "Choose the molecules of a library to measure next: promising and diverse ones.",
    "update": "Score a model on new measurements, and fit it again to all rows.",
    "export": "Write a table model into one file, to share it.",
    "distill": "Train a small network that imitates a model of your table, to predict libraries of millions with it.",
    "embed": "Write the embedding of the CLS token for every row of a table, with its number, SMILES and error.",
    "serve": "Serve a web page that predicts drawn, pasted and uploaded molecules.",
    "info": "Describe a model: what it predicts, training data, scores, licence.",
    "analyze": "Measure the geometry of the CLS embeddings of a split, and compare several models.",
}
GROUPS = {
    "Your molecules": ("train", "predict", "explain", "suggest", "serve", "update", "export", "info"),
    "Better models": ("evaluate", "compare", "tune", "distill"),
    "Research": ("pretrain", "sweep", "embed", "analyze"),
}
MODULES = {"serve": "serve"}  # of commands that are not in ``models``
MODULES |= dict.fromkeys(("train", "tune", "sweep"), "train") | dict.fromkeys(
    ("predict", "suggest", "embed"), "predict"
)
OF_ALL_PROCESSES = ("train", "pretrain", "evaluate", "sweep", "tune")  # of torchrun; others run in the first one
PROGRAM: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


def alone(name: str) -> typer.Typer:
    with leaving_at_once():
        command = expanded(getattr(importlib.import_module(f"{__name__}.{MODULES.get(name, 'models')}"), name))
    program = typer.Typer(add_completion=False, **PROGRAM)
    run = command if name in OF_ALL_PROCESSES else in_first_process(command)
    at_once = leaving_at_once()(run)  # until it begins to compute, when an interruption has something to keep
    program.command(name, cls=ListCommand, context_settings=PROGRAM["context_settings"])(at_once)
    return program


class Commands(TyperGroup):
    """The group of all commands, which imports only the requested one."""

    def list_commands(self, ctx: object) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: object, cmd_name: str):
        return typer.main.get_command(alone(cmd_name)) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx, args: list[str]):
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}" + (did_you_mean(name, COMMANDS) or "."))
        if args == ["train"]:  # the script train.py trains a network on the sample then
            ctx.fail("name your table: graphormer-sepnorm train FILE; to train on the sample: train --dataset sample")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: object, formatter) -> None:
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name]) for name in names])

    def format_options(self, ctx, formatter) -> None:
        self.format_commands(ctx, formatter)
        with formatter.section("Options"):
            formatter.write_dl(filter(None, (each.get_help_record(ctx) for each in self.get_params(ctx))))


def show_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


app = typer.Typer(cls=Commands, no_args_is_help=True, **PROGRAM)


@app.callback()
def graphormer_sepnorm(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Learn a property of molecules from a table of SMILES and measured values, and predict it for other molecules.

    Run graphormer-sepnorm COMMAND --help for its options.

    Example: graphormer-sepnorm predict adme CCO c1ccccc1O
    """
