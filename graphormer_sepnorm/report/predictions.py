"""The section of a report on predictions: charts, and confusion tables for classes.

Axis letters: M molecules, T targets, K classes.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.pictures import draw_plain
from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.report.charts import (
    DIAGONAL,
    MOST_POINTS,
    UNIT,
    Axis,
    Chart,
    Line,
    Points,
    histogram_chart,
    parity_chart,
    residual_chart,
    strip_chart,
)
from graphormer_sepnorm.report.headline import of_extremes
from graphormer_sepnorm.report.page import Grid, Section
from graphormer_sepnorm.report.reported import CUT, Reported
from graphormer_sepnorm.report.words import line, words
from graphormer_sepnorm.runs.numbers import UNDEFINED
from graphormer_sepnorm.runs.plots import roc_of

MOST_STRUCTURES = 300  # that appear in a chart: about 400 kB
THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)
FOUND = (0.95, 0.9, 0.8)  # shares of the positives


def predictions_section(page: Reported) -> Section:
    """The predictions for the test molecules."""
    if page.is_regression:
        return values_section(page)
    if page.adds_up:
        known = ~np.isnan(page.test.y).any(axis=1)
        classes = (each[known].argmax(axis=1) for each in (page.test.y, page.test.prediction))
        grid = counts_grid("", page.options.classes, *classes)
        title = "Measured and most probable classes of the test molecules."
        return Section("Predictions", (title,), (grid,), tuple(curve_charts(page)))
    return probabilities_section(page)


def values_section(page: Reported) -> Section:
    """Residuals and the histogram of labels of each target of a regression."""
    charts: list[Chart] = []
    for place, target in enumerate(page.panels):
        points = points_of(page, place, None)
        if points.words:
            said = "Residuals should scatter around 0 everywhere."
            charts.append(residual_chart(f"{target}: residuals", points, said))
        learnt, tested = (y[~np.isnan(y)] for y in (page.labels.y[:, place], page.test.y[:, place].astype(np.float64)))
        caption = line("predictions.labels", learnt=len(learnt), tested=len(tested))
        charts.append(histogram_chart(f"{target}: labels", learnt, tested, caption))
    labels = int((~np.isnan(page.test.y)).sum(axis=0).max())
    paragraphs = words("predictions.values", labels=labels, most=MOST_POINTS)
    return Section("Predictions", (*paragraphs, *of_extremes(page)), charts=tuple(charts))


def hero(page: Reported) -> Iterator[Chart]:
    """The chart of each target on top of the page: parity, or the probabilities of two classes."""
    for place, target in enumerate(() if page.adds_up else page.panels):
        points = points_of(page, place, page.test.bounds)
        if points.words and page.is_regression:
            yield parity_chart(target, points, None if page.confidence is None else float(page.confidence))
        elif points.words:
            said = "Probabilities by measured class; the dashed line is 0.5."
            yield strip_chart(f"{target}: probabilities", points, page.classes_of(place), said)


def structures(smiles: Sequence[str], errors: np.ndarray) -> dict[str, str]:
    """Drawings of the molecules [M] of a chart, by SMILES: half of them with the largest errors, and evenly chosen."""
    order = np.argsort(-np.nan_to_num(errors, nan=-1.0), kind="stable")
    worst, others = np.split(order, [MOST_STRUCTURES // 2])
    rows = [*worst, *(others[evenly(len(others), MOST_STRUCTURES // 2)] if len(others) else ())]
    found = {}
    for text in dict.fromkeys(smiles[row] for row in rows):
        with suppress(InputError):  # it cannot be drawn
            found[text] = draw_plain(text, is_small=True).decode()
    return found


def points_of(page: Reported, place: int, bounds: np.ndarray | None) -> Points:
    """The labels of the test molecules for a target, and their bounds [M, T, 2], with the predictions."""

    def text_of(row: int) -> str:
        tested, interval = page.tested[row], page.interval(row, place)
        facts = [page.name_of(tested.number), tested.smiles, f"measured {page.label_text(tested, place)}"]
        facts.append(f"predicted {page.predicted(float(page.test.prediction[row, place]), place)}")
        return "\n".join([*facts, f"{page.interval_name} {interval}"] if interval else facts)

    ends = np.stack([each[:, place] for each in page.interval_ends], axis=1) if page.interval_ends else None
    given = page.test.y[:, place], None if bounds is None else bounds[:, place], page.test.prediction[:, place]
    return Points.of(*given, text_of, ends)


def probabilities_section(page: Reported) -> Section:
    """Confusion tables, probabilities and curves of a binary classification."""
    grids = []
    for place, target in enumerate(page.panels):
        names, (y, probability) = page.classes_of(place), page.labelled_pairs(place)
        if len(y):
            caption = f"{target} at the threshold {CUT:g}"
            grids.append(counts_grid(caption, names, y > 0.5, probability >= CUT))
            grids.append(thresholds_grid(target, names, y, probability))
    said = words("predictions.thresholds", cut=f"{CUT:g}")
    return Section("Predictions", said, tuple(grids), tuple(curve_charts(page, with_precision=True)))


def counts_grid(caption: str, names: Sequence[str], measured: np.ndarray, predicted: np.ndarray) -> Grid:
    """How many molecules [M] of each class, by number, are predicted as which class."""
    from sklearn.metrics import confusion_matrix  # its import takes seconds

    counts = confusion_matrix(measured.astype(int), predicted.astype(int), labels=range(len(names)))
    header = ("measured", *(f"predicted {name}" for name in names))
    rows = zip(names, counts.tolist(), strict=True)
    return Grid(header, tuple((name, *(f"{count:,}" for count in row)) for name, row in rows), caption)


def thresholds_grid(target: str, names: Sequence[str], y: np.ndarray, probability: np.ndarray) -> Grid:
    """Sensitivity, specificity and precision at several thresholds, and at those that find most positives."""
    rows, positive = [], y > 0.5
    best = np.sort(probability[positive])[::-1]
    finding = {best[math.ceil(share * len(best)) - 1]: f" (finds {share:.0%})" for share in FOUND if len(best)}
    for threshold in (*THRESHOLDS, *finding):
        chosen = probability >= threshold
        found = ((chosen, positive), (~chosen, ~positive), (positive, chosen))
        shares = (f"{(part & of).sum() / of.sum():.2f}" if of.any() else UNDEFINED for part, of in found)
        count = f"{chosen.sum():,} ({chosen.mean():.0%})"
        rows.append((f"{threshold:.3g}{finding.get(threshold, '')}", count, *shares))
    header = ("threshold", f"predicted {names[1]}", "sensitivity", "specificity", "precision")
    return Grid(header, tuple(rows), f"{target} at other thresholds")


def curve_charts(page: Reported, with_precision: bool = False) -> Iterator[Chart]:
    """The ROC curve of each target with labels of both classes, and precision against recall on request."""
    from sklearn.metrics import precision_recall_curve  # its import takes seconds

    for place, target in enumerate(page.panels):
        y, probability = page.labelled_pairs(place)
        if (rates := roc_of(y, probability)) is None:
            continue
        lines: dict[str, Line] = {"guide": DIAGONAL, "trend": rates}
        axes = Axis("false positive rate", UNIT), Axis("true positive rate", UNIT)
        yield Chart(f"{target}: ROC curve", *axes, "Dashed: chance.", lines)
        if with_precision:
            precision, recall, _ = precision_recall_curve(y, probability)
            lines = {"guide": ([0.0, 1.0], [y.mean()] * 2), "trend": (recall, precision)}
            axes, said = (Axis("recall", UNIT), Axis("precision", UNIT)), "Dashed: the share of positives."
            yield Chart(f"{target}: precision and recall", *axes, said, lines)
