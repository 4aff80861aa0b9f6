"""The sections of a table model's report in their order, and those on its table and on its use.

``page`` does the layout.
"""

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from rdkit import rdBase

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.config import read_config
from graphormer_sepnorm.dataset import SPLITS
from graphormer_sepnorm.datasets.store import sha256_of_file
from graphormer_sepnorm.report import predictions
from graphormer_sepnorm.report.charts import Axis, Chart
from graphormer_sepnorm.report.over_time import time_section
from graphormer_sepnorm.report.page import Grid, Section
from graphormer_sepnorm.report.reported import Reported, worst_first
from graphormer_sepnorm.report.scores import distance_section, learning_section, scores_section, trust_section
from graphormer_sepnorm.report.words import blocks, words
from graphormer_sepnorm.runs.info import salts_words, training_words
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.runs.zoo import model_digest
from graphormer_sepnorm.system.progress import is_on_page
from graphormer_sepnorm.table_model.features import Conditions
from graphormer_sepnorm.table_model.reliability import USUAL_CONFIDENCE
from graphormer_sepnorm.tables.label_text import as_float, is_missing
from graphormer_sepnorm.tables.remarks import COPIES, few_repeated, of_rows, repeatability, repeated
from graphormer_sepnorm.tasks import METRICS, TASKS
from graphormer_sepnorm.version import __version__

MOST_REPLICATES, MOST_VALUES = 10, 10  # molecules, and values of a condition, that are listed


def data_section(page: Reported) -> Section:
    rows, options = [], page.options
    parts = {"all": page.labelled.rows} if page.results else {each: page.labelled.of_split(each) for each in SPLITS}
    for split, labelled in parts.items():
        y = np.array([row.labels for row in labelled]).reshape(-1, len(page.task.targets))
        counts = [f"{count:,}" for count in (y == 1 if page.adds_up else ~np.isnan(y)).sum(axis=0)]
        if page.task.kind == "classification":
            ones = zip(counts, (y == 1).sum(axis=0), page.task.classes, strict=True)
            counts = [f"{count}, {positive:,} of them {names[1]}" for count, positive, names in ones]
        rows.append((split, f"{len(y):,}", *counts[:MAX_PANELS]))
    titles = page.task.classes[0][:MAX_PANELS] if page.adds_up else [f"labels of {name}" for name in page.panels]
    header = ("split", "molecules" if page.labelled.measured else "rows", *titles)
    sizes = ":".join(f"{100 * getattr(options.sizes, name):g}" for name in SPLITS)
    said = [*page.words("data.data", sizes=sizes), *(f"{remark}." for remark in of_rows(options, page.labelled))]
    if FEATURIZERS[options.featurizer].preparation:
        said += page.words("data.preparation", salts=salts_words(options.featurizer))
    for place in range(len(page.task.targets)):
        of_target = [[row.bounds[place] for row in rows if place in row.bounds] for rows in (page.learnt, page.tested)]
        said += page.words("data.censored", place=place, learnt=of_target[0], tested=of_target[1])
    return Section("Data" if page.results else "Data and split", tuple(said), (Grid(header, tuple(rows)),))


def conditions_section(page: Reported) -> Section | None:
    """The values of each condition in training, and what is read where there is none."""
    rows = [row.conditions for row in page.learnt]
    columns = Conditions.of(page.options.feature_columns, rows).columns
    grid = []
    for column, cells in zip(columns, zip(*rows, strict=True), strict=False):
        counts = Counter(cell if column.words else f"{as_float(cell):.6g}" for cell in cells if not is_missing(cell))
        most = [f"{value} ({count:,})" for value, count in counts.most_common(MOST_VALUES)]
        listed = ", ".join(most) + f" and {len(counts) - len(most):,} others" * (len(counts) > len(most))
        values = listed if column.choices else f"{column.low:.6g} to {column.high:.6g}"
        missing = f"{len(cells) - counts.total():,} of {len(cells):,}"
        grid.append((column.name, values, missing, column.gap_words or "no value: the row is not predicted"))
    header = ("condition", "values", "missing", "read as")
    return Section("Conditions", words("data.conditions"), (Grid(header, tuple(grid)),)) if columns else None


def repeatability_section(page: Reported) -> Section | None:
    """Molecules in several rows, with the deviation of their labels: the smallest error that a model can have."""
    if not (duplicates := page.labelled.duplicates):
        return None
    said = [f"{repeated(page.options, page.labelled)} in {sum(len(each.rows) for each in duplicates):,} rows."]
    for target, deviation in repeatability(page.options, page.labelled).items() if page.is_regression else ():
        few = few_repeated(page.labelled, page.task.targets.index(target))
        said.append(page.line("data.floor", target=target, copies=COPIES, deviation=deviation, few=few))
    if not page.is_regression:
        said += page.words("data.classes")
    return Section("Repeatability", tuple(said), tuple(replicates_grids(page)))


def replicates_grids(page: Reported) -> Iterator[Grid]:
    """The replicates whose labels differ most, a line per molecule; nothing if no labels differ."""
    groups, spreads = [[page.labelled.usable[place] for place in each.rows] for each in page.labelled.duplicates], []
    for rows in groups:
        y = np.array([row.labels for row in rows]) / (page.task.std if page.is_regression else 1)
        spreads.append(np.nan_to_num(np.fmax.reduce(y) - np.fmin.reduce(y)).max())
    differing = [groups[place] for place in worst_first(np.array(spreads)) if spreads[place] > 0]
    if chosen := differing[:MOST_REPLICATES]:
        columns = {"rows": [", ".join(page.name_of(row.number) for row in rows) for rows in chosen]}
        columns["SMILES"] = [rows[0].smiles for rows in chosen]
        for place, name in enumerate(page.panels):
            columns[f"measured {name}"] = [", ".join(page.label_text(row, place) for row in rows) for rows in chosen]
        yield Grid.of(columns, page.line("data.replicates", count=len(chosen), are_all=len(chosen) == len(differing)))


def training_section(page: Reported) -> Section | None:
    trained = [network for network in page.networks()[:MAX_PANELS] if network.metrics.exists()]
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


def use_section(page: Reported) -> Section | None:
    """Commands to copy, with intervals at a confidence level; after a training on the page, what to do there."""
    if not page.model.members:
        return None
    if is_on_page():
        return Section("How to use the model", words("use.on_page"))
    level = page.confidence if page.is_regression else USUAL_CONFIDENCE if page.trust.class_sets else None
    columns = page.model.conditions.columns
    given = {each.name: each.choices[0] if each.choices else f"{each.mean:.6g}" for each in columns}
    where, *commands = blocks("use.commands", page=page, level=level, conditions=given)
    pairs = (command.partition("\n")[::2] for command in commands)
    return Section("How to use the model", (where,), commands=tuple(pairs))


def reproduce_section(page: Reported) -> Section:
    """How the model was made: the command, as the run folder knows it, versions, and digests of the files."""
    tables = [Path(path) for path in (page.options.path, page.options.test_csv) if path and Path(path).is_file()]
    facts = {"graphormer_sepnorm": __version__, "RDKit": rdBase.rdkitVersion, "PyTorch": torch.__version__}
    facts |= {"digest of the model": model_digest(page.run.path)} if page.run.stack.exists() else {}
    facts |= {f"SHA-256 of {table}": sha256_of_file(table) for table in tables}
    kept = [json.loads(each.command.read_bytes()) for each in (page.run, page.run.fold(0)) if each.command.exists()]
    shell = [f"{each['shell']} --out {shlex.quote(str(page.run))}" for each in kept[:1] if "shell" in each]
    grid, title = Grid.of({"": list(facts), "version or digest": list(facts.values())}), "The command of the training:"
    return Section("Reproduce", words("use.reproduce"), (grid,), commands=tuple((title, each) for each in shell))


SECTIONS: tuple[Callable[[Reported], Section | None], ...] = (
    *(scores_section, predictions.predictions_section, learning_section, data_section, conditions_section),
    *(repeatability_section, trust_section, distance_section, time_section, predictions.worst_section),
    *(predictions.contributions_section, predictions.pairs_section, predictions.cliffs_section),
    *(training_section, use_section, reproduce_section),
)
LATE = {predictions.contributions_section, predictions.pairs_section, predictions.cliffs_section}  # they take seconds
