"""Starting: a command imports what it needs and nothing else; help, version and errors before any work."""

import re

import pytest
import typer

from graphormer_sepnorm.interfaces import commands
from graphormer_sepnorm.runs.zoo import PRETRAINED, shipped_models, shipped_tables
from graphormer_sepnorm.version import __version__
from tests.robustness import processes

HEAVY = {"torch", "numpy", "rdkit", "pydantic", "torch_geometric", "numba", "ogb", "scipy", "sklearn", "pandas", "tqdm"}
NOT_FOR_PREDICTING = {
    "torch_geometric", "torch._dynamo", "transformers", "pandas", "ogb", "sklearn", "scipy.sparse", "scipy.special",
    "scipy.stats", "matplotlib", "captum", "huggingface_hub", "requests",
}  # fmt: skip
LEFT_BEHIND = """
import atexit, sys
atexit.register(lambda: print("modules", *sys.modules))
"""
COMMAND = """
from graphormer_sepnorm.interfaces.cli import main
main()
"""


def modules_after(*arguments: object, code: str = COMMAND) -> set[str]:
    """The modules that a command, or other code, has imported when it ends."""
    done = processes.command("-c", LEFT_BEHIND + code, *arguments)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_the_standard_library_and_typer_alone(arguments):
    modules = modules_after(*arguments)
    assert "typer" in modules
    assert not sorted(modules & (HEAVY | NOT_FOR_PREDICTING))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["predict", "info", "pretrain"])
def test_the_help_of_a_command_imports_what_typer_does(name):
    modules = modules_after(name, "--help")
    assert not sorted(modules & (HEAVY | NOT_FOR_PREDICTING) - {"pydantic"})  # recent releases of typer convert with it


def function(name: str):
    (registered,) = commands.alone(name).registered_commands
    return registered.callback


def test_the_list_says_what_a_command_says_of_itself():
    assert {name: function(name).__doc__.splitlines()[0] for name in commands.COMMANDS} == commands.COMMANDS
    assert sorted(name for names in commands.GROUPS.values() for name in names) == sorted(commands.COMMANDS)


@pytest.mark.parametrize("name", [*commands.COMMANDS, None])
def test_the_example_of_a_command_is_one(name):
    text = (function(name) if name else commands.app.registered_callback.callback).__doc__
    (line,) = re.findall(r"^ *Example: (.*)$", text, re.MULTILINE)
    program, named, *arguments = line.replace('"', "").split()
    assert program == "graphormer-sepnorm" and name in (named, None)
    typer.main.get_command(commands.alone(named)).make_context(named, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*sorted(shipped_models().keys() - PRETRAINED), *shipped_tables()])
def test_a_shipped_model_imports_what_it_needs_to_predict(name):
    """Numba looks for BLAS in SciPy, and counts of table models are sparse arrays of it."""
    modules = modules_after("predict", name, "CCO")
    needed = {"scipy.sparse"} if name in shipped_tables() else set()
    assert {"torch", "rdkit"} <= modules
    assert not sorted(modules & (NOT_FOR_PREDICTING - needed))


def test_the_module_is_the_command_where_no_script_is_on_the_path():
    shown = processes.command("-m", "graphormer_sepnorm", "--version")
    assert (shown.returncode, shown.stdout) == (0, f"{__version__}\n")
