"""The notebooks are stored with their outputs, which a reader of the repository and the site see."""

import ast
import json
import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs/notebooks").glob("*.ipynb"))
MOST_BYTES = 200_000
REFRESH = "python -m tests.notebooks stores the outputs"
every_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(notebook: Path) -> list[dict]:
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]


def shows(source: str) -> bool:
    """Whether a cell ends with a value or prints at its top level; a cell of the shell always does."""
    if source.startswith("%%bash"):
        return True
    return isinstance(ast.parse(source).body[-1], ast.Expr) or bool(re.search(r"^(print|plt\.show)\(", source, re.M))


@every_notebook
def test_every_cell_that_shows_something_has_its_output(notebook):
    for number, cell in enumerate(code_cells(notebook), 1):
        assert cell["execution_count"] == number, REFRESH
        assert cell["outputs"] or not shows("".join(cell["source"])), f"{cell['id']}: {REFRESH}"


@every_notebook
def test_outputs_are_short_and_show_nothing_of_the_machine(notebook):
    assert notebook.stat().st_size < MOST_BYTES
    for cell in code_cells(notebook):
        assert cell["metadata"] == {}
        for output in cell["outputs"]:
            assert output["output_type"] != "error" and output.get("name") != "stderr", f"{cell['id']}: {REFRESH}"
            data = output.get("data", {}) | {"text": output.get("text", "")}
            text = "".join("".join(part) for kind, part in data.items() if kind != "image/png")
            assert not re.search(r"/(work|tmp|root|home|opt|usr|Users)/|Warning:|\d+%\||widget", text), cell["id"]


@every_notebook
@pytest.mark.nightly
def test_a_run_gives_the_same_kinds_of_outputs(notebook):
    """Numbers may differ in the last digit from processor to processor, so they are not compared."""
    executed = pytest.importorskip("tests.notebooks").executed(notebook)
    found = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert [kinds(cell["outputs"]) for cell in found] == [kinds(cell["outputs"]) for cell in code_cells(notebook)]


def kinds(outputs: list[dict]) -> list[list[str]]:
    return [[output["output_type"], *sorted(output.get("data", {}))] for output in outputs]
