"""The section of a report on predictions: charts, and confusion tables for classes.

Axis letters: M molecules, T targets, K classes.
"""

from collections.abc import Iterator

import numpy as np

from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.report.bias import of_extremes, of_test_bias
from graphormer_sepnorm.report.charts import (
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
ENDS = np.array([0.0, 1.0])
THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)


def predictions_section(page: Reported) -> Section:
    """The predictions for the test molecules."""
    if page.is_regression:
        return values_section(page)
    if TASKS[page.task.kind].adds_up:
        counts = confusion_of_classes(page.options.classes, page.test.y, page.test.prediction)
        title = "Measured and most probable classes of the test molecules."
        return Section("Predictions", (title,), (counts,), tuple(ranking_charts(page)))
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
        charts.append(labels_chart(page, place))
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
    texts = [point_words(page, row, place) for row in rows.tolist()]
    return Points(measured[rows], predicted[rows], low, high, texts, arrows[rows])


def point_words(page: Reported, row: int, place: int) -> str:
    """The values of a test molecule, one per line."""
    labelled, predicted = page.tested[row], float(page.test.prediction[row, place])
    lines = [
        page.name_of(labelled.number),
        labelled.smiles,
        f"measured {page.label_text(labelled, place)}",
        f"predicted {page.predicted(predicted, place)}",
    ]
    if (interval := page.interval(row, place)) is not None:
        lines.append(f"{page.interval_name} {interval}")
    return "\n".join(lines)


def labels_chart(page: Reported, place: int) -> Chart:
    learnt, tested = (each[:, place] for each in (page.labels.y, page.test.y.astype(np.float64)))
    learnt, tested = learnt[~np.isnan(learnt)], tested[~np.isnan(tested)]
    caption = line("predictions.labels", learnt=len(learnt), tested=len(tested))
    return histogram_chart(f"{page.task.targets[place]}: labels", learnt, tested, caption)


def probabilities_section(page: Reported) -> Section:
    """Confusion tables, probabilities and curves of a binary classification."""
    grids, charts = [], []
    for place, target in enumerate(page.task.targets[:MAX_PANELS]):
        names, points = page.classes_of(target), points_of(page, place)
        if len(points.words):
            y, probability = page.labelled_pairs(place, page.test.prediction)
            grids += [confusion_grid(target, names, y, probability), thresholds_grid(target, names, y, probability)]
            charts.append(
                strip_chart(target, points, names, "Probabilities by measured class; the dashed line is 0.5.")
            )
    charts += [*ranking_charts(page), *precision_charts(page)]
    return Section("Predictions", words("predictions.thresholds", cut=f"{CUT:g}"), tuple(grids), tuple(charts))


def confusion_grid(target: str, names: tuple[str, ...], y: np.ndarray, probability: np.ndarray) -> Grid:
    """How many molecules [M] of each class are predicted as which class, at the threshold ``CUT``."""
    return counts_grid(f"{target} at the threshold {CUT:g}", names, y > 0.5, probability >= CUT)


def confusion_of_classes(names: tuple[str, ...], y: np.ndarray, probabilities: np.ndarray) -> Grid:
    """As ``confusion_grid`` for the most probable of several classes: one-hot labels and probabilities [M, K]."""
    labelled = ~np.isnan(y).any(axis=1)
    return counts_grid("", names, y[labelled].argmax(axis=1), probabilities[labelled].argmax(axis=1))


def counts_grid(caption: str, names: tuple[str, ...], measured: np.ndarray, predicted: np.ndarray) -> Grid:
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
        rows.append((f"{threshold:g}", f"{chosen.sum():,}", *(shown_share(part, of) for part, of in found)))
    header = ("threshold", f"predicted {names[1]}", "sensitivity", "specificity", "precision")
    return Grid(header, tuple(rows), f"{target} at other thresholds")


def shown_share(part: np.ndarray, of: np.ndarray) -> str:
    """The share of the molecules ``of`` [M] that are also in ``part`` [M], both true or false."""
    return f"{(part & of).sum() / of.sum():.2f}" if of.any() else UNDEFINED


def rankings(page: Reported) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The targets with labels of both classes, their labels and the probabilities for them."""
    for place, target in enumerate(page.task.targets[:MAX_PANELS]):
        y, probability = page.labelled_pairs(place, page.test.prediction)
        if len(np.unique(y)) == 2:
            yield target, y, probability


def ranking_charts(page: Reported) -> Iterator[Chart]:
    """The ROC curve of each target."""
    from sklearn.metrics import roc_curve  # its import takes seconds

    for target, y, probability in rankings(page):
        curve = roc_curve(y, probability)[:2]
        axes = Axis("false positive rate", UNIT), Axis("true positive rate", UNIT)
        yield lines_chart(f"{target}: ROC curve", axes, {"guide": (ENDS, ENDS), "trend": curve}, "Dashed: chance.")


def precision_charts(page: Reported) -> Iterator[Chart]:
    """The precision-recall curve of each target."""
    from sklearn.metrics import precision_recall_curve  # its import takes seconds

    for target, y, probability in rankings(page):
        precision, recall, _ = precision_recall_curve(y, probability)
        lines = {"guide": (ENDS, np.full(2, y.mean())), "trend": (recall, precision)}
        axes = Axis("recall", UNIT), Axis("precision", UNIT)
        yield lines_chart(f"{target}: precision and recall", axes, lines, "Dashed: the share of positives.")
