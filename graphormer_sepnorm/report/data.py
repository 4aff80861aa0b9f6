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
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.tables.remarks import COPIES, few_repeated, of_rows, repeatability, repeated
from graphormer_sepnorm.tables.splits import Duplicate
from graphormer_sepnorm.tasks import TASKS

MOST_REPLICATES = 10  # molecules that are listed


def data_section(page: Reported) -> Section:
    """The table and how it was split."""
    targets = page.task.targets[:MAX_PANELS]
    rows = []
    for split in SPLITS:
        y = np.array([row.labels for row in page.labelled.of_split(split)])
        counts = [label_counts(page, name, column) for name, column in zip(targets, y.T, strict=False)]
        rows.append((split, f"{len(y):,}", *counts))
    titles = page.task.classes[0] if TASKS[page.task.kind].adds_up else [f"labels of {name}" for name in targets]
    header = ("split", "molecules" if page.labelled.measured else "rows", *titles[: len(targets)])
    has_conditions, usable = bool(page.options.feature_columns), len(page.labelled.usable)
    molecules = len(set(page.labelled.structures.keys)) if has_conditions else len(page.labelled.rows)
    all_learn = page.folds.predict_all or "networks" not in page.model.members
    facts = {
        "options": page.options,
        "sizes": ":".join(f"{100 * getattr(page.options.sizes, name):g}" for name in SPLITS),
        "fitted": "all" if all_learn else "networks" if len(page.model.members) == 1 else "some",
        "usable": usable,
        "molecules": None if usable == len(page.labelled.rows) else molecules,
    }
    paragraphs = (
        *words("data.data", has_conditions=has_conditions, **facts),
        *(f"{remark}." for remark in of_rows(page.options, page.labelled)),
        *of_preparation(page),
        *of_censored(page),
    )
    return Section("Data and split", paragraphs, (Grid(header, tuple(rows)),))


def label_counts(page: Reported, target: str, y: np.ndarray) -> str:
    """The number of labels [M] of a target, of two classes with that of class 1; of one of several, its molecules."""
    labels, positive = f"{(~np.isnan(y)).sum():,}", f"{(y == 1).sum():,}"
    if page.is_regression:
        return labels
    return positive if TASKS[page.task.kind].adds_up else f"{labels}, {positive} of them {page.classes_of(target)[1]}"


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
            trust, example = page.result["trust"], page.bound((learnt + tested)[0], place)
            reached, held = (
                trust.get(f"coverage_of_{name}", {}).get(page.confidence, {}).get(target) if tested else None
                for name in ("bounds", "all")
            )
            count = {"learnt": len(learnt), "tested": len(tested), "example": example, "metric": page.metric}
            interval = {"interval": page.interval_name, "reached": reached, "held": held}
            yield line("data.censored", target=target, **count, **interval)


def repeatability_section(page: Reported) -> Section | None:
    """Molecules in several rows, with the deviation of their labels: the smallest error that a model can have."""
    duplicates = page.labelled.duplicates
    if not duplicates:
        return None
    rows = sum(len(duplicate.rows) for duplicate in duplicates)
    if page.is_regression:
        found = repeatability(page.options, page.labelled)
        said = tuple(floor_words(page, name, value) for name, value in found.items() if name in page.task.targets)
    else:
        said = words("data.classes", conflicting=sum(bool(duplicate.conflicts) for duplicate in duplicates))
    first = f"{repeated(page.options, page.labelled)} in {rows:,} rows."
    return Section("Repeatability", (first, *said), tuple(replicates_grids(page)))


def floor_words(page: Reported, target: str, deviation: float) -> str:
    """A sentence on the deviation of replicates of a target and the error of the model."""
    rmse = page.result["targets"][target]["scores"]["stack"].get("rmse")
    deviation_text, rmse_text = shown_together([deviation, rmse])
    numbers = {"deviation": deviation_text, "rmse": None if rmse is None else rmse_text}
    few = few_repeated(page.labelled, page.task.targets.index(target))
    return line("data.floor", target=target, copies=None if deviation else COPIES, few=few, **numbers)


def replicates_grids(page: Reported) -> Iterator[Grid]:
    """The replicates whose labels differ most, a line per molecule; nothing if no labels differ."""
    targets = page.task.targets[:MAX_PANELS]
    differing = [duplicate for duplicate in page.labelled.duplicates if spread_of(page, duplicate) > 0]
    order = sorted(differing, key=lambda duplicate: -spread_of(page, duplicate))[:MOST_REPLICATES]
    lines = []
    for duplicate in order:
        rows = [page.labelled.usable[place] for place in duplicate.rows]
        labels = [", ".join(page.label_text(row, place) for row in rows) for place in range(len(targets))]
        lines.append((", ".join(page.name_of(row.number) for row in rows), rows[0].smiles, *labels))
    if lines:
        header = ("rows", "SMILES", *(f"measured {name}" for name in targets))
        caption = line("data.replicates", count=len(lines), are_all=len(differing) == len(lines))
        yield Grid(header, tuple(lines), caption)


def spread_of(page: Reported, duplicate: Duplicate) -> float:
    """The largest difference between labels of one molecule, in standard deviations of the target."""
    y = np.array([page.labelled.usable[place].labels for place in duplicate.rows])
    scale = np.array(page.task.std) if page.is_regression else np.ones(y.shape[1])
    known = ~np.isnan(y).all(axis=0)
    if not known.any():
        return 0.0
    return float(((np.nanmax(y[:, known], axis=0) - np.nanmin(y[:, known], axis=0)) / scale[known]).max())
