"""The sections of a report on the reliability of intervals, probabilities and distances."""

from dataclasses import replace

from graphormer_sepnorm.runs.numbers import UNDEFINED, percent, shown_together
from graphormer_sepnorm.table_model.reliability import error_words
from graphormer_sepnorm.table_model.report.page import Grid, Section
from graphormer_sepnorm.table_model.report.reported import Reported, png
from graphormer_sepnorm.tasks import TASKS


def trust_section(page: Reported) -> Section:
    """The coverage of the intervals, or the calibration of the probabilities."""
    trust = page.result["trust"]
    if "coverage" in trust:
        return intervals_section(page)
    if "brier" in trust:
        return calibration_section(page)
    if TASKS[page.task.kind].calibrated_by is None:
        return Section("Probabilities", ("Multiclass probabilities are not calibrated and have no intervals.",))
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
        f"Intervals are calibrated on the errors for {trust['calibrated_on']} {trust['calibrated_by']}. For each "
        f"confidence level: the share of test values inside their interval (coverage). {UNDEFINED.capitalize()}: this "
        "level needs more calibration molecules.",
    )
    picture = png(page.run.calibration_picture, "Coverage of the test values by confidence level.")
    return Section("Intervals", words, (Grid(header, rows),), pictures=(picture,))


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
    words = (
        f"Probabilities are calibrated on {trust['calibrated_on']} {trust['calibrated_by']} by Platt scaling. The "
        "calibration error is the mean difference between the predicted probabilities and the observed share of "
        "positives among the test molecules, before and after calibration.",
    )
    picture = png(page.run.calibration_picture, "Observed share of positives by predicted probability.")
    return Section("Calibration", words, (Grid(header, rows),), pictures=(picture,))


def distance_section(page: Reported) -> Section:
    """Errors by the distance to the training molecules."""
    trust = page.result["trust"]
    parts = trust["error_by_similarity"]
    rows = tuple(
        (f"{part['from']:g} to {part['to']:g}", str(part["n"]), error)
        for part, error in zip(parts, shown_together(part["error"] for part in parts), strict=True)
    )
    words = (
        "Errors on the test molecules by their similarity to the nearest training molecule. "
        f"Test molecules with an element, a charge or a size that no training molecule has: {trust['unfamiliar']}.",
    )
    grid = Grid(("similarity", "test molecules", f"mean {error_words(page.task)}"), rows)
    description = f"The {error_words(page.task)} vs. two distances, with its mean."
    picture = replace(png(page.run.distance_picture, description), wide=True)
    return Section("Distance to the training molecules", words, (grid,), pictures=(picture,))
