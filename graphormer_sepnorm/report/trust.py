"""The sections of a report on the reliability of intervals, probabilities and distances."""

from collections.abc import Iterator

import numpy as np

from graphormer_sepnorm.inference.domain import evenly
from graphormer_sepnorm.report.charts import coverage_chart, error_chart, reliability_chart
from graphormer_sepnorm.report.headline import FEW_TESTED
from graphormer_sepnorm.report.page import Chart, Grid, Section
from graphormer_sepnorm.report.predictions import MOST_POINTS
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.runs.numbers import UNDEFINED, counted, percent, shown, shown_together
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
RARE_SCAFFOLDS = "puts the common scaffolds into the training set and rare ones into the test set"
APART = {  # splits after which the test molecules differ from the training molecules, and how
    "scaffold": RARE_SCAFFOLDS,
    "scaffold-deepchem": RARE_SCAFFOLDS,
    "butina": "puts the large clusters of similar molecules into the training set and small ones into the test set",
    "time": "tests on the latest molecules",
}


def trust_section(page: Reported) -> Section:
    """The coverage of the intervals, or the calibration of the probabilities."""
    trust = page.result["trust"]
    if "coverage" in trust:
        return intervals_section(page)
    if "brier" in trust:
        return calibration_section(page)
    if TASKS[page.task.kind].calibrated_by is None:
        words = "Multiclass probabilities are not calibrated. Instead of intervals there are sets of classes."
        return Section("Probabilities", (words, *of_sets(page)))
    return Section("Intervals", (f"No intervals: a target has no labels among the {trust['calibrated_by']}.",))


def intervals_section(page: Reported) -> Section:
    trust, targets = page.result["trust"], page.task.targets
    header = ("confidence", *(f"{name}: {what}" for name in targets for what in ("coverage", "mean width")))
    levels = list(trust["coverage"])
    columns = [list(map(percent, map(float, levels)))]
    for name in targets:
        columns.append([percent(trust["coverage"][level][name]) for level in levels])
        columns.append(shown_together(trust["mean_width"][level][name] for level in levels))
    rows = tuple(zip(*columns, strict=True))
    words = (
        f"The widths of the intervals come from the errors for {exact_labels(page)} of the {trust['calibrated_by']}. "
        "The coverage is the share of test values that are inside their interval."
    )
    if any(None in widths.values() for widths in trust["mean_width"].values()):
        words += f" {UNDEFINED.capitalize()}: this level needs more calibration molecules."
    if untested := [name for name in targets if not page.result["targets"][name]["n"]]:
        words += f" {', '.join(untested)}: no test labels."
    paragraphs = (words, *narrow_words(page), *unlike_words(page, "Coverage can be below the confidence"))
    return Section("Intervals", paragraphs, (Grid(header, rows),), tuple(coverage_charts(page)))


def exact_labels(page: Reported) -> str:
    """The number of exact labels of each target that intervals are calibrated on, as a range if they differ."""
    counts = (~np.isnan(page.labels.y[page.folds.predicted])).sum(axis=0).tolist()
    least, most = min(counts), max(counts)
    return counted(most, "exact label") if least == most else f"{least:,} to {counted(most, 'exact label')}"


def narrow_words(page: Reported) -> Iterator[str]:
    """How far a higher confidence level helps, for each target with clearly too narrow intervals."""
    trust, level, highest = page.result["trust"], page.confidence, str(CONFIDENCES[-1])
    if level is None:
        return
    counts = {name: facts["n"] for name, facts in page.result["targets"].items()}
    for name in too_low(trust["coverage"][level], counts, level):
        share = trust["coverage"].get(highest, {}).get(name)
        of = f"{name}: on" if len(counts) > 1 else "On"
        if share is not None:
            even, only = ("even ", "only ") if share < float(level) else ("", "")
            held = f"{even}{percent(float(highest))} intervals contain {only}{percent(share)}"
            narrow = f"The {percent(float(level))} intervals are too narrow{wider_words(trust, level, name)}."
            yield f"{of} these test molecules, {held}. {narrow}"


def unlike_words(page: Reported, consequence: str) -> Iterator[str]:
    """Why fewer test labels than promised can be inside, if the split makes test molecules different.

    Args:
        consequence: what can happen.
    """
    if page.options.split in APART and page.options.test_csv is None and not page.options.folds:
        yield (
            f"{consequence}: a {page.options.split} split {APART[page.options.split]}, so errors on the test molecules "
            "can be larger than on the molecules used for calibration."
        )
    if page.result["trust"].get("errors_grow"):
        yield (
            "On these test molecules, errors grow as the similarity to the training molecules falls. Expect the same "
            "for new molecules; predict --domain gives their similarity."
        )


def coverage_charts(page: Reported) -> Iterator[Chart]:
    """The coverage of the intervals of each target by confidence level."""
    assert page.model.trust is not None and page.model.trust.intervals is not None
    words = "On the dashed line, as many values are inside as promised; below it, fewer."
    shares = coverage_curve(page.model.trust.intervals, page.test)
    for target, covered in list(zip(page.task.targets, shares.T, strict=True))[:MAX_PANELS]:
        yield coverage_chart(f"{target}: coverage", CURVE, covered, words)


def calibration_section(page: Reported) -> Section:
    trust = page.result["trust"]
    names = {"calibration_error": "calibration error", "brier": "Brier score"}
    header = ("", *(f"{name}, {stage}" for name in names.values() for stage in ("before", "after")))
    targets = page.task.targets
    columns = [
        shown_together(trust[name][stage][target] for target in targets)
        for name in names
        for stage in ("before", "after")
    ]
    rows = tuple(zip(targets, *columns, strict=True))
    each = ", each target on those with its label" if len(targets) > 1 else ""
    words = (
        f"Probabilities are calibrated by Platt scaling, on {trust['calibrated_on']:,} {trust['calibrated_by']}{each}. "
        "The calibration error is the mean difference between the predicted probabilities and the observed share of "
        "positives among the test molecules, before and after calibration."
    )
    if (least := min(facts["n"] for facts in page.result["targets"].values())) < FEW_TESTED:
        words += f" On {counted(least, 'test label')}, the calibration error is mostly noise."
    if columns[::2] == columns[1::2]:
        words += " Calibration changed no digit shown."
    return Section("Calibration", (words, *of_sets(page)), (Grid(header, rows),), tuple(reliability_charts(page)))


def of_sets(page: Reported) -> Iterator[str]:
    """A sentence on the sets of classes of each target, if there are sets."""
    found = page.result["trust"]
    shares, single = (found.get(name, {}).get(USUAL_CONFIDENCE, {}) for name in ("set_coverage", "one_class"))
    for target, share in list(shares.items())[:MAX_PANELS]:
        if share is not None:
            name = f"{page.title_of(target)}: " if len(shares) > 1 else ""
            yield (
                f"{name}{percent(float(USUAL_CONFIDENCE))} sets contain the class of {percent(share)} of the test "
                f"molecules; {percent(single[target])} of the sets have one class."
            )
    if any(share is not None for share in shares.values()):
        yield from unlike_words(page, "Sets can contain the class less often than promised")


def reliability_charts(page: Reported) -> Iterator[Chart]:
    """The share of positives of each target by predicted probability."""
    words = "Blue: calibrated; orange, where it differs: before calibration. Points on the dashed line are exact."
    for place, target in enumerate(page.task.targets[:MAX_PANELS]):
        y, after = page.labelled_pairs(place, page.test.prediction)
        _, before = page.labelled_pairs(place, page.plain)
        if len(y):
            yield reliability_chart(f"{target}: calibration", binned(before, y), binned(after, y), words)


def distance_section(page: Reported) -> Section:
    """Errors by the distance to the training molecules."""
    trust = page.result["trust"]
    parts = trust["error_by_similarity"]
    rows = tuple(
        (f"{part['from']:g} to {part['to']:g}", f"{part['n']:,}", error if part["n"] else "no molecules")
        for part, error in zip(parts, shown_together(part["error"] for part in parts), strict=True)
    )
    words = (
        f"Errors on the test molecules by their similarity to the nearest training molecule. {unfamiliar_count(page)}",
    )
    grid = Grid(("similarity", "test molecules", f"mean {error_words(page.task)}"), rows)
    return Section("Distance to the training molecules", words, (grid,), tuple(distance_charts(page)))


def unfamiliar_count(page: Reported) -> str:
    """How many test molecules have a warning, as a sentence."""
    count = page.result["trust"]["unfamiliar"]
    molecules = counted(count, "test molecule") if count else "No test molecule"
    compared = page.result["trust"]["compared"]
    among = f" of the {compared:,} that were compared" if compared < len(page.looked.smiles) else ""
    get = "gets" if count < 2 else "get"
    return f"{molecules}{among} {get} a warning from predict --domain, which warns of {unfamiliar_words(page)}."


def unfamiliar_words(page: Reported) -> str:
    """The reasons for a warning about a test molecule."""
    if not page.model.conditions.columns:
        return "several parts, an element, a charge or a size that no training molecule has, or a very low similarity"
    return (
        "several parts, an element, a charge, a size or a condition outside the training data, a very low similarity, "
        "or a training molecule under other conditions"
    )


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
            lines, words = None, "Each point is a test molecule."
            if len(known) >= FEW_TESTED:
                lines = binned(x[known], errors[known], LEAST_BINNED)
                words += (
                    f" The line joins the means of {len(lines[0])} groups of about {len(known) // len(lines[0]):,} "
                    f"molecules of about the same {title}."
                )
            yield error_chart(f"Errors by {title}", (label, of), (x[drawn], errors[drawn]), lines, names, words)
