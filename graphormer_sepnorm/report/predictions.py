"""The section of a report on predictions: charts, and confusion tables for classes.

Axis letters: M molecules, T targets, K classes.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.pictures import draw_small
from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.report.bias import of_extremes, of_test_bias
from graphormer_sepnorm.report.charts import (
    DIAGONAL,
    UNIT,
    Axis,
    Points,
    histogram_chart,
    lines_chart,
    on_axis,
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

MOST_POINTS = 1_000  # of a chart
MOST_STRUCTURES = 300  # that appear in it: about 400 kB
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
    """Residuals and the histogram of labels of each target of a regression."""
    charts: list[Chart] = []
    for place, target in enumerate(page.task.targets[:MAX_PANELS]):
        points = points_of(page, place)
        if len(points.words):
            said = "Residuals should scatter around 0 everywhere."
            charts.append(residual_chart(f"{target}: residuals", points, said))
        learnt, tested = (y[~np.isnan(y)] for y in (page.labels.y[:, place], page.test.y[:, place].astype(np.float64)))
        caption = line("predictions.labels", learnt=len(learnt), tested=len(tested))
        charts.append(histogram_chart(f"{target}: labels", learnt, tested, caption))
    labels = int((~np.isnan(page.test.y)).sum(axis=0).max())
    paragraphs = words("predictions.values", labels=labels, most=MOST_POINTS)
    return Section("Predictions", (*paragraphs, *of_extremes(page), *of_test_bias(page)), charts=tuple(charts))


def hero(page: Reported) -> Iterator[Chart]:
    """The chart of each target on top of the page: parity, or the probabilities of two classes."""
    confidence = None if page.confidence is None else float(page.confidence)
    for place, target in enumerate(() if TASKS[page.task.kind].adds_up else page.task.targets[:MAX_PANELS]):
        points = points_of(page, place, with_bounds=True)
        if not len(points.words):
            continue
        if page.is_regression:
            has_bounds = points.arrows is not None and bool(points.arrows.any())
            said = line("predictions.parity", confidence=confidence, has_bounds=has_bounds)
            yield parity_chart(f"{target}: predicted against measured", points, said)
        else:
            said = "Probabilities by measured class; the dashed line is 0.5."
            yield strip_chart(f"{target}: probabilities", points, page.classes_of(target), said)


def structures(smiles: Sequence[str], errors: np.ndarray) -> dict[str, str]:
    """Drawings of the molecules [M] of a chart, by SMILES: half of them with the largest errors, and evenly chosen."""
    order = np.argsort(-np.nan_to_num(errors, nan=-1.0), kind="stable")
    worst, others = np.split(order, [MOST_STRUCTURES // 2])
    rows = [*worst, *(others[evenly(len(others), MOST_STRUCTURES // 2)] if len(others) else ())]
    found = {}
    for text in dict.fromkeys(smiles[row] for row in rows):
        with suppress(InputError):  # it cannot be drawn
            found[text] = draw_small(text)
    return found


def points_of(page: Reported, place: int, with_bounds: bool = False) -> Points:
    """The labelled test molecules of a target, at most ``MOST_POINTS``; with those of censored labels on request."""
    measured = page.test.y[:, place].astype(np.float64)
    bounds = page.test.bounds if with_bounds else None
    measured, arrows = on_axis(measured, None if bounds is None else bounds[:, place])
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
    grids = []
    for place, target in enumerate(page.task.targets[:MAX_PANELS]):
        names, (y, probability) = page.classes_of(target), page.labelled_pairs(place, page.test.prediction)
        if len(y):
            caption = f"{target} at the threshold {CUT:g}"
            grids.append(counts_grid(caption, names, y > 0.5, probability >= CUT))
            grids.append(thresholds_grid(target, names, y, probability))
    charts = (*ranking_charts(page), *precision_charts(page))
    return Section("Predictions", words("predictions.thresholds", cut=f"{CUT:g}"), tuple(grids), charts)


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
