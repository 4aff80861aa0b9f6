import re
from pathlib import Path

from graphormer_sepnorm.version import __version__

REPOSITORY = Path(__file__).parents[2]


def test_every_file_that_names_the_version_names_this_one():
    cited = re.search(r"^version: (.*)$", (REPOSITORY / "CITATION.cff").read_text(), re.M)
    newest = re.search(r"^## \[(\d.*?)\]", (REPOSITORY / "CHANGELOG.md").read_text(), re.M)
    assert cited[1] == newest[1] == __version__
