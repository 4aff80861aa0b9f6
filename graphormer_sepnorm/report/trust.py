"""The sections of a report on the reliability of intervals, probabilities and distances."""

from collections.abc import Iterator

import numpy as np

from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.report.charts import Axis, Drawing, coverage_chart, reliability_chart
from graphormer_sepnorm.report.headline import FEW_TESTED
from graphormer_sepnorm.report.page import Chart, Grid, Section
from graphormer_sepnorm.report.predictions import MOST_POINTS
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.report.words import line, words
from graphormer_sepnorm.runs.numbers import percent, shown, shown_together
from graphormer_sepnorm.runs.plots import MAX_PANELS, binned
from graphormer_sepnorm.table_model.reliability import (
    CONFIDENCES,
    CURVE,
    USUAL_CONFIDENCE,
    coverage_curve,
    error_words,
    too_low,
    wider_words,
)
from graphormer_sepnorm.tasks import TASKS

LEAST_BINNED = 20  # molecules, of which a mean error does not say more about chance than about the distance


def trust_section(page: Reported) -> Section:
    """The coverage of the intervals, or the calibration of the probabilities."""
    trust = page.result["trust"]
    if "coverage" in trust:
        return intervals_section(page)
    if "brier" in trust:
        return calibration_section(page)
    if TASKS[page.task.kind].calibrated_by is None:
        return Section("Probabilities", (*words("trust.uncalibrated"), *of_sets(page)))
    return Section("Intervals", words("trust.no_intervals", calibrated_by=trust["calibrated_by"]))


def intervals_section(page: Reported) -> Section:
    trust, targets = page.result["trust"], page.task.targets
    header = ("confidence", *(f"{name}: {what}" for name in targets for what in ("coverage", "mean width")))
    levels = list(trust["coverage"])
    columns = [[percent(float(level)) for level in levels]]
    for name in targets:
        columns.append([percent(trust["coverage"][level][name]) for level in levels])
        columns.append(shown_together(trust["mean_width"][level][name] for level in levels))
    rows = tuple(zip(*columns, strict=True))
    exact = (~np.isnan(page.labels.y[page.folds.predicted])).sum(axis=0).tolist()
    facts = {
        "has_undefined": any(None in widths.values() for widths in trust["mean_width"].values()),
        "untested": [name for name in targets if not page.result["targets"][name]["n"]],
    }
    paragraphs = (
        *words("trust.intervals", least=min(exact), most=max(exact), calibrated_by=trust["calibrated_by"], **facts),
        *narrow_words(page),
        *unlike_words(page, "Coverage can be below the confidence"),
    )
    return Section("Intervals", paragraphs, (Grid(header, rows),), tuple(coverage_charts(page)))


def narrow_words(page: Reported) -> Iterator[str]:
    """How far a higher confidence level helps, for each target with clearly too narrow intervals."""
    trust, level, highest = page.result["trust"], page.confidence, str(CONFIDENCES[-1])
    if level is None:
        return
    counts = {name: facts["n"] for name, facts in page.result["targets"].items()}
    for name in too_low(trust["coverage"][level], counts, level):
        share, target = trust["coverage"].get(highest, {}).get(name), name if len(counts) > 1 else None
        if share is not None:
            numbers = {"level": float(level), "highest": CONFIDENCES[-1], "share": share}
            yield line("trust.narrow", target=target, wider=wider_words(trust, level, name), **numbers)


def unlike_words(page: Reported, consequence: str) -> tuple[str, ...]:
    """Why fewer test labels than promised can be inside, which is the consequence."""
    split = None if page.options.test_csv is not None or page.options.folds else page.options.split
    grow = page.result["trust"].get("errors_grow", False)
    return words("trust.unlike", consequence=consequence, split=split, errors_grow=grow)


def coverage_charts(page: Reported) -> Iterator[Chart]:
    """The coverage of the intervals of each target by confidence level."""
    assert page.model.trust is not None and page.model.trust.intervals is not None
    shares = coverage_curve(page.model.trust.intervals, page.test)
    for target, covered in list(zip(page.task.targets, shares.T, strict=True))[:MAX_PANELS]:
        yield coverage_chart(f"{target}: coverage", CURVE, covered, line("trust.covered"))


def calibration_section(page: Reported) -> Section:
    trust = page.result["trust"]
    names, targets = {"calibration_error": "calibration error", "brier": "Brier score"}, page.task.targets
    each = [(name, stage) for name in names for stage in ("before", "after")]
    header = ("", *(f"{names[name]}, {stage}" for name, stage in each))
    columns = [shown_together(trust[name][stage][target] for target in targets) for name, stage in each]
    rows = tuple(zip(targets, *columns, strict=True))
    least = min(facts["n"] for facts in page.result["targets"].values())
    by = {"count": trust["calibrated_on"], "by": trust["calibrated_by"], "are_several": len(targets) > 1}
    few, is_same = least if least < FEW_TESTED else None, columns[::2] == columns[1::2]
    paragraphs = words("trust.calibration", few=few, is_same=is_same, **by)
    return Section("Calibration", (*paragraphs, *of_sets(page)), (Grid(header, rows),), tuple(reliability_charts(page)))


def of_sets(page: Reported) -> Iterator[str]:
    """A sentence on the sets of classes of each target, if there are sets."""
    found, level = page.result["trust"], float(USUAL_CONFIDENCE)
    shares, single = (found.get(name, {}).get(USUAL_CONFIDENCE, {}) for name in ("set_coverage", "one_class"))
    for target, share in list(shares.items())[:MAX_PANELS]:
        if share is not None:
            title = page.title_of(target) if len(shares) > 1 else None
            yield line("trust.sets", target=title, level=level, share=share, single=single[target])
    if any(share is not None for share in shares.values()):
        yield from unlike_words(page, "Sets can contain the class less often than promised")


def reliability_charts(page: Reported) -> Iterator[Chart]:
    """The share of positives of each target by predicted probability."""
    for place, target in enumerate(page.task.targets[:MAX_PANELS]):
        y, after = page.labelled_pairs(place, page.test.prediction)
        _, before = page.labelled_pairs(place, page.plain)
        if len(y):
            yield reliability_chart(
                f"{target}: calibration", binned(before, y), binned(after, y), line("trust.reliability")
            )


def distance_section(page: Reported) -> Section:
    """Errors by the distance to the training molecules."""
    trust, of = page.result["trust"], error_words(page.task)
    parts = trust["error_by_similarity"]
    rows = tuple(
        (f"{part['from']:g} to {part['to']:g}", f"{part['n']:,}", error if part["n"] else "no molecules")
        for part, error in zip(parts, shown_together(part["error"] for part in parts), strict=True)
    )
    compared = trust["compared"] if trust["compared"] < len(page.looked.smiles) else None
    counts = {"count": trust["unfamiliar"], "compared": compared}
    paragraphs = words("trust.distance", has_conditions=bool(page.model.conditions.columns), **counts)
    grid = Grid(("similarity", "test molecules", f"mean {of}"), rows)
    return Section("Distance to the training molecules", paragraphs, (grid,), tuple(distance_charts(page)))


def distance_charts(page: Reported) -> Iterator[Chart]:
    """The errors against two distances, for as many molecules as the other charts show; means only of many errors."""
    near, errors = page.looked.nearness, page.looked.errors
    of = error_words(page.task)
    for x, title, label in (
        (near.similarity, "similarity", "largest Tanimoto similarity to a training molecule"),
        (near.distance, "distance of embeddings", "smallest distance to a training molecule"),
    ):
        known = np.flatnonzero(np.isfinite(x) & np.isfinite(errors))
        if len(known):
            drawn = known[evenly(len(known), MOST_POINTS)]
            names = [f"{page.looked.smiles[row]}\n{of} {shown(errors[row])}" for row in drawn.tolist()]
            lines = binned(x[known], errors[known], LEAST_BINNED) if len(known) >= FEW_TESTED else None
            groups = len(lines[0]) if lines else 0
            caption = line("trust.distances", groups=groups, size=len(known) // max(groups, 1), title=title)
            axes = Axis.around(label, x[drawn]), Axis.around(of, errors[drawn], np.zeros(1))
            drawing = Drawing(f"Errors by {title}", *axes)
            for dot in zip(x[drawn], errors[drawn], names, strict=True):
                drawing.dot(*dot)
            if lines is not None:
                drawing.line("mean", *(each.tolist() for each in lines))
            yield drawing.chart(caption)
