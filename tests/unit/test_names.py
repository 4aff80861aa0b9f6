"""The public names, as programs, editors and type checkers see them."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import graphormer_sepnorm
from graphormer_sepnorm import MODULES

PACKAGE = Path(graphormer_sepnorm.__file__).parent
USER = """
from torch import nn
from graphormer_sepnorm import Graphormer, SepNorm
reveal_type(Graphormer.from_pretrained("zinc"))
reveal_type(SepNorm(8))
norm: nn.Module = SepNorm(8)
graphormer_sepnorm.Grafformer
"""


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


@pytest.mark.nightly
def test_a_type_checker_knows_the_classes_and_rejects_unknown_names(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text("import graphormer_sepnorm\n" + USER)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), "user.py"],
        env={**os.environ, "MYPYPATH": str(PACKAGE.parent)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert 'Revealed type is "graphormer_sepnorm.predict.pretrained.Graphormer"' in result.stdout
    assert 'Revealed type is "graphormer_sepnorm.layers.norms.SepNorm"' in result.stdout
    errors = [line for line in result.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 1 and 'Module has no attribute "Grafformer"' in errors[0]
