"""The sections of a report on the table: rows, splits and replicate measurements."""

from collections.abc import Iterator

import numpy as np

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.dataset import SPLITS
from graphormer_sepnorm.report.page import Grid, Section
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.report.words import line, words
from graphormer_sepnorm.runs.info import salts_words
from graphormer_sepnorm.runs.numbers import shown_together
from graphormer_sepnorm.tables.remarks import COPIES, few_repeated, of_rows, repeatability, repeated
from graphormer_sepnorm.tables.splits import Duplicate

MOST_REPLICATES = 10  # molecules that are listed


def data_section(page: Reported) -> Section:
    """The table and how it was split."""
    rows = []
    for split in SPLITS:
        y = np.array([row.labels for row in page.labelled.of_split(split)]).reshape(-1, len(page.task.targets))
        counts = [label_counts(page, place, y[:, place]) for place in range(len(page.panels))]
        rows.append((split, f"{len(y):,}", *counts))
    titles = page.task.classes[0] if page.adds_up else [f"labels of {name}" for name in page.panels]
    header = ("split", "molecules" if page.labelled.measured else "rows", *titles[: len(page.panels)])
    has_conditions, usable = bool(page.options.feature_columns), len(page.labelled.usable)
    molecules = len(set(page.labelled.structures.keys)) if has_conditions else len(page.labelled.rows)
    all_learn = page.folds.predict_all or "networks" not in page.model.members
    facts = {
        "options": page.options,
        "sizes": ":".join(f"{100 * getattr(page.options.sizes, name):g}" for name in SPLITS),
        "fitted": "all" if all_learn else "networks" if len(page.model.members) == 1 else "some",
        "usable": usable,
        "molecules": None if usable == len(page.labelled.rows) else molecules,
        "has_conditions": has_conditions,
    }
    remarks = (f"{remark}." for remark in of_rows(page.options, page.labelled))
    paragraphs = *words("data.data", **facts), *remarks, *of_preparation(page), *of_censored(page)
    return Section("Data and split", paragraphs, (Grid(header, tuple(rows)),))


def label_counts(page: Reported, place: int, y: np.ndarray) -> str:
    """The number of labels [M] of a target, of two classes with that of class 1; of one of several, its molecules."""
    labels, positive = f"{(~np.isnan(y)).sum():,}", f"{(y == 1).sum():,}"
    if page.is_regression:
        return labels
    return positive if page.adds_up else f"{labels}, {positive} of them {page.classes_of(place)[1]}"


def of_preparation(page: Reported) -> tuple[str, ...]:
    """How molecules are prepared before the model reads them, if they are."""
    if not FEATURIZERS[page.options.featurizer].preparation:
        return ()
    option = f"--standardize {page.options.standardize}" if page.options.standardize else "--strip-salts"
    salts = salts_words(page.options.featurizer)
    return words("data.preparation", salts=salts, option=option, changed=page.labelled.changed)


def of_censored(page: Reported) -> Iterator[str]:
    """A sentence on each target with censored labels: how many there are, and how they are used."""
    for place, target in enumerate(page.task.targets):
        learnt, tested = (
            [row.bounds[place] for row in rows if place in row.bounds] for rows in (page.learnt, page.tested)
        )
        if learnt or tested:
            reached, held = (
                page.result["trust"].get(f"coverage_of_{name}", {}).get(page.confidence, {}).get(target)
                for name in ("bounds", "all")
            )
            count = {"learnt": len(learnt), "tested": len(tested), "example": page.bound((learnt + tested)[0], place)}
            interval = {"interval": page.interval_name, "reached": reached if tested else None, "held": held}
            yield line("data.censored", target=target, metric=page.metric, **count, **interval)


def repeatability_section(page: Reported) -> Section | None:
    """Molecules in several rows, with the deviation of their labels: the smallest error that a model can have."""
    duplicates = page.labelled.duplicates
    if not duplicates:
        return None
    if page.is_regression:
        found = repeatability(page.options, page.labelled)
        said = tuple(floor_words(page, name, value) for name, value in found.items() if name in page.task.targets)
    else:
        said = words("data.classes", conflicting=sum(bool(duplicate.conflicts) for duplicate in duplicates))
    rows = sum(len(duplicate.rows) for duplicate in duplicates)
    first = f"{repeated(page.options, page.labelled)} in {rows:,} rows."
    return Section("Repeatability", (first, *said), tuple(replicates_grids(page)))


def floor_words(page: Reported, target: str, deviation: float) -> str:
    """A sentence on the deviation of replicates of a target and the error of the model."""
    error = page.result["targets"][target]["scores"]["stack"].get("rmse")
    floor, ours = shown_together([deviation, error])
    numbers = {"deviation": floor, "rmse": None if error is None else ours}
    few = few_repeated(page.labelled, page.task.targets.index(target))
    return line("data.floor", target=target, copies=None if deviation else COPIES, few=few, **numbers)


def replicates_grids(page: Reported) -> Iterator[Grid]:
    """The replicates whose labels differ most, a line per molecule; nothing if no labels differ."""
    differing = [duplicate for duplicate in page.labelled.duplicates if spread_of(page, duplicate) > 0]
    lines = []
    for duplicate in sorted(differing, key=lambda duplicate: -spread_of(page, duplicate))[:MOST_REPLICATES]:
        rows = [page.labelled.usable[place] for place in duplicate.rows]
        labels = [", ".join(page.label_text(row, place) for row in rows) for place in range(len(page.panels))]
        lines.append((", ".join(page.name_of(row.number) for row in rows), rows[0].smiles, *labels))
    if lines:
        header = ("rows", "SMILES", *(f"measured {name}" for name in page.panels))
        caption = line("data.replicates", count=len(lines), are_all=len(differing) == len(lines))
        yield Grid(header, tuple(lines), caption)


def spread_of(page: Reported, duplicate: Duplicate) -> float:
    """The largest difference between labels of one molecule, in standard deviations of the target."""
    y = np.array([page.labelled.usable[place].labels for place in duplicate.rows])
    scale = np.array(page.task.std) if page.is_regression else np.ones(y.shape[1])
    known = ~np.isnan(y).all(axis=0)
    y, scale = y[:, known], scale[known]
    return float(((np.nanmax(y, axis=0) - np.nanmin(y, axis=0)) / scale).max(initial=0))
