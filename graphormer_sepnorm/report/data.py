"""The sections of a report on the table: rows, splits and replicate measurements."""

from collections.abc import Iterator

import numpy as np

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.dataset import SPLITS
from graphormer_sepnorm.report.page import Grid, Section
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.runs.info import salts_words
from graphormer_sepnorm.runs.numbers import counted, percent, shown_together
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.tables.labels import TableOptions
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
        rows.append(
            (
                split,
                f"{len(y):,}",
                *(label_counts(page, name, column) for name, column in zip(targets, y.T, strict=False)),
            )
        )
    titles = page.task.classes[0] if TASKS[page.task.kind].adds_up else [f"labels of {name}" for name in targets]
    header = ("split", "molecules" if page.labelled.measured else "rows", *titles[: len(targets)])
    words = (
        f"{page.options.path} was split by {split_words(page.options)}. {fitted_words(page)}",
        *(f"{remark}." for remark in (usable_words(page), *of_rows(page.options, page.labelled))),
        *of_preparation(page),
        *of_censored(page),
    )
    return Section("Data and split", words, (Grid(header, tuple(rows)),))


def label_counts(page: Reported, target: str, y: np.ndarray) -> str:
    """The number of labels [M] of a target, of two classes with that of class 1; of one of several, its molecules."""
    labels, positive = f"{(~np.isnan(y)).sum():,}", f"{(y == 1).sum():,}"
    if page.is_regression:
        return labels
    return positive if TASKS[page.task.kind].adds_up else f"{labels}, {positive} of them {page.classes_of(target)[1]}"


def usable_words(page: Reported) -> str:
    """The number of usable rows, and of molecules if rows were averaged."""
    usable, molecules, together = len(page.labelled.usable), len(page.labelled.rows), "molecule"
    if usable == molecules:
        return counted(usable, "usable row")
    if page.options.feature_columns:
        molecules, together = len(set(page.labelled.structures.keys)), "molecule and conditions"
    return (
        f"{counted(usable, 'usable row')} of {counted(molecules, 'molecule')}; rows of the same {together} are averaged"
    )


def of_preparation(page: Reported) -> Iterator[str]:
    """How molecules are prepared before the model reads them, if they are."""
    if FEATURIZERS[page.options.featurizer].preparation:
        option = f"--standardize {page.options.standardize}" if page.options.standardize else "--strip-salts"
        changed = f"; this changed {counted(page.labelled.changed, 'row')}" if page.labelled.changed else ""
        yield f"Salts are {salts_words(page.options.featurizer)} ({option}){changed}."


def of_censored(page: Reported) -> Iterator[str]:
    """A sentence on each target with censored labels: how many there are, and how they are used."""
    for place, target in enumerate(page.task.targets):
        learnt, tested = (
            [row.bounds[place] for row in rows if place in row.bounds] for rows in (page.learnt, page.tested)
        )
        if learnt or tested:
            shares = [page.result["trust"].get(f"coverage_of_{name}", {}) for name in ("bounds", "all")]
            held = [each.get(page.confidence, {}).get(target) for each in shares]
            reach = (
                f" The {page.interval_name} reaches {percent(held[0])} of the bounds among the test labels, and "
                f"contains or reaches {percent(held[1])} of all."
                if tested and None not in held
                else ""
            )
            yield (
                f"{target}: {counted(len(learnt), 'training label')} and {counted(len(tested), 'test label')} are "
                f"bounds, such as {page.bound((learnt + tested)[0], place)}. The members learn the value that "
                "the other labels lead to expect beyond a bound, and intervals count bounds on their known side. "
                f"Errors such as {page.metric} are those of exact labels.{reach}"
            )


def fitted_words(page: Reported) -> str:
    """Which molecules the members are fitted to."""
    if page.folds.predict_all or "networks" not in page.model.members:
        return "The model is fitted to both the training and the validation molecules."
    if len(page.model.members) == 1:
        return "The model is fitted to the training molecules."
    return "The networks are fitted to the training molecules, the other members also to the validation molecules."


def split_words(options: TableOptions) -> str:
    if options.split == "column":
        return f"the column {options.split_column}"
    if options.test_csv is not None:
        return f"test rows from {options.test_csv}; the other rows {options.split}, 90:10, seed {options.seed}"
    if options.folds:
        return f"{options.split} into {options.folds} folds, one of which is the test set here, seed {options.seed}"
    sizes = ":".join(f"{100 * getattr(options.sizes, name):g}" for name in SPLITS)
    if options.split == "time":
        return f"the times in the column {options.split_column}, {sizes}"
    return f"{options.split}, {sizes}, seed {options.seed}"


def repeatability_section(page: Reported) -> Section | None:
    """Molecules in several rows, with the deviation of their labels: the smallest error that a model can have."""
    duplicates = page.labelled.duplicates
    if not duplicates:
        return None
    rows = sum(len(duplicate.rows) for duplicate in duplicates)
    words = [f"{repeated(page.options, page.labelled)} in {rows:,} rows."]
    if page.is_regression:
        words += [floor_words(page, place, deviation) for place, deviation in deviations(page)]
    else:
        conflicting = sum(bool(duplicate.conflicts) for duplicate in duplicates)
        contradict = f"Labels contradict each other in {conflicting:,} of these cases: no model can fit both."
        words.append(contradict if conflicting else "Their labels agree.")
    return Section("Repeatability", tuple(words), tuple(replicates_grids(page)))


def deviations(page: Reported) -> list[tuple[int, float]]:
    """The targets with replicate measurements, by index, and the standard deviation of these."""
    found = repeatability(page.options, page.labelled)
    return [(page.task.targets.index(name), value) for name, value in found.items() if name in page.task.targets]


def floor_words(page: Reported, place: int, deviation: float) -> str:
    """A sentence on the deviation of replicates of a target and the error of the model."""
    target = page.task.targets[place]
    if not deviation:
        return f"{target}: {COPIES}."
    rmse = page.result["targets"][target]["scores"]["stack"].get("rmse")
    floor_text, rmse_text = shown_together([deviation, rmse])
    found = f"{target}: the standard deviation of measurements of one molecule is {floor_text}"
    if few := few_repeated(page.labelled, place):
        return f"{found}. This is {few}."
    floor = f"{found}. This is the floor of the RMSE on single measurements: no model is expected to have a lower one"
    return f"{floor}." if rmse is None else f"{floor}; the RMSE of this model is {rmse_text}."


def replicates_grids(page: Reported) -> Iterator[Grid]:
    """The replicates whose labels differ most, a line per molecule; nothing if no labels differ."""
    targets = page.task.targets[:MAX_PANELS]
    differing = [duplicate for duplicate in page.labelled.duplicates if spread_of(page, duplicate) > 0]
    order = sorted(differing, key=lambda duplicate: -spread_of(page, duplicate))[:MOST_REPLICATES]
    rows = tuple(replicates_row(page, duplicate, len(targets)) for duplicate in order)
    header = ("rows", "SMILES", *(f"measured {name}" for name in targets))
    most = f"The {counted(len(rows), 'molecule')} whose labels differ most."
    words = most if len(differing) > len(rows) else "Molecules whose labels differ."
    if rows:
        yield Grid(header, rows, words)


def replicates_row(page: Reported, duplicate: Duplicate, targets: int) -> tuple[str, ...]:
    rows = [page.labelled.usable[place] for place in duplicate.rows]
    names = ", ".join(page.name_of(row.number) for row in rows)
    labels = [", ".join(page.label_text(row, place) for row in rows) for place in range(targets)]
    return (names, rows[0].smiles, *labels)


def spread_of(page: Reported, duplicate: Duplicate) -> float:
    """The largest difference between labels of one molecule, in standard deviations of the target."""
    y = np.array([page.labelled.usable[place].labels for place in duplicate.rows])
    scale = np.array(page.task.std) if page.is_regression else np.ones(y.shape[1])
    known = ~np.isnan(y).all(axis=0)
    if not known.any():
        return 0.0
    return float(((np.nanmax(y[:, known], axis=0) - np.nanmin(y[:, known], axis=0)) / scale[known]).max())
