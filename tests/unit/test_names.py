"""The public names, as programs, editors and type checkers see them."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import graphormer_sepnorm
from graphormer_sepnorm import MODULES
from graphormer_sepnorm.version import __version__

PACKAGE = Path(graphormer_sepnorm.__file__).parent


def imported_for_type_checkers() -> dict[str, str]:
    """Name -> module, below the package, of the imports that are only for type checkers."""
    (block,) = (node for node in ast.parse((PACKAGE / "__init__.py").read_text()).body if isinstance(node, ast.If))
    return {
        alias.name: node.module.removeprefix("graphormer_sepnorm.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_and_programs_see_the_same_names():
    assert imported_for_type_checkers() == MODULES
    assert set(graphormer_sepnorm.__all__) == {"__version__", *MODULES} == set(dir(graphormer_sepnorm))


@pytest.mark.parametrize("name", MODULES)
def test_a_name_is_what_its_module_defines(name):
    module = importlib.import_module(f"graphormer_sepnorm.{MODULES[name]}")
    assert getattr(graphormer_sepnorm, name) is getattr(module, name)
    assert getattr(module, name).__module__ == module.__name__


def test_an_unknown_name_is_reported():
    with pytest.raises(AttributeError, match="has no attribute 'SepNrom'; did you mean 'SepNorm'"):
        graphormer_sepnorm.SepNrom  # noqa: B018


REPOSITORY = Path(__file__).parents[2]


def test_every_file_that_names_the_version_names_this_one():
    cited = re.search(r"^version: (.*)$", (REPOSITORY / "CITATION.cff").read_text(), re.M)
    newest = re.search(r"^## \[(\d.*?)\]", (REPOSITORY / "CHANGELOG.md").read_text(), re.M)
    assert cited[1] == newest[1] == __version__


def test_no_command_installs_another_pytorch_than_the_package_asks_for():
    """Only ``setup.cfg`` has bounds; an installation of the package sees the CPU builds beside the default ones."""
    files = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), REPOSITORY / "Dockerfile"]
    texts = [path.read_text(encoding="utf-8").replace("\\\n", " ") for path in files]
    commands = [line for text in texts for line in re.findall(r"pip install [^\n`#]*", text)]
    assert [line for line in commands if "--extra-index-url https://download.pytorch.org/whl/cpu" in line]
    assert not [line for line in commands if re.search(r"[ \"']torch\b(?!-)|--index-url", line)]
