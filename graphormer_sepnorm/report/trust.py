"""The sections of a report on the reliability of intervals, probabilities and distances. C confidence levels."""

from collections.abc import Iterator

import numpy as np

from graphormer_sepnorm.output.column import PROBABILITY_DECIMALS
from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.report.headline import FEW_TESTED
from graphormer_sepnorm.report.page import (
    DIAGONAL,
    MOST_POINTS,
    UNIT,
    Axis,
    Chart,
    Dot,
    Grid,
    Line,
    Section,
    line,
    words,
)
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.runs.numbers import percent, shown, shown_together
from graphormer_sepnorm.runs.plots import binned
from graphormer_sepnorm.table_model.reliability import CURVE, USUAL_CONFIDENCE, coverage_curve, error_words
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
    levels = list(trust["coverage"])
    columns = {"confidence": [percent(float(level)) for level in levels]}
    for name in targets:
        columns[f"{name}: coverage"] = [percent(trust["coverage"][level][name]) for level in levels]
        columns[f"{name}: mean width"] = shown_together(trust["mean_width"][level][name] for level in levels)
    exact = (~np.isnan(page.labels.y[page.folds.predicted])).sum(axis=0).tolist()
    untested = [name for name in targets if not page.result["targets"][name]["n"]]
    has_undefined = any(None in widths.values() for widths in trust["mean_width"].values())
    counts = {"least": min(exact), "most": max(exact), "untested": untested}
    said = words("trust.intervals", trust=trust, has_undefined=has_undefined, **counts)
    assert page.trust.intervals is not None
    shares = coverage_curve(page.trust.intervals, page.test).T
    charts = tuple(coverage_chart(target, covered) for target, covered in zip(page.panels, shares, strict=False))
    said += unlike_words(page, "Coverage can be below the confidence")
    return Section("Intervals", said, (Grid.of(columns),), charts)


def coverage_chart(target: str, shares: np.ndarray) -> Chart:
    """Shares of values inside their interval [C], NaN where undefined, against the confidence levels."""
    names = tuple(f"{100 * tick:.0f}" for tick in UNIT)
    axes = Axis("confidence level, %", UNIT, names), Axis("coverage, %", UNIT, names)
    known = np.isfinite(shares)
    trend = np.array(CURVE)[known].tolist(), shares[known].tolist()
    texts = "{:.0f} % intervals\n{:.0f} % of the test values are inside"
    dots = [Dot(level, share, texts.format(100 * level, 100 * share)) for level, share in zip(*trend, strict=True)]
    return Chart(f"{target}: coverage", *axes, line("trust.covered"), {"guide": DIAGONAL, "trend": trend}, dots)


def unlike_words(page: Reported, consequence: str) -> tuple[str, ...]:
    """Why fewer test labels than promised can be inside, which is the consequence."""
    split = None if page.options.test_csv is not None or page.options.folds else page.options.split
    grow = page.result["trust"].get("errors_grow", False)
    return words("trust.unlike", consequence=consequence, split=split, errors_grow=grow)


def calibration_section(page: Reported) -> Section:
    trust, targets = page.result["trust"], page.task.targets
    columns = {
        f"{title}, {stage}": shown_together(trust[name][stage][target] for target in targets)
        for name, title in (("calibration_error", "calibration error"), ("brier", "Brier score"))
        for stage in ("before", "after")
    }
    least = min(facts["n"] for facts in page.result["targets"].values())
    shown_columns = list(columns.values())
    few, is_same = least if least < FEW_TESTED else None, shown_columns[::2] == shown_columns[1::2]
    said = words("trust.calibration", trust=trust, are_several=len(targets) > 1, few=few, is_same=is_same)
    grid = Grid.of({"": list(targets), **columns})
    return Section("Calibration", (*said, *of_sets(page)), (grid,), tuple(reliability_charts(page)))


def of_sets(page: Reported) -> Iterator[str]:
    """A sentence on the sets of classes of each target, if there are sets."""
    found, level = page.result["trust"], float(USUAL_CONFIDENCE)
    shares, single = (found.get(name, {}).get(USUAL_CONFIDENCE, {}) for name in ("set_coverage", "one_class"))
    known = {name: share for name, share in shares.items() if share is not None}
    for name, share in known.items():
        target = name if len(shares) > 1 else None
        yield line("trust.sets", target=target, level=level, share=share, single=single[name])
    if known:
        yield from unlike_words(page, "Sets can contain the class less often than promised")


def reliability_charts(page: Reported) -> Iterator[Chart]:
    """The share of positives of each target by mean predicted probability, before and after calibration."""
    text = "mean predicted probability {}\n{:.0f} % are positive"
    axes = Axis("mean predicted probability", UNIT), Axis("share of positives", UNIT)
    for place, target in enumerate(page.panels):
        (y, after), (_, before) = page.labelled_pairs(place), page.labelled_pairs(place, page.plain)
        if len(y):
            lines: dict[str, Line] = {"guide": DIAGONAL, "mean": binned(before, y), "trend": binned(after, y)}
            points = zip(*lines["trend"], strict=True)
            dots = [Dot(x, share, text.format(shown(x, PROBABILITY_DECIMALS), 100 * share)) for x, share in points]
            yield Chart(f"{target}: calibration", *axes, line("trust.reliability"), lines, dots)


def distance_section(page: Reported) -> Section:
    trust, of = page.result["trust"], error_words(page.task, len(page.task.targets))
    parts = [part for part in trust["error_by_similarity"] if part["n"]]
    columns = {
        "similarity": [f"{part['from']:g} to {part['to']:g}" for part in parts],
        "test molecules": [f"{part['n']:,}" for part in parts],
        f"mean {of}": shown_together(part["error"] for part in parts),
    }
    compared = trust["compared"] if trust["compared"] < len(page.looked.smiles) else None
    counts = {"count": trust["unfamiliar"], "compared": compared}
    paragraphs = words("trust.distance", has_conditions=bool(page.model.conditions.columns), **counts)
    return Section("Distance to the training molecules", paragraphs, (Grid.of(columns),), tuple(distance_charts(page)))


def distance_charts(page: Reported) -> Iterator[Chart]:
    """The errors against two distances, for as many molecules as the other charts show; means only of many errors."""
    near, errors, of = page.looked.nearness, page.looked.errors, error_words(page.task, len(page.task.targets))
    for x, title, label in (
        (near.similarity, "similarity", "largest Tanimoto similarity to a training molecule"),
        (near.distance, "distance of embeddings", "smallest distance to a training molecule"),
    ):
        known = np.flatnonzero(np.isfinite(x) & np.isfinite(errors))
        if not len(known):
            continue
        drawn = known[evenly(len(known), MOST_POINTS)]
        names = [f"{page.looked.smiles[row]}\n{of} {shown(errors[row])}" for row in drawn.tolist()]
        means: Line = binned(x[known], errors[known], LEAST_BINNED) if len(known) >= FEW_TESTED else ((), ())
        groups = len(means[0])
        caption = line("trust.distances", groups=groups, size=len(known) // max(groups, 1), title=title)
        axes = Axis.around(label, x[drawn]), Axis.around(of, errors[drawn], np.zeros(1))
        dots = list(map(Dot, x[drawn], errors[drawn], names))
        yield Chart(f"Errors by {title}", *axes, caption, {"mean": means} if groups else {}, dots)
