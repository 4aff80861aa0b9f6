"""The sections of a table model's report in their order; ``page`` does the layout."""

import shlex
from collections.abc import Callable

import numpy as np

from graphormer_sepnorm.config import read_config
from graphormer_sepnorm.report.charts import Axis, lines_chart
from graphormer_sepnorm.report.data import data_section, repeatability_section
from graphormer_sepnorm.report.learning import learning_section
from graphormer_sepnorm.report.molecules import cliffs_section, contributions_section, pairs_section, worst_section
from graphormer_sepnorm.report.over_time import time_section
from graphormer_sepnorm.report.page import Command, Section
from graphormer_sepnorm.report.predictions import predictions_section
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.report.scores import scores_section
from graphormer_sepnorm.report.trust import distance_section, trust_section
from graphormer_sepnorm.report.words import words
from graphormer_sepnorm.runs.info import training_words
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.system.progress import is_on_page
from graphormer_sepnorm.table_model.reliability import USUAL_CONFIDENCE
from graphormer_sepnorm.tasks import METRICS, TASKS

ON_PAGE = (
    "On the page of the training, choose Predict with this model; then draw, paste or upload molecules. Later, the "
    "page Train lists the model below Models."
)


def training_section(page: Reported) -> Section | None:
    """The curves of the networks."""
    trained = [
        (number, network.read_metrics())
        for number, network in enumerate(page.networks[:MAX_PANELS], 1)
        if network.metrics.exists()
    ]
    metric, charts = METRICS[TASKS[page.task.kind].curve_metric].title, []
    for number, lines in trained:
        epochs, loss, score = (np.array([line[key] for line in lines]) for key in ("epoch", "train_loss", "val_metric"))
        axes = Axis.around("epoch", epochs), Axis.around(f"loss and {metric}", loss, score)
        charts.append(lines_chart(f"network {number}", axes, {"mean": (epochs, loss), "trend": (epochs, score)}, ""))
    configs = [read_config(network.config) for network in page.networks[:1] if network.config.exists()]
    rise = any(lines[-1]["val_metric"] > lines[0]["val_metric"] for _, lines in trained if lines)
    settings = "; ".join(map(training_words, configs))
    paragraphs = words("predictions.training", settings=settings, metric=metric, has_rise=rise)
    return Section("Training", paragraphs, charts=tuple(charts)) if charts else None


def use_section(page: Reported) -> Section:
    """Commands to copy; after a training on the page, what to do there."""
    if is_on_page():
        return Section("How to use the model", (ON_PAGE,))
    folder = shlex.quote(str(page.run.path))
    confidence, trust = page.confidence, page.model.trust
    if not page.is_regression:
        confidence = None if trust is None or trust.class_sets is None else USUAL_CONFIDENCE
    option = f" --interval {confidence}" if confidence else ""
    argument = f", interval={confidence}" if confidence else ""
    target = f" --target {shlex.quote(page.task.targets[0])}" if len(page.task.targets) > 1 else ""
    best = " (add --minimize if low values are better)" if page.is_regression else ", by their probability"
    code = (
        "from graphormer_sepnorm import load_model\n\n"
        f'print(load_model({str(page.run.path)!r}).predict(["CCO", "c1ccccc1O"]{argument}, domain=True))'
    )
    commands = {
        "Predict the molecules of a table:": f"predict {folder} molecules.csv -o predictions.csv{option} --domain",
        f"Choose the molecules of a table to measure next{best}:": (
            f"suggest {folder} molecules.csv{target} -n 50 -o next.csv"
        ),
        "Draw the contributions of the atoms to a prediction:": f'explain {folder} "c1ccccc1O" -o atoms.svg',
        "Predict drawn, pasted and uploaded molecules on a page in the browser:": f"serve {folder}",
        "Compute the scores of this report again, or with --csv FILE those on another table:": f"evaluate {folder}",
    }
    if page.model.conditions.columns:  # explain asks for a condition of each molecule then
        commands = {title: command for title, command in commands.items() if not command.startswith("explain")}
    copied = [Command(title, f"graphormer-sepnorm {command}") for title, command in commands.items()]
    where = ("Run these in the folder in which training was started.",)
    return Section("How to use the model", where, commands=(*copied, Command("Predict in Python:", code)))


SECTIONS: tuple[Callable[[Reported], Section | None], ...] = (
    scores_section,
    predictions_section,
    learning_section,
    data_section,
    repeatability_section,
    trust_section,
    distance_section,
    time_section,
    worst_section,
    contributions_section,
    pairs_section,
    cliffs_section,
    training_section,
    use_section,
)
LATE = {contributions_section, pairs_section, cliffs_section}  # they take seconds
