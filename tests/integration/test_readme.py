"""The examples of the README and of docs run as they stand, from a folder that holds the project's files."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "graphormer_sepnorm"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
PAGES = [
    "README.md",
    "docs/index.md",
    *sorted(str(page.relative_to(REPOSITORY)) for page in REPOSITORY.glob("docs/for-*/*.md")),
]
LONG = {  # they train for minutes
    "README.md",
    "docs/for-researchers/fine-tune.md",
    "docs/for-chemists/getting-started.md",
    "docs/for-chemists/own-table.md",
    "docs/for-chemists/project-in-four-weeks.md",
    "docs/for-developers/scikit-learn.md",
}


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of each example, without those that import an optional library that is not installed."""
    found = BLOCK.findall((REPOSITORY / page).read_text())
    absent = [name for name in ("timm", "transformers") if importlib.util.find_spec(name) is None]
    imports = [f"{word} {name}" for name in absent for word in ("import", "from")]
    return [block for block in found if not any(text in block[1] for text in imports)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.nightly) if page in LONG else page for page in PAGES if blocks(page)],
)
def test_the_examples_run(page, tmp_path):
    """Python blocks share one session, as a reader who goes through them would have; shell blocks run in between."""
    for name in ("data", "train.py", "evaluate.py"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    shell = "import subprocess; subprocess.run({!r}, shell=True, check=True)"
    program = [text if kind == "python" else shell.format(f"set -e\n{text}") for kind, text in blocks(page)]
    script = tmp_path / "page.py"
    script.write_text("\n".join(program))
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env={**os.environ, "PATH": tools, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_the_recipe_for_knime_predicts_its_table():
    page = (REPOSITORY / "docs/for-chemists/predict.md").read_text()
    code = re.search(r"^~~~python\n(.*?)^~~~", page, re.M | re.S)[1]
    written: list = [None]
    given = SimpleNamespace(to_pandas=lambda: pd.DataFrame({"key": [7, 8], "smiles": ["CCO", "C("]}))
    tables = SimpleNamespace(input_tables=[given], output_tables=written, Table=SimpleNamespace(from_pandas=list))
    scripting = SimpleNamespace(io=tables)
    knime = SimpleNamespace(scripting=scripting)
    modules = {"knime": knime, "knime.scripting": scripting, "knime.scripting.io": tables}
    with pytest.MonkeyPatch.context() as patch:
        for name, module in modules.items():
            patch.setitem(sys.modules, name, module)
        exec(code, {})
    assert {"key", "smiles", "HLM", "error"} < set(written[0])


def test_there_are_examples_for_every_use():
    text = "\n".join(block for page in PAGES for _, block in blocks(page))
    python = {"from_pretrained", "model.transform()", "GraphormerRegressor", "GraphormerEmbedder", "SepNorm("}
    commands = {f"graphormer-sepnorm {name}" for name in ("predict", "embed", "explain", "train", "pretrain", "info")}
    others = {"separate_norms", "integrated_gradients", "--interval", "--folds", "--from"}
    assert {use for use in python | commands | others if use not in text} == set()


def test_the_readme_stays_one_screen_or_two():
    assert len((REPOSITORY / "README.md").read_bytes()) < 8_000


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    here = REPOSITORY / page
    for target, anchor in LINK.findall(here.read_text()):
        if target.startswith(("http:", "https:")):
            continue
        there = here.parent / target if target else here
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


def rows_of_where() -> list[str]:
    """The rows of the table in CONTRIBUTING.md that says where a new thing goes."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    return re.findall(r"^\| (?!to add|---).*$", text.partition("| to add a ")[2], re.MULTILINE)


@pytest.mark.parametrize("row", rows_of_where(), ids=lambda row: row.split(" | ")[0][2:])
def test_what_the_table_of_new_things_names_is_there(row):
    """Each file and folder, and each registry in one of them."""
    words = re.findall(r"`([\w./]+)`", row)
    places = [word for word in words if "/" in word or word.endswith(".py")]
    found = [root / place for place in places for root in (PACKAGE, REPOSITORY) if (root / place).exists()]
    assert len(found) == len(places), places
    text = "".join(path.read_text() for path in found if path.is_file())
    for name in words:
        assert not name.isupper() or re.search(rf"^{name}\b.*=", text, re.MULTILINE), name
