"""The site: ``python -m sphinx -W -n -c docs . build/site``, from the root of the repository.

Its pages are the Markdown files where they lie, so that their links lead to the same places in the repository and on
the site. Nothing is downloaded, and no notebook is executed: their pages show the outputs that
``python -m tests.notebooks`` stored.
"""

import sys
from pathlib import Path

from graphormer_sepnorm import __version__

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "graphormer_sepnorm"
version = release = __version__
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "data/**.md",
    "graphormer_sepnorm/kernels/README.md",
    "graphormer_sepnorm/resources/*.md",
    "tests/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [".*", "build", "dist", "runs", "**/.ipynb_checkpoints"]
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb", "commands", "hidden"]
smartquotes = False

myst_heading_anchors = 3
nb_execution_mode = "off"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
napoleon_use_rtype = False
nitpick_ignore_regex = [
    ("py:.*", r"(collections|contextlib|numpy|os|pathlib|torch)\..*"),
    ("py:.*", "Batch|InputError|DataFrame|Chem.Mol|np.random.RandomState"),
    ("py:class", r"graphormer_sepnorm\.(graphs\.Padding|model\.Trunk|layers\.(separate\.Model|batch_norm\.Batch))"),
    (
        "py:class",
        r"graphormer_sepnorm\.predict\.(predictors\.(Embedder|Output|PredictingModel)|trust\.Trust)",
    ),
    ("py:class", r"graphormer_sepnorm\.explain\.explanations\.FragmentContribution"),
    ("py:class", r"graphormer_sepnorm\.system\.device\.Compute"),
    ("py:class", r"graphormer_sepnorm\.(project\.(profile\.Criterion|judge\.Judge)|output\.columns\.Judging)"),
]

html_theme = "furo"
html_title = f"graphormer_sepnorm {version}"
html_extra_path = ["redirect"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
