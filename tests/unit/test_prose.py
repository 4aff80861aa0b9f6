"""Words that docstrings and documentation avoid."""

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FOLDERS = ["graphormer_sepnorm", "examples", "docs", "tests/benchmarks"]
PATTERNS = (
    "*.md",
    "data/**/*.md",
    "docs/**/*.md",
    "docs/notebooks/*.ipynb",
    "graphormer_sepnorm/**/*.md",
    "tests/*.md",
)
PAGES = sorted(str(page.relative_to(REPOSITORY)) for pattern in PATTERNS for page in REPOSITORY.glob(pattern))
# "Alone" for "only" ("left alone" is fine, and so is an argument "alone:"), "anew" for "again", "beside" for "next to".
AVOIDED = re.compile(r"(?<!left )\balone\b(?!:)|\banew\b|\bbeside\b", re.IGNORECASE)
KINDS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return [text for node in nodes if isinstance(node, KINDS) and (text := ast.get_docstring(node))]


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_avoid_these_words(folder):
    texts = [(path.name, text) for path in (REPOSITORY / folder).rglob("*.py") for text in docstrings(path)]
    assert texts
    assert not [found for found in texts if AVOIDED.search(found[1]) or found[1].startswith("What")]


@pytest.mark.parametrize("page", PAGES)
def test_pages_avoid_these_words(page):
    lines = (REPOSITORY / page).read_text().splitlines()
    prose = [(number, line) for number, line in enumerate(lines, 1) if not line.startswith("#")]  # links name headings
    assert not [found for found in prose if AVOIDED.search(found[1])]
