"""The sections of a table model's report in their order; ``page`` does the layout."""

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np

from graphormer_sepnorm.config import read_config
from graphormer_sepnorm.report.charts import Axis, Chart
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
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.reliability import USUAL_CONFIDENCE
from graphormer_sepnorm.tasks import METRICS, TASKS

ON_PAGE = (
    "On the page of the training, choose Predict with this model; then draw, paste or upload molecules. Later, the "
    "page Train lists the model below Models."
)
USE = {
    "Predict the molecules of a table:": (
        "graphormer-sepnorm predict {folder} molecules.csv -o predictions.csv{option} --domain"
    ),
    "Choose the molecules of a table to measure next{best}:": (
        "graphormer-sepnorm suggest {folder} molecules.csv{target} -n 50 -o next.csv"
    ),
    "Draw the contributions of the atoms to a prediction:": (
        'graphormer-sepnorm explain {folder} "c1ccccc1O" -o atoms.svg'
    ),
    "Predict drawn, pasted and uploaded molecules on a page in the browser:": "graphormer-sepnorm serve {folder}",
    "Compute the scores on another table:": "graphormer-sepnorm evaluate {folder} --csv FILE",
    "Predict in Python:": (
        "from graphormer_sepnorm import load_model\n\n"
        'print(load_model({name!r}).predict(["CCO", "c1ccccc1O"]{argument}, domain=True))'
    ),
}


def training_section(page: Reported) -> Section | None:
    """The curves of the networks."""
    trained = [network for network in page.networks[:MAX_PANELS] if network.metrics.exists()]
    metric, charts, has_rise = METRICS[TASKS[page.task.kind].curve_metric].title, [], False
    for number, network in enumerate(trained, 1):
        lines = network.read_metrics()
        epochs, loss, score = (np.array([each[key] for each in lines]) for key in ("epoch", "train_loss", "val_metric"))
        axes = Axis.around("epoch", epochs), Axis.around(f"loss and {metric}", loss, score)
        charts.append(Chart(f"network {number}", *axes, lines={"mean": (epochs, loss), "trend": (epochs, score)}))
        has_rise |= len(score) > 0 and bool(score[-1] > score[0])
    settings = "; ".join(training_words(read_config(each.config)) for each in trained[:1] if each.config.exists())
    paragraphs = words("predictions.training", settings=settings, metric=metric, has_rise=has_rise)
    return Section("Training", paragraphs, charts=tuple(charts)) if charts else None


def use_section(folder: Path, model: TableModel, confidence: str | None) -> Section:
    """Commands to copy, with intervals at a confidence level; after a training on the page, what to do there."""
    if is_on_page():
        return Section("How to use the model", (ON_PAGE,))
    of_classes = TASKS[model.task.kind].predicts_probabilities
    if of_classes:
        confidence = None if model.trust is None or model.trust.class_sets is None else USUAL_CONFIDENCE
    facts = {
        "folder": shlex.quote(str(folder)),
        "name": str(folder),
        "option": f" --interval {confidence}" if confidence else "",
        "argument": f", interval={confidence}" if confidence else "",
        "target": f" --target {shlex.quote(model.task.targets[0])}" if len(model.task.targets) > 1 else "",
        "best": ", by their probability" if of_classes else " (add --minimize if low values are better)",
    }
    commands = [Command(title.format(**facts), text.format(**facts)) for title, text in USE.items()]
    if model.conditions.columns:  # explain asks for a condition of each molecule then
        commands = [each for each in commands if not each.words.startswith("Draw")]
    where = ("Run these in the folder in which training was started.",)
    return Section("How to use the model", where, commands=tuple(commands))


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
    lambda page: use_section(page.run.path, page.model, page.confidence),
)
LATE = {contributions_section, pairs_section, cliffs_section}  # they take seconds
