"""The site of the documentation builds without a warning and without a network, and shows what it should."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphormer_sepnorm.interfaces.commands import COMMANDS
from graphormer_sepnorm.runs.zoo import shipped_models

pytestmark = pytest.mark.slow

pytest.importorskip("furo")
pytest.importorskip("myst_nb")

REPOSITORY = Path(__file__).parents[2]
NOTEBOOKS = sorted((REPOSITORY / "docs/notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("site")
    quiet = ["-q", "-W", "-n", "-d", str(out / "cache"), "-c", "docs"]
    command = [sys.executable, "-m", "sphinx", *quiet, ".", str(out / "html")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return out / "html"


def test_every_command_and_shipped_model_has_its_place(site):
    reference = (site / "docs/for-developers/commands.html").read_text()
    for name in COMMANDS:
        assert f'<section id="{name}">' in reference
    for option in ("--target-columns", "--interval", "--keep-top", "--max-rows", "--freeze", "--trials"):
        assert option in reference
    for name in shipped_models():
        assert "Licence" in (site / f"graphormer_sepnorm/resources/{name}.html").read_text()


def test_a_reader_of_the_repository_sees_every_command_and_name():
    """The tables in Markdown, without the parts that only the site shows."""
    commands = (REPOSITORY / "docs/for-developers/commands.md").read_text()
    assert dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", commands, re.MULTILINE)) == COMMANDS
    api = (REPOSITORY / "docs/for-developers/api.md").read_text()
    shown = re.findall(r"^\| `([\w.]+)` \| \S", api, re.MULTILINE)
    described = re.findall(r"^\.\. auto\w+:: ([\w.]+)", api, re.MULTILINE)
    assert shown == [re.sub(r"^graphormer_sepnorm\.(?=\w+$)", "", name) for name in described]
    for page in ("for-developers/api", "for-developers/commands", "index"):
        visible = re.sub(r"^<!-- .*?-->$", "", (REPOSITORY / f"docs/{page}.md").read_text(), flags=re.M | re.S)
        assert "<!--" not in visible and "{" not in visible and ".. auto" not in visible, page


def test_the_site_shows_what_a_reader_of_the_repository_does_not_see(site):
    api = (site / "docs/for-developers/api.html").read_text()
    assert 'id="graphormer_sepnorm.training.sweep.sweep"' in api and "eval-rst" not in api
    assert "{toctree}" not in (site / "docs/index.html").read_text()


def test_every_page_is_reached_and_asks_nothing_of_the_network(site):
    pages = sorted(REPOSITORY.glob("docs/**/*.md")) + NOTEBOOKS
    front = (site / "docs/index.html").read_text()
    for page in pages:
        relative = page.relative_to(REPOSITORY / "docs").with_suffix(".html").as_posix()
        html = (site / "docs" / relative).read_text()
        assert relative == "index.html" or f'href="{relative}"' in front, relative
        assert '<script src="http' not in html and '<link rel="stylesheet" href="http' not in html, relative


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_pages_of_notebooks_show_their_stored_outputs(site, notebook):
    html = (site / f"docs/notebooks/{notebook.stem}.html").read_text()
    cells = json.loads(notebook.read_text())["cells"]
    assert html.count('class="cell_output') == sum(bool(cell.get("outputs")) for cell in cells) > 5
