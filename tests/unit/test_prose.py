"""Words that docstrings and documentation avoid, in the folders and pages that have been rewritten."""

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FOLDERS = [
    "graphormer_sepnorm",
    "graphormer_sepnorm/chem",
    "graphormer_sepnorm/datasets",
    "graphormer_sepnorm/encodings",
    "graphormer_sepnorm/inference",
    "graphormer_sepnorm/interfaces",
    "graphormer_sepnorm/interfaces/commands",
    "graphormer_sepnorm/kernels",
    "graphormer_sepnorm/layers",
    "graphormer_sepnorm/library",
    "graphormer_sepnorm/runs",
    "graphormer_sepnorm/search",
    "graphormer_sepnorm/system",
    "graphormer_sepnorm/table_model",
    "graphormer_sepnorm/table_model/members",
    "graphormer_sepnorm/table_model/report",
    "graphormer_sepnorm/tables",
    "graphormer_sepnorm/tasks",
    "graphormer_sepnorm/training",
    "graphormer_sepnorm/training/objectives",
]
PAGES = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "data/README.md",
    "data/ogbg-molhiv/README.md",
    "data/sample/README.md",
    "data/zinc/README.md",
    "docs/api.md",
    "docs/commands.md",
    "docs/design.md",
    "docs/extending.md",
    "docs/explain.md",
    "docs/fidelity.md",
    "docs/fine-tune.md",
    "docs/getting-started.md",
    "docs/gpu.md",
    "docs/huge-files.md",
    "docs/index.md",
    "docs/lab/benchmarks.md",
    "docs/lab/foundation.md",
    "docs/lab/ogbg-molhiv.md",
    "docs/lab/tables.md",
    "docs/lab/zinc.md",
    "docs/other-transformers.md",
    "docs/own-table.md",
    "docs/page.md",
    "docs/predict.md",
    "docs/preparing-data.md",
    "docs/python.md",
    "docs/results.md",
    "docs/scikit-learn.md",
    "docs/sepnorm-elsewhere.md",
    "docs/sepnorm.md",
    "docs/several-gpus.md",
    "docs/speed.md",
    "docs/tune.md",
    "graphormer_sepnorm/kernels/README.md",
    "graphormer_sepnorm/resources/foundation.md",
    "graphormer_sepnorm/resources/foundation-mini.md",
    "graphormer_sepnorm/resources/ogbg-molhiv.md",
    "graphormer_sepnorm/resources/zinc.md",
    "graphormer_sepnorm/resources/zinc-subset.md",
    "tests/README.md",
]
# "Alone" for "only" ("left alone" is fine, and so is an argument "alone:"), "anew" for "again", "beside" for "next to".
AVOIDED = re.compile(r"(?<!left )\balone\b(?!:)|\banew\b|\bbeside\b", re.IGNORECASE)
KINDS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return [text for node in nodes if isinstance(node, KINDS) and (text := ast.get_docstring(node))]


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_avoid_these_words(folder):
    texts = [(path.name, text) for path in (REPOSITORY / folder).glob("*.py") for text in docstrings(path)]
    assert texts
    assert not [found for found in texts if AVOIDED.search(found[1]) or found[1].startswith("What")]


@pytest.mark.parametrize("page", PAGES)
def test_pages_avoid_these_words(page):
    lines = (REPOSITORY / page).read_text().splitlines()
    prose = [(number, line) for number, line in enumerate(lines, 1) if not line.startswith("#")]  # links name headings
    assert not [found for found in prose if AVOIDED.search(found[1])]
