"""The sections of a table model's report in their order; ``page`` does the layout."""

import shlex
from collections.abc import Callable

from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.table_model.report.data import data_section, repeatability_section
from graphormer_sepnorm.table_model.report.learning import learning_section
from graphormer_sepnorm.table_model.report.molecules import contributions_section, pairs_section, worst_section
from graphormer_sepnorm.table_model.report.page import Section
from graphormer_sepnorm.table_model.report.predictions import predictions_section
from graphormer_sepnorm.table_model.report.reported import Reported, png
from graphormer_sepnorm.table_model.report.scores import scores_section
from graphormer_sepnorm.table_model.report.trust import distance_section, trust_section


def training_section(page: Reported) -> Section | None:
    """The curves of the networks."""
    pictures = tuple(
        png(network.curves, f"{network.path.name}: loss and score on the held-out rows")
        for network in page.networks[:MAX_PANELS]
        if network.curves.exists()
    )
    return Section("Training", pictures=pictures) if pictures else None


def use_section(page: Reported) -> Section:
    """Commands to copy."""
    folder = shlex.quote(str(page.run.path))
    confidence = page.confidence
    option = f" --interval {confidence}" if confidence else ""
    argument = f", interval={confidence}" if confidence else ""
    return Section(
        "How to use the model",
        ("Run these in the folder in which training was started, on the command line or in Python:",),
        commands=(
            f"graphormer-sepnorm predict {folder} molecules.csv -o predictions.csv{option} --domain",
            f"graphormer-sepnorm evaluate {folder}",
            "from graphormer_sepnorm import load_model\n\n"
            f'print(load_model({str(page.run.path)!r}).predict(["CCO", "c1ccccc1O"]{argument}, domain=True))',
        ),
    )


SECTIONS: tuple[Callable[[Reported], Section | None], ...] = (
    scores_section,
    predictions_section,
    learning_section,
    data_section,
    repeatability_section,
    trust_section,
    distance_section,
    worst_section,
    contributions_section,
    pairs_section,
    training_section,
    use_section,
)
