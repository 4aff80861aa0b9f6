"""The report on a cross-validation: the scores over its folds, and the predictions for all molecules."""

import statistics
from collections.abc import Iterator

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.inference.domain import evenly
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.numbers import shown, shown_together
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.table_model.reliability import low_coverage, usual_confidence
from graphormer_sepnorm.table_model.report.charts import Points, parity_chart
from graphormer_sepnorm.table_model.report.page import Card, Chart, Grid, ReportPage, Section, render
from graphormer_sepnorm.table_model.report.predictions import MOST_POINTS
from graphormer_sepnorm.table_model.report.reported import constant_words, counted
from graphormer_sepnorm.table_model.scores import MEAN, STACK
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tasks import METRICS, TASKS
from graphormer_sepnorm.version import __version__


def report_folds(
    whole: RunFolder, task: TaskConfig, options: TableOptions, results: list[dict], lines: list[list[str]]
) -> None:
    """Writes the report on a cross-validation.

    Args:
        whole: the folder that contains the run folders of the folds.
        task, options: the task, and the options with which the table was read.
        results: the result of each fold, as ``report_table``.
        lines: the lines of ``predictions.csv`` of all molecules, under their header.
    """
    titles = {name: options.targets[0] if TASKS[task.kind].adds_up else name for name in results[0]["targets"]}
    shown_targets = list(titles.items())[:MAX_PANELS]
    summary = (
        f"A cross-validation of a {task.kind} model of {', '.join(titles.values())}: "
        f"{counted(len(lines) - 1, 'molecule')} in {len(results)} folds ({options.split}, seed {options.seed}). Each "
        "molecule was tested once, with a model that was not trained on it."
    )
    notes = (
        *(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in low_coverage(pooled(results))),
        "To predict, train a final model without --folds in another folder; --split random --split-sizes 98:1:1 lets "
        "it learn from nearly all molecules.",
    )
    words = f"The {METRICS[task.metric].title} in each fold. The folder of each fold contains its own report."
    by_target = {title: [result["targets"][name] for result in results] for name, title in shown_targets}
    grids = tuple(scores_grid(task, title, folds) for title, folds in by_target.items())
    sections = [Section("Scores", (words,), grids)]
    if charts := tuple(parity_charts(task, lines)):
        words = "Each point is a molecule, predicted when it was tested."
        sections.append(Section("Predictions", (words,), charts=charts))
    cards = tuple(card for title, folds in by_target.items() for card in score_cards(task, title, folds))
    title = f"{whole.path.name}: {', '.join(titles.values())}"
    write_atomically(whole.report, render(ReportPage(title, summary, cards, notes, tuple(sections), __version__)))


def scores_grid(task: TaskConfig, title: str, folds: list[dict]) -> Grid:
    """The scores of a target, a row per fold; ``folds`` as ``scores_by_target``."""
    titles = {STACK: "prediction", "forest": "random forest", MEAN: constant_words(task)}
    known = [name for name in titles if all(name in fold["scores"] for fold in folds)]
    columns = [[fold["scores"][name][task.metric] for fold in folds] for name in known]
    texts = [shown_together(column, columns[0][0]) for column in columns]
    labels = [f"{fold['n']:,}" for fold in folds]
    rows = zip((f"fold-{number}" for number in range(len(folds))), labels, *texts, strict=True)
    return Grid(("fold", "test labels", *(titles[name] for name in known)), tuple(rows), title)


def score_cards(task: TaskConfig, title: str, folds: list[dict]) -> Iterator[Card]:
    """A card with the mean score of a target over the folds, if all folds have one."""
    scores = [fold["scores"][STACK][task.metric] for fold in folds]
    if None not in scores:
        numbers = statistics.fmean(scores), statistics.stdev(scores), min(scores), max(scores)
        mean, deviation, lowest, highest = shown_together(numbers, numbers[0])
        line = f"Mean over {len(scores)} folds: {lowest} to {highest}, with a standard deviation of {deviation}."
        yield Card(title, mean, METRICS[task.metric].title, (line,))


def pooled(results: list[dict]) -> dict:
    """The coverage of the intervals of all folds together, for ``low_coverage``; nothing if a fold has no intervals."""
    levels = {usual_confidence(result["trust"]) for result in results}
    level = levels.pop()
    if levels or level is None:
        return {}
    counts = {name: [result["targets"][name]["n"] for result in results] for name in results[0]["targets"]}
    shares = {
        name: float(np.average([result["trust"]["coverage"][level][name] for result in results], weights=weights))
        for name, weights in counts.items()
    }
    return {"trust": {"coverage": {level: shares}}, "targets": {name: {"n": sum(n)} for name, n in counts.items()}}


def parity_charts(task: TaskConfig, lines: list[list[str]]) -> Iterator[Chart]:
    """Predicted against measured values of each target of a regression."""
    header, *rows = lines
    for target in task.targets[:MAX_PANELS] if not TASKS[task.kind].predicts_probabilities else ():
        y, predicted = header.index(target, 3), header.index(f"{target}_predicted")
        exact = [row for row in rows if row[y][:1] not in ("", "<", ">")]
        drawn = [exact[place] for place in evenly(len(exact), MOST_POINTS)] if exact else []
        if drawn:
            values = np.array([[float(row[y]), float(row[predicted])] for row in drawn])
            words = [
                f"row {row[0]}, {row[2]}\n{row[1]}\nmeasured {row[y]}\npredicted {shown(value)}"
                for row, value in zip(drawn, values[:, 1].tolist(), strict=True)
            ]
            chart = Points(values[:, 0], values[:, 1], None, None, words)
            yield parity_chart(f"{target}: parity", chart, "Points on the dashed line are correct.")
