"""The sections of a report on single molecules: the worst predictions, contributions of atoms, and matched pairs."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic

import numpy as np

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.pictures import draw, draw_pair
from graphormer_sepnorm.predict.describing import same_conditions
from graphormer_sepnorm.predict.domain import MAX_REFERENCES, evenly, is_same_molecule, similarity_words
from graphormer_sepnorm.report.page import Grid, Molecule, Picture, Section
from graphormer_sepnorm.report.reported import Reported, plain_picture, worst_first
from graphormer_sepnorm.runs.numbers import decimals_for, percent, shown
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.table_model.explain import explain_rows
from graphormer_sepnorm.table_model.labels import label_arrays
from graphormer_sepnorm.table_model.pairs import Change, Cliff, activity_cliffs, cuts_of, matched_changes
from graphormer_sepnorm.table_model.reliability import USUAL_CONFIDENCE
from graphormer_sepnorm.tables.labels import LabelledRow

WORST = 8
EXPLAINED, MOST_ATOMS, SECONDS = 4, 70, 30
CHANGES = 10
MOST_PAIRED = 2_000  # molecules that are compared pairwise
CLIFFS = 4
SET_NAME = f"{percent(float(USUAL_CONFIDENCE))} set"


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
            yield of_target(page, f"{SET_NAME} of", place), page.class_sets[place][row]
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
        yield SET_NAME, page.class_sets[0][row]


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
        said = f"{page.name_of(page.tested[row].number)}: {explanation.caption}"
        pictures.append(Picture(draw([explanation], ".svg"), said))
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
