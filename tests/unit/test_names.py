"""The public names, as programs, editors and type checkers see them."""

import ast
import importlib
from pathlib import Path

import pytest

import graphormer_sepnorm
from graphormer_sepnorm import MODULES

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
