"""Remarks for the user on a table before training."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from graphormer_sepnorm.chem.smiles import ignored_name
from graphormer_sepnorm.tables.labels import LabelledTable, pooled_deviation
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.splits import Structures
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.scales import NO_LOGARITHM, better_scale, falls, mass_unit, measured, named_unit, unit_of

COPIES = "the labels of each repeated molecule are identical: its rows are probably copies and show no spread"
MUCH_LOST = 0.1  # share of skipped rows above which their most frequent reason is given
MOST_REASONS = 3  # rows that are named with what is wrong
ALL_REASONS = "skipped.csv in the run folder has all"
LEAST_REPEATED = 30  # molecules that show how much measurements vary
MOST_DAMAGED = 0.9  # share of labels that are whole numbers of days in 2009 to 2036
HIGHEST_MOLAR = 11  # -log10 of M; hardly any assay measures below 10 pM
LOWER, HIGHER = ("lower", "<", "at most"), ("higher", ">", "at least")
LEAST_EQUAL, EQUAL_SHARE, BEYOND_SHARE = 20, 0.1, 0.02  # equal labels at a limit, and the share of labels beyond it


def remarks(options: TableOptions, labelled: LabelledTable) -> list[str]:
    return [*of_rows(options, labelled), *of_labels(options, labelled), *of_measurements(options, labelled)]


def of_rows(options: TableOptions, labelled: LabelledTable) -> list[str]:
    of_molecules = (*of_duplicates(options, labelled), *of_parts(labelled), *of_forms(labelled))
    return [*of_skipped(labelled), *of_gaps(options, labelled), *of_guesses(labelled), *of_molecules]


def of_labels(options: TableOptions, labelled: LabelledTable) -> list[str]:
    read = options, labelled
    return [*of_units(*read), *of_scales(*read), *of_limits(*read), *of_damages(*read)]


def of_skipped(labelled: LabelledTable) -> Iterator[str]:
    if not labelled.skipped:
        return
    lost, every = len(labelled.skipped), len(labelled.skipped) + len(labelled.usable)
    share = f", {100 * lost / every:.0f} % of the table" if lost > MUCH_LOST * every else ""
    without = sum(reason.endswith(NO_LOGARITHM) for _, _, reason in labelled.skipped)
    logarithms = f", {without:,} of them as 0 or less has no logarithm" if without else ""
    reasons = [(number, reason) for number, _, reason in labelled.skipped]
    kinds = Counter(reason.partition("'")[0] for _, reason in reasons)
    reasons.sort(key=lambda each: -kinds[each[1].partition("'")[0]])
    rows = plural(lost, "row was", "rows were")
    yield f"{rows} skipped{share}{logarithms}: {rows_text(labelled, reasons)}; {ALL_REASONS}"


def rows_text(labelled: LabelledTable, rows: list[tuple[int, str]]) -> str:
    first = ", ".join(f"{labelled.in_file(number)} ({reason})" for number, reason in rows[:MOST_REASONS])
    return first + ", ..." * (len(rows) > MOST_REASONS)


def of_gaps(options: TableOptions, labelled: LabelledTable) -> Iterator[str]:
    for place, name in enumerate(options.targets):
        if gaps := [(row.number, row.gaps[place]) for row in labelled.usable if place in row.gaps]:
            labels = plural(len(gaps), "label was", "labels were")
            yield f"{name}: {labels} left out of rows that have others: {rows_text(labelled, gaps)}; see skipped.csv"


def of_units(options: TableOptions, labelled: LabelledTable) -> Iterator[str]:
    for name, unit in zip(options.targets, labelled.units, strict=False):
        if unit and not named_unit(name) and not options.scale_of(name):
            predicted = "" if options.threshold else ", and so are the predictions"
            yield f"{name}: the labels are in {unit}, as most of them say{predicted}"


def of_guesses(labelled: LabelledTable) -> Iterator[str]:
    if rows := [row for row, each in zip(labelled.rows, labelled.structures, strict=False) if each.guessed]:
        read = rows_text(labelled, [(row.number, f"as {row.smiles}") for row in rows])
        several = plural(len(rows), "row leaves", "rows leave")
        yield f"the InChI of {several} open where a hydrogen or charge is, so the usual form is read: {read}"
    if named := [(row.number, row.smiles) for row in labelled.rows if ignored_name(row.smiles)]:
        several = plural(len(named), "row has", "rows have")
        yield f"{several} text after the SMILES, which is ignored: {rows_text(labelled, named)}"


def of_duplicates(options: TableOptions, labelled: LabelledTable) -> Iterator[str]:
    if not labelled.duplicates:
        return
    conflicting = sum(bool(duplicate.conflicts) for duplicate in labelled.duplicates)
    half = "half the standard deviation of the column" if TASKS[options.kind].tolerance > 0 else ""
    agreement = f"; labels of one differ by less than {half}" if half else "; labels of one agree"
    if conflicting:
        apart = f" (by more than {half})" * bool(half)
        agreement = f", {conflicting:,} of them with labels that contradict each other{apart}"
    yield f"{repeated(options, labelled)} in several rows{agreement}: duplicates.csv in the run folder lists them"


def repeated(options: TableOptions, labelled: LabelledTable) -> str:
    """The subject and verb of a sentence on what is in several rows: "2 molecules appear"."""
    several, what = len(labelled.duplicates), " of a molecule and conditions"
    if options.feature_columns:
        return plural(several, f"combination{what} appears", f"combinations{what} appear")
    return plural(several, "molecule appears", "molecules appear")


def of_measurements(options: TableOptions, labelled: LabelledTable) -> Iterator[str]:
    for name, deviation in repeatability(options, labelled).items():
        few = few_repeated(labelled, options.names.index(name))
        limit = f"this is {few}" if few else "no model can be expected to predict a single measurement better"
        differ = f"repeated measurements of a molecule differ by a standard deviation of {deviation:.3g}; {limit}"
        yield f"{name}: {differ if deviation else COPIES}"


def few_repeated(labelled: LabelledTable, place: int) -> str:
    """A warning about the ``repeatability`` of a target if it comes from few molecules; "" if there are enough."""
    several = int(deviations_of(labelled)[1][place])
    words = plural(several, "repeated molecule", "repeated molecules")
    return f"a rough guess, from only {words}" if several < LEAST_REPEATED else ""


def repeatability(options: TableOptions, labelled: LabelledTable) -> dict[str, float]:
    """The pooled standard deviation of repeated measurements, by the targets that have any."""
    if not labelled.measured:
        return {}
    deviations = deviations_of(labelled)[0].tolist()
    return {name: value for name, value in zip(options.names, deviations, strict=True) if value == value}


def deviations_of(labelled: LabelledTable) -> tuple[np.ndarray, np.ndarray]:
    """The ``pooled_deviation`` of the repeated molecules of a table."""
    groups = (list(duplicate.rows) for duplicate in labelled.duplicates)
    return pooled_deviation(np.array([row.labels for row in labelled.measured]), groups)


def of_parts(labelled: LabelledTable) -> Iterator[str]:
    several = [each for each in labelled.structures if each.parts > 1]
    if not several:
        return
    counts = Counter(labelled.structures.families)
    shared = [family for family in Structures(several).families if counts[family] > 1]
    apart, example = num_apart(labelled, shared), several[0].smiles
    molecules = plural(len(several), "molecule is a salt or mixture", "molecules are salts or mixtures")
    where = f"{apart:,} of these in another split" if apart else "in the same split"
    family = f", {len(shared):,} of them with the same parent as another molecule, {where}" * bool(shared)
    yield f"{molecules} (such as {example}){family}. --standardize parent reads only the neutral parent"


def of_forms(labelled: LabelledTable) -> Iterator[str]:
    """On parents that are uncertain, stereo that standardization removed, and molecules with and without stereo."""
    structures = labelled.structures
    if doubtful := [each.smiles for each in structures if each.is_doubtful]:
        rows = plural(len(doubtful), "molecule has", "molecules have")
        yield f"{rows} several parts that could be the parent (such as {doubtful[0]}): the largest is taken for it"
    if flattened := sum(each.loses_stereo for each in structures):
        rows = plural(flattened, "molecule loses", "molecules lose")
        yield f"{rows} stereo by standardization: stereoisomers of them are read as one molecule"
    marked, plain = ({each.family for each in structures if each.has_stereo == has} for has in (True, False))
    if mixed := marked & plain - {""}:
        drawn, apart = plural(len(mixed), "molecule is", "molecules are"), num_apart(labelled, mixed)
        where = f"and {apart:,} of them in several splits" if apart else "but share a split"
        first = next(row for row, family in zip(labelled.rows, structures.families, strict=True) if family in mixed)
        example = labelled.names.get(first.number) or first.smiles
        yield f"{drawn} drawn with and without stereo (such as {example}): these count as different molecules, {where}"


def num_apart(labelled: LabelledTable, families: Iterable[str]) -> int:
    """How many of the families have rows in several splits."""
    places = {(name, row.split) for name, row in zip(labelled.structures.families, labelled.rows, strict=True)}
    num_splits = Counter(name for name, _ in places)
    return sum(num_splits[name] > 1 for name in families)


def plural(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def columns_of_numbers(options: TableOptions, labelled: LabelledTable) -> Iterator[tuple[str, np.ndarray]]:
    """Each target of a regression with its labels, NaN where one is missing; none of a classification."""
    if not TASKS[options.kind].predicts_probabilities:
        yield from zip(options.targets, np.array([row.labels for row in labelled.usable]).T, strict=True)


def of_scales(options: TableOptions, labelled: LabelledTable) -> Iterator[str]:
    units = dict(zip(options.targets, labelled.units, strict=False))
    for target, column in columns_of_numbers(options, labelled):
        if options.scale_of(target) or not (scale := better_scale(target, column, units.get(target, ""))):
            continue
        zeros = int((column == 0).sum())
        molar = "" if mass_unit(target) else ", or --negative-log-molar UNIT if they are concentrations"
        advice = f"--log10 {shlex.quote(target)}{molar}"
        if falls(scale):
            advice = f"--negative-log-molar {shlex.quote(f'{target}={unit_of(scale)}')}, which learns -log10 of M"
        of_zero = plural(zeros, "label of 0 has no logarithm and is", "labels of 0 have no logarithm and are")
        yield f"{range_words(target, column)}: use {advice}{f'; {of_zero} skipped then' if zeros else ''}"


def of_damages(options: TableOptions, labelled: LabelledTable) -> Iterator[str]:
    """On targets whose labels look like dates of a spreadsheet, or like concentrations in another unit."""
    for target, column in columns_of_numbers(options, labelled):
        scale, days = options.scale_of(target), column[(column > 40_000) & (column < 50_000) & (column % 1 == 0)]
        if not scale and len(days) > MOST_DAMAGED * (~np.isnan(column)).sum():
            yield f"{target}: labels such as {days[0]:.0f} look like dates of Excel: is it the right column?"
        if falls(scale) and (many := int((column > HIGHEST_MOLAR).sum())):
            above = plural(many, "label is", "labels are")
            yield f"{target}: {above} below 10 pM, read in {unit_of(scale)}: are they in another unit?"


def range_words(target: str, labels: np.ndarray) -> str:
    positive = labels[labels > 0]
    return f"{target}: labels from {positive.min():.3g} to {positive.max():.3g} are better learned as logarithms"


def of_limits(options: TableOptions, labelled: LabelledTable) -> Iterator[str]:
    """For each target of which many labels are equal and almost none lie beyond them, as at a limit of an assay."""
    for target, column in columns_of_numbers(options, labelled):
        labels = column[~np.isnan(column)]
        values, counts = np.unique(labels, return_counts=True)
        if len(values) < 3 or counts.max() < max(LEAST_EQUAL, EQUAL_SHARE * len(labels)):
            continue
        usual, scale = values[counts.argmax()], options.scale_of(target)
        limit, sides = measured(np.array([[usual]]), [scale])[0, 0], [LOWER, HIGHER][:: -1 if falls(scale) else 1]
        for beyond, (side, sign, bound) in zip((labels < usual, labels > usual), sides, strict=True):
            if beyond.sum() <= BEYOND_SHARE * len(labels):
                count = plural(int(beyond.sum()), "label is", "labels are")
                equal = f"{100 * counts.max() / len(labels):.0f} % of the labels equal {limit:.12g}, and {count} {side}"
                learned = f"write these labels with {sign} so that they are learned as bounds"
                read = f"read predictions beyond it as {bound!r} this value"
                yield f"{target}: {equal}. If this is a limit of the assay, {learned}, and {read}"
