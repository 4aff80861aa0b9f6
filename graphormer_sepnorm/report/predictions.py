"""The section of a report on predictions: charts, and confusion tables for classes. M molecules, T targets."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import ROUND_DOWN, Context

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.pictures import draw_plain
from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.report.headline import of_extremes
from graphormer_sepnorm.report.page import (
    DIAGONAL,
    LARGE,
    MOST_POINTS,
    UNIT,
    Axis,
    Chart,
    Dot,
    Grid,
    HistogramBar,
    Line,
    Section,
    line,
)
from graphormer_sepnorm.report.reported import CUT, Reported, worst_first
from graphormer_sepnorm.runs.numbers import UNDEFINED, decimals_for
from graphormer_sepnorm.runs.plots import at_bounds, roc_of

MOST_STRUCTURES = 300  # that appear in a chart: about 400 kB
THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)
FOUND = (0.95, 0.9, 0.8)  # shares of the positives
BINS = 20


def predictions_section(page: Reported) -> Section:
    """Residuals and labels of a regression, or tables of classes and curves."""
    if page.is_regression:
        said = (*page.words("predictions.values", most=MOST_POINTS), *of_extremes(page))
        return Section("Predictions", said, charts=tuple(value_charts(page)))
    if page.adds_up:
        labelled = ~np.isnan(page.test.y).any(axis=1)
        classes = (each[labelled].argmax(axis=1) for each in (page.test.y, page.test.prediction))
        grids, said = [counts_grid("", page.options.classes, *classes)], page.words("predictions.classes")
        return Section("Predictions", said, tuple(grids), tuple(curve_charts(page)))
    grids = []
    for place, target in enumerate(page.panels):
        names, (y, probability) = page.classes_of(place), page.labelled_pairs(place)
        if len(y):
            grids.append(counts_grid(f"{target} at the threshold {CUT:g}", names, y > 0.5, probability >= CUT))
            *most, where = page.most_labelled(place)
            grids.append(thresholds_grid(f"{target} at other thresholds{where and ', '}{where}", names, *most))
    said = page.words("predictions.thresholds", cut=f"{CUT:g}")
    return Section("Predictions", said, tuple(grids), tuple(curve_charts(page, with_precision=True)))


def value_charts(page: Reported) -> Iterator[Chart]:
    for place, target in enumerate(page.panels):
        if dots := dots_of_target(page, place, None):
            yield residual_chart(target, dots)
        learnt, tested = (y[~np.isnan(y)] for y in (page.labels.y[:, place], page.test.y[:, place].astype(np.float64)))
        yield histogram_chart(target, learnt, tested[: 0 if page.results else None])


def hero(page: Reported) -> Iterator[Chart]:
    """The chart of each target on top of the page: parity, or the probabilities of two classes."""
    for place, target in enumerate(() if page.adds_up else page.panels):
        dots = dots_of_target(page, place, page.test.bounds)
        if dots and page.is_regression:
            yield parity_chart(target, dots, page.level)
        elif dots:
            yield strip_chart(target, dots, page.classes_of(place))


def structures(smiles: Sequence[str], errors: np.ndarray) -> dict[str, str]:
    """Drawings of the molecules [M] of a chart, by SMILES: half of them with the largest errors, and evenly chosen."""
    worst, others = np.split(worst_first(errors), [MOST_STRUCTURES // 2])
    rows = [*worst, *others[evenly(len(others), MOST_STRUCTURES // 2)]]
    pictures = {}
    for text in dict.fromkeys(smiles[row] for row in rows):
        with suppress(InputError):  # it cannot be drawn
            pictures[text] = draw_plain(text, is_small=True).decode()
    return pictures


def dots_of_target(page: Reported, place: int, bounds: np.ndarray | None) -> list[Dot]:
    """At most ``MOST_POINTS`` of the test labels of a target, and their bounds [M, T, 2], with the predictions."""

    def text_of(row: int) -> str:
        tested, interval = page.tested[row], page.interval(row, place)
        facts = [page.tested_name(row), tested.smiles, f"measured {page.label_text(tested, place)}"]
        facts.append(f"predicted {page.predicted(float(page.test.prediction[row, place]), place)}")
        return "\n".join([*facts, f"{page.interval_name} {interval}"] if interval else facts)

    y, arrows = at_bounds(page.test.y[:, place], None if bounds is None else bounds[:, place])
    labelled, ends, values = np.flatnonzero(~np.isnan(y)), page.interval_ends[:, place], page.test.prediction[:, place]
    rows = labelled[evenly(len(labelled), MOST_POINTS)].tolist()
    return [Dot(float(y[row]), float(values[row]), text_of(row), ends[row].tolist(), arrows[row]) for row in rows]


def parity_chart(target: str, dots: list[Dot], level: float) -> Chart:
    """Predicted against measured values, with their intervals at a confidence level."""
    ticks = Axis.around("", np.array([[dot.x, dot.y, *dot.ends] for dot in dots])).ticks
    axes, guide = (Axis("measured", ticks), Axis("predicted", ticks)), {"guide": ((ticks[0], ticks[-1]),) * 2}
    caption = line("predictions.parity", dots=dots, level=level)
    return Chart(f"{target}: predicted against measured", *axes, caption, guide, dots, size=LARGE)


def residual_chart(target: str, dots: list[Dot]) -> Chart:
    residuals = [Dot(dot.y, dot.x - dot.y, dot.words) for dot in dots]
    places = np.array([each[:2] for each in residuals])
    x, y = Axis.around("predicted", places[:, 0]), Axis.around("measured minus predicted", places[:, 1], np.zeros(1))
    guide = {"guide": ([x.ticks[0], x.ticks[-1]], [0.0, 0.0])}
    return Chart(f"{target}: residuals", x, y, line("predictions.residuals"), guide, residuals)


def histogram_chart(target: str, learnt: np.ndarray, tested: np.ndarray) -> Chart:
    """Shares of labels in bins; the test labels [P], if any, as narrower bars before the training labels [M]."""
    both = np.concatenate([learnt, tested])
    edges = np.histogram_bin_edges(both, min(BINS, max(len(np.unique(both)), 1)))
    rounded, bars = edges.round(decimals_for([edges[1] - edges[0]])).tolist(), []
    for name, shrink, labels in (("training", 0.0, learnt), ("test", 0.25, tested)):
        for place, count in enumerate(np.histogram(labels, edges)[0].tolist() if len(labels) else ()):
            (first, last), (start, end) = rounded[place : place + 2], edges[place : place + 2]
            text = f"{first:.12g} to {last:.12g}: {count} of {len(labels)} {name} labels"
            gap = shrink * (end - start)
            bars.append(HistogramBar(start + gap, end - gap, 100 * count / max(len(labels), 1), text, name))
    axes = Axis.around("measured", edges), Axis.around("% of the labels", np.array([0, *(bar.height for bar in bars)]))
    caption = line("predictions.labels", learnt=len(learnt), tested=len(tested))
    return Chart(f"{target}: labels", *axes, caption, bars=bars)


def strip_chart(target: str, dots: list[Dot], names: Sequence[str]) -> Chart:
    """Probabilities of class 1, one row of points per measured class; points are spread to show them all."""
    x = Axis(f"predicted probability of {names[1]}", (0, 0.25, 0.5, 0.75, 1))
    y = Axis("measured", (-0.5, 0, 1, 1.5), ("", *names, ""))
    shifts, guide = np.random.default_rng(0).uniform(-0.3, 0.3, len(dots)), {"guide": ([0.5, 0.5], [-0.5, 1.5])}
    spread = [Dot(dot.y, dot.x + shift, dot.words) for dot, shift in zip(dots, shifts, strict=True)]
    return Chart(f"{target}: probabilities", x, y, line("predictions.strip"), guide, spread, size=LARGE)


def counts_grid(caption: str, names: Sequence[str], measured: np.ndarray, predicted: np.ndarray) -> Grid:
    """How many molecules [M] of each class, by number, are predicted as which class."""
    from sklearn.metrics import confusion_matrix  # its import takes seconds

    counts = confusion_matrix(measured.astype(int), predicted.astype(int), labels=range(len(names)))
    header = ("measured", *(f"predicted {name}" for name in names))
    rows = zip(names, counts.tolist(), strict=True)
    return Grid(header, tuple((name, *(f"{count:,}" for count in row)) for name, row in rows), caption)


def thresholds_grid(caption: str, names: Sequence[str], y: np.ndarray, probability: np.ndarray) -> Grid:
    """Sensitivity, specificity and precision at several thresholds, and at those that find most positives.

    These are rounded down, so that the number as it is printed finds as many.
    """
    rows, positive, down = [], y > 0.5, Context(prec=3, rounding=ROUND_DOWN)
    best, finding = np.sort(probability[positive])[::-1].tolist(), {}
    for share in FOUND if best else ():
        finding[float(down.create_decimal(repr(best[math.ceil(share * len(best)) - 1])))] = f" (finds {share:.0%})"
    for threshold in (*THRESHOLDS, *finding):
        chosen = probability >= threshold
        cells = ((chosen, positive), (~chosen, ~positive), (positive, chosen))
        counts = (((part & of).sum(), of.sum()) for part, of in cells)
        shares = (f"{part / of:.2f} ({part:,} of {of:,})" if of else UNDEFINED for part, of in counts)
        count = f"{chosen.sum():,} ({chosen.mean():.0%})"
        rows.append((f"{threshold:.3g}{finding.get(threshold, '')}", count, *shares))
    header = ("threshold", f"predicted {names[1]}", "sensitivity", "specificity", "precision")
    return Grid(header, tuple(rows), caption)


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
