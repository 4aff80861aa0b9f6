import re
from pathlib import Path

from graphormer_sepnorm.version import __version__

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
