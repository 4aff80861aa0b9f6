"""The sections of a report on predictions: charts, tables of classes, and single molecules. M molecules, T targets."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import ROUND_DOWN, Context
from time import monotonic

import numpy as np

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.pictures import draw, draw_pair, draw_plain
from graphormer_sepnorm.predict.describing import same_conditions
from graphormer_sepnorm.predict.domain import MAX_REFERENCES, evenly, is_same_molecule, similarity_words
from graphormer_sepnorm.report.charts import DIAGONAL, LARGE, MOST_DOTS, UNIT, Axis, Chart, Dot, HistogramBar, Line
from graphormer_sepnorm.report.headline import of_extremes
from graphormer_sepnorm.report.page import Grid, Molecule, Picture, Section
from graphormer_sepnorm.report.reported import CUT, Reported, plain_picture, worst_first
from graphormer_sepnorm.report.words import line
from graphormer_sepnorm.runs.numbers import UNDEFINED, decimals_for, percent, shown
from graphormer_sepnorm.runs.plots import MAX_PANELS, at_bounds, roc_of
from graphormer_sepnorm.table_model.explain import explain_rows
from graphormer_sepnorm.table_model.labels import label_arrays
from graphormer_sepnorm.table_model.pairs import Change, Cliff, activity_cliffs, cuts_of, matched_changes
from graphormer_sepnorm.tables.labels import LabelledRow

MOST_STRUCTURES = 300  # that appear in a chart: about 400 kB
THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)
FOUND = (0.95, 0.9, 0.8)  # shares of the positives
BINS = 20
WORST = 8
EXPLAINED, MOST_ATOMS, SECONDS = 4, 70, 30
CHANGES = 10
MOST_PAIRED = 2_000  # molecules that are compared pairwise
CLIFFS = 4


def predictions_section(page: Reported) -> Section:
    """Residuals and labels of a regression, or tables of classes and curves."""
    if page.is_regression:
        said = (*page.words("predictions.values", most=MOST_DOTS), *of_extremes(page))
        return Section("Predictions", said, charts=tuple(value_charts(page)))
    if page.adds_up:
        labelled = ~np.isnan(page.test.y).any(axis=1)
        classes = (each[labelled].argmax(axis=1) for each in (page.test.y, page.test.prediction))
        grid, said = counts_grid("", page.options.classes, *classes), page.words("predictions.classes")
        return Section("Predictions", said, (grid,), tuple(curve_charts(page)))
    grids = []
    for place, target in enumerate(page.panels):
        names, (y, probability) = page.classes_of(place), page.labelled_pairs(place)
        if len(y):
            grids.append(counts_grid(f"{target} at the threshold {CUT:g}", names, y > 0.5, probability >= CUT))
            *most, where = page.most_labelled(place)
            grids.append(thresholds_grid(f"{target} at other thresholds{where and ', '}{where}", names, *most))
    said = page.words("predictions.thresholds", cut=f"{CUT:g}")
    return Section("Predictions", said, tuple(grids), tuple(curve_charts(page)))


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
    """At most ``MOST_DOTS`` of the test labels of a target, and their bounds [M, T, 2], with the predictions."""

    def text_of(row: int) -> str:
        tested, interval = page.tested[row], page.interval(row, place)
        facts = [page.tested_name(row), tested.smiles, f"measured {page.label_text(tested, place)}"]
        facts.append(f"predicted {page.predicted(float(page.test.prediction[row, place]), place)}")
        return "\n".join([*facts, f"{page.interval_name} {interval}"] if interval else facts)

    y, arrows = at_bounds(page.test.y[:, place], None if bounds is None else bounds[:, place])
    labelled, ends, values = np.flatnonzero(~np.isnan(y)), page.interval_ends[:, place], page.test.prediction[:, place]
    rows = labelled[evenly(len(labelled), MOST_DOTS)].tolist()
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
    columns: dict[str, Sequence[str]] = {"measured": names}
    for name, column in zip(names, counts.T, strict=True):
        columns[f"predicted {name}"] = [f"{count:,}" for count in column]
    return Grid.of(columns, caption)


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


def curve_charts(page: Reported) -> Iterator[Chart]:
    """The ROC curve of each target with labels of both classes, and of two classes precision against recall."""
    from sklearn.metrics import precision_recall_curve  # its import takes seconds

    for place, target in enumerate(page.panels):
        y, probability = page.labelled_pairs(place)
        if (rates := roc_of(y, probability)) is None:
            continue
        lines: dict[str, Line] = {"guide": DIAGONAL, "trend": rates}
        axes = Axis("false positive rate", UNIT), Axis("true positive rate", UNIT)
        yield Chart(f"{target}: ROC curve", *axes, "Dashed: chance.", lines)
        if not page.adds_up:
            precision, recall, _ = precision_recall_curve(y, probability)
            lines = {"guide": ([0.0, 1.0], [y.mean()] * 2), "trend": (recall, precision)}
            axes, said = (Axis("recall", UNIT), Axis("precision", UNIT)), "Dashed: the share of positives."
            yield Chart(f"{target}: precision and recall", *axes, said, lines)


def worst_section(page: Reported) -> Section:
    """The test molecules with the largest errors, each with its most similar training molecule."""
    errors, molecules = page.looked.errors, []
    for row in (row for row in worst_first(errors)[:WORST].tolist() if errors[row] > 0):
        facts = list(class_facts(page, row) if page.adds_up else value_facts(page, row))
        facts += [("warning", warning)] if (warning := page.looked.warnings[row]) else []
        smiles, name = page.looked.smiles[row], page.tested_name(row)
        molecules.append(Molecule(name, smiles, plain_picture(smiles), tuple(facts), neighbour(page, row)))
    return Section("Worst predictions", page.words("predictions.worst"), molecules=tuple(molecules))


def value_facts(page: Reported, row: int) -> Iterator[tuple[str, str]]:
    """The labels of a test molecule, their predictions with the intervals or the sets of classes, and the errors."""
    for place in np.flatnonzero(~np.isnan(page.test.y[row]))[:MAX_PANELS].tolist():
        predicted = page.test.prediction[row, place]
        yield of_target(page, "measured", place), page.label_of(page.tested[row], place)
        yield of_target(page, "predicted", place), page.predicted(predicted, place)
        if (interval := page.interval(row, place)) is not None:
            yield of_target(page, f"{page.interval_name} of", place), interval
        if page.class_sets:
            yield of_target(page, f"{percent(page.level)} set of", place), page.class_sets[place][row]
        yield of_target(page, "error of", place), page.difference(predicted, page.test.y[row, place], place)


def of_target(page: Reported, fact: str, place: int) -> str:
    """The name of a fact, such as "error of", with that of its target if there are several."""
    return fact.removesuffix(" of") if len(page.task.targets) == 1 else f"{fact} {page.task.targets[place]}"


def class_facts(page: Reported, row: int) -> Iterator[tuple[str, str]]:
    """The class of a test molecule of several classes, the most probable one, their probabilities, and its set."""
    prediction, names = page.test.prediction[row], page.task.classes[0]
    for fact, values in (("measured", page.test.y[row]), ("predicted", prediction)):
        place = int(values.argmax())
        yield fact, f"{names[place]} (probability {page.rounded(prediction[place], place)})"
    if page.class_sets:
        yield f"{percent(page.level)} set", page.class_sets[0][row]


def neighbour(page: Reported, test_row: int) -> Molecule | None:
    """The training molecule that is most similar to a test molecule."""
    if page.results:  # it was learnt, too
        return None
    trust, conditions, smiles = page.trust, None, page.looked.smiles[test_row]
    assert trust.rows is not None
    if page.options.feature_columns:
        conditions, _ = page.model.conditions.encode_all([page.tested[test_row].conditions])
    (similarity,), (row,), _ = trust.domain.nearest_rows([smiles], same_conditions(trust.rows, conditions))
    if row < 0:
        return None
    name, nearest = trust.rows.names[row], trust.domain.smiles[row]
    learnt = page.learnt[evenly(len(page.learnt), MAX_REFERENCES)[row]]
    facts = [("similarity", similarity_words(similarity, is_same_molecule(smiles, nearest)))]
    if page.adds_up:
        facts.append(("measured", page.task.classes[0][int(np.argmax(learnt.labels))]))
    else:
        facts += [(of_target(page, "measured", at), page.label_of(learnt, at)) for at in range(len(page.panels))]
    facts += zip(page.options.feature_columns, learnt.conditions, strict=True)
    named = name if page.labelled.names else f"row {name}"
    return Molecule(f"Nearest training molecule: {named}", nearest, plain_picture(nearest), tuple(facts))


def contributions_section(page: Reported) -> Section | None:
    """Those for the lowest and the highest predictions of the first target; after ``SECONDS``, no other is begun."""
    if page.model.conditions.columns or page.results:
        return None
    order = np.argsort(page.test.prediction[:, 0], kind="stable").tolist()
    small = [row for row in order if read_smiles(page.looked.smiles[row]).GetNumAtoms() <= MOST_ATOMS]
    decimals, started, pictures = dict(zip(page.task.targets, page.decimals, strict=True)), monotonic(), []
    for row in dict.fromkeys([*small[: EXPLAINED // 2], *small[-EXPLAINED // 2 :]]):
        if monotonic() - started >= SECONDS:
            break
        explanation = explain_rows(page.model, [page.looked.smiles[row]], decimals=decimals)[0]
        if isinstance(explanation, InputError):
            continue
        if page.is_regression:  # as in the other sections
            caption = f"{page.task.targets[0]} = {page.predicted(page.test.prediction[row, 0], 0)}"
            explanation = replace(explanation, caption=caption)
        pictures.append(Picture(draw([explanation], ".svg"), f"{page.tested_name(row)}: {explanation.caption}"))
    paragraphs = page.words("predictions.contributions", most=MOST_ATOMS, has_larger=len(small) < len(order))
    return Section("Atom contributions", paragraphs, pictures=tuple(pictures)) if pictures else None


def paired(page: Reported) -> tuple[list[LabelledRow], list[str]]:
    """The training molecules that are compared pairwise, and their keys."""
    rows = zip(page.labelled.rows, page.labelled.structures.keys, strict=True)
    keys = [key for row, key in rows if row.split != "test"]
    places = evenly(len(keys), MOST_PAIRED)
    return [page.learnt[place] for place in places], [keys[place] for place in places]


def pairs_section(page: Reported) -> Section | None:
    if not page.is_regression:
        return None
    rows, keys = paired(page)
    (y, bounds), smiles, grids = label_arrays(rows), [row.smiles for row in rows], []
    parts, conditions = [cuts_of(read_smiles(each)) for each in smiles], [row.conditions for row in rows]
    for place, target in enumerate(page.panels):
        ends = None if bounds is None else bounds[:, place]
        if changes := matched_changes(parts, y[:, place], conditions, keys, ends)[:CHANGES]:
            grids.append(changes_grid(target, changes, smiles, y[:, place]))
    paragraphs = page.words("predictions.pairs", has_bounds=bounds is not None, most=MOST_PAIRED)
    return Section("Matched pairs", paragraphs, tuple(grids)) if grids else None


def changes_grid(target: str, changes: list[Change], smiles: Sequence[str], y: np.ndarray) -> Grid:
    """The replacements and their mean effect on a target, each with a pair of the molecules, with labels [M]."""
    decimals = decimals_for(number for change in changes for number in (change.mean, change.deviation))
    before, after = zip(*(example_of(change, smiles, y) for change in changes), strict=True)
    bounded = [{"up": each.rising, "down": each.falling, "undecided": each.undecided} for each in changes]
    columns: dict[str, Sequence[str | Picture]] = {
        "from": before,
        "to": after,
        "mean change": [f"{change.mean:+.{decimals}f}" for change in changes],
        "standard deviation": [shown(change.deviation, decimals) for change in changes],
        "pairs": [f"{len(change.pairs):,}" for change in changes],
    }
    if any(any(each.values()) for each in bounded):
        texts = [", ".join(f"{n:,} {name}" for name, n in each.items() if n) for each in bounded]
        columns["pairs with a bound"] = texts
    return Grid.of(columns, target)


def example_of(change: Change, smiles: Sequence[str], y: np.ndarray) -> Sequence[Picture | str]:
    """The pair whose labels differ most nearly by the mean, drawn; the SMILES of the parts if it cannot be drawn."""
    one, other = min(change.pairs, key=lambda pair: abs(y[pair[1]] - y[pair[0]] - change.mean))
    parts = change.before, change.after
    try:
        return list(map(Picture, draw_pair(smiles[one], smiles[other]), parts))
    except InputError:
        return parts


def cliffs_section(page: Reported) -> Section | None:
    if not page.is_regression:
        return None
    rows, keys = paired(page)
    y, bounds = label_arrays(rows)
    columns = [read_smiles(row.smiles) for row in rows], y[:, 0], [row.conditions for row in rows], keys
    pairs = activity_cliffs(*columns, None if bounds is None else bounds[:, 0])
    cliffs = tuple(cliff_molecule(page, cliff, rows[cliff.lower], rows[cliff.higher]) for cliff in pairs[:CLIFFS])
    said = page.words("predictions.cliffs", most=MOST_PAIRED)
    return Section("Activity cliffs", said, molecules=cliffs) if cliffs else None


def cliff_molecule(page: Reported, cliff: Cliff, lower: LabelledRow, higher: LabelledRow) -> Molecule:
    apart = f"more than {page.rounded(cliff.difference, 0)}"
    if not np.isnan([lower.labels[0], higher.labels[0]]).any():
        apart = page.difference(higher.labels[0], lower.labels[0], 0)
    similarity, (one, other) = ("similarity of the pair", f"{cliff.similarity:.2f}"), (None, None)
    with suppress(InputError):  # it cannot be drawn
        one, other = map(Picture, draw_pair(lower.smiles, higher.smiles), (lower.smiles, higher.smiles))
    below, above = ((of_target(page, "measured", 0), page.label_of(row, 0)) for row in (lower, higher))
    facts = above, (of_target(page, "difference of", 0), apart), similarity
    partner = Molecule(page.name_of(higher.number), higher.smiles, other, facts)
    return Molecule(page.name_of(lower.number), lower.smiles, one, (below,), partner)
