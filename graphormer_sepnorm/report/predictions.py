"""The section of a report on predictions: charts, and confusion tables for classes.

Axis letters: M molecules, T targets, K classes.
"""

from collections.abc import Iterator

import numpy as np

from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.report.bias import of_extremes, of_test_bias
from graphormer_sepnorm.report.charts import (
    DIAGONAL,
    UNIT,
    Axis,
    Points,
    histogram_chart,
    lines_chart,
    parity_chart,
    residual_chart,
    strip_chart,
)
from graphormer_sepnorm.report.page import Chart, Grid, Section
from graphormer_sepnorm.report.reported import CUT, Reported
from graphormer_sepnorm.report.words import line, words
from graphormer_sepnorm.runs.numbers import UNDEFINED
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.censored import is_bounded

MOST_POINTS = 1_000  # of a chart
THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)


def predictions_section(page: Reported) -> Section:
    """The predictions for the test molecules."""
    if page.is_regression:
        return values_section(page)
    if TASKS[page.task.kind].adds_up:
        known = ~np.isnan(page.test.y).any(axis=1)
        classes = (each[known].argmax(axis=1) for each in (page.test.y, page.test.prediction))
        title, counts = (
            "Measured and most probable classes of the test molecules.",
            ("", page.options.classes, *classes),
        )
        return Section("Predictions", (title,), (counts_grid(*counts),), tuple(ranking_charts(page)))
    return probabilities_section(page)


def values_section(page: Reported) -> Section:
    """Parity, residuals and the histogram of labels of each target of a regression."""
    charts: list[Chart] = []
    confidence = None if page.confidence is None else float(page.confidence)
    parity = line("predictions.parity", confidence=confidence, has_bounds=page.test.bounds is not None)
    for place, target in enumerate(page.task.targets[:MAX_PANELS]):
        points = points_of(page, place)
        if len(points.words):
            charts += [
                parity_chart(f"{target}: parity", points_of(page, place, with_bounds=True), parity),
                residual_chart(f"{target}: residuals", points, "Residuals should scatter around 0 everywhere."),
            ]
        learnt, tested = (y[~np.isnan(y)] for y in (page.labels.y[:, place], page.test.y[:, place].astype(np.float64)))
        caption = line("predictions.labels", learnt=len(learnt), tested=len(tested))
        charts.append(histogram_chart(f"{target}: labels", learnt, tested, caption))
    labels = int((~np.isnan(page.test.y)).sum(axis=0).max())
    paragraphs = words("predictions.values", labels=labels, most=MOST_POINTS)
    return Section("Predictions", (*paragraphs, *of_extremes(page), *of_test_bias(page)), charts=tuple(charts))


def points_of(page: Reported, place: int, with_bounds: bool = False) -> Points:
    """The labelled test molecules of a target, at most ``MOST_POINTS``; with those of censored labels on request."""
    measured = page.test.y[:, place].astype(np.float64)
    arrows = np.zeros(len(measured))
    if with_bounds and page.test.bounds is not None:
        ends = page.test.bounds[:, place]
        arrows = np.where(is_bounded(measured, ends), np.isfinite(ends) @ [1.0, -1.0], 0)
        measured = np.where(arrows > 0, ends[:, 0], np.where(arrows < 0, ends[:, 1], measured))
    labelled = np.flatnonzero(~np.isnan(measured))
    rows = labelled[evenly(len(labelled), MOST_POINTS)] if len(labelled) else labelled
    predicted = page.test.prediction[:, place].astype(np.float64)
    low, high = [ends[rows, place] for ends in page.interval_ends] if page.interval_ends else (None, None)
    texts = []
    for row in rows.tolist():
        tested, interval = page.tested[row], page.interval(row, place)
        texts.append(
            f"{page.name_of(tested.number)}\n{tested.smiles}\nmeasured {page.label_text(tested, place)}\n"
            f"predicted {page.predicted(float(page.test.prediction[row, place]), place)}"
            + (f"\n{page.interval_name} {interval}" if interval is not None else "")
        )
    return Points(measured[rows], predicted[rows], low, high, texts, arrows[rows])


def probabilities_section(page: Reported) -> Section:
    """Confusion tables, probabilities and curves of a binary classification."""
    grids, charts = [], []
    for place, target in enumerate(page.task.targets[:MAX_PANELS]):
        names, points = page.classes_of(target), points_of(page, place)
        if len(points.words):
            y, probability = page.labelled_pairs(place, page.test.prediction)
            caption = f"{target} at the threshold {CUT:g}"
            grids.append(counts_grid(caption, names, y > 0.5, probability >= CUT))
            grids.append(thresholds_grid(target, names, y, probability))
            charts.append(
                strip_chart(target, points, names, "Probabilities by measured class; the dashed line is 0.5.")
            )
    charts += [*ranking_charts(page), *precision_charts(page)]
    return Section("Predictions", words("predictions.thresholds", cut=f"{CUT:g}"), tuple(grids), tuple(charts))


def counts_grid(caption: str, names: tuple[str, ...], measured: np.ndarray, predicted: np.ndarray) -> Grid:
    """How many molecules [M] of each class, by number, are predicted as which class."""
    from sklearn.metrics import confusion_matrix  # its import takes seconds

    counts = confusion_matrix(measured.astype(int), predicted.astype(int), labels=range(len(names)))
    header = ("measured", *(f"predicted {name}" for name in names))
    rows = zip(names, counts.tolist(), strict=True)
    return Grid(header, tuple((name, *(f"{count:,}" for count in row)) for name, row in rows), caption)


def thresholds_grid(target: str, names: tuple[str, ...], y: np.ndarray, probability: np.ndarray) -> Grid:
    """Sensitivity, specificity and precision at several thresholds."""
    rows = []
    for threshold in THRESHOLDS:
        chosen, positive = probability >= threshold, y > 0.5
        found = ((chosen, positive), (~chosen, ~positive), (positive, chosen))
        shares = (f"{(part & of).sum() / of.sum():.2f}" if of.any() else UNDEFINED for part, of in found)
        rows.append((f"{threshold:g}", f"{chosen.sum():,}", *shares))
    header = ("threshold", f"predicted {names[1]}", "sensitivity", "specificity", "precision")
    return Grid(header, tuple(rows), f"{target} at other thresholds")


def curves(page: Reported) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The targets with labels of both classes, their labels and the probabilities for them."""
    for place, target in enumerate(page.task.targets[:MAX_PANELS]):
        y, probability = page.labelled_pairs(place, page.test.prediction)
        if len(np.unique(y)) == 2:
            yield target, y, probability


def ranking_charts(page: Reported) -> Iterator[Chart]:
    """The ROC curve of each target."""
    from sklearn.metrics import roc_curve  # its import takes seconds

    axes = Axis("false positive rate", UNIT), Axis("true positive rate", UNIT)
    for target, y, probability in curves(page):
        lines = {"guide": DIAGONAL, "trend": roc_curve(y, probability)[:2]}
        yield lines_chart(f"{target}: ROC curve", axes, lines, "Dashed: chance.")


def precision_charts(page: Reported) -> Iterator[Chart]:
    """The precision-recall curve of each target."""
    from sklearn.metrics import precision_recall_curve  # its import takes seconds

    axes = Axis("recall", UNIT), Axis("precision", UNIT)
    for target, y, probability in curves(page):
        precision, recall, _ = precision_recall_curve(y, probability)
        lines = {"guide": ([0.0, 1.0], [y.mean()] * 2), "trend": (recall, precision)}
        yield lines_chart(f"{target}: precision and recall", axes, lines, "Dashed: the share of positives.")
