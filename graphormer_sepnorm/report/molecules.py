"""The sections of a report on single molecules: the worst predictions, contributions of atoms, and matched pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import monotonic

import numpy as np

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.pictures import draw, draw_pair
from graphormer_sepnorm.predict.describing import same_conditions
from graphormer_sepnorm.predict.domain import MAX_REFERENCES, evenly, is_same_molecule, similarity_words
from graphormer_sepnorm.report.page import Grid, Molecule, Picture, Section
from graphormer_sepnorm.report.reported import MOST_PAIRED, Reported, plain_picture
from graphormer_sepnorm.report.words import words
from graphormer_sepnorm.runs.numbers import decimals_for, percent, shown
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.table_model.explain import explain_rows
from graphormer_sepnorm.table_model.labels import label_arrays
from graphormer_sepnorm.table_model.pairs import Change, Cliff, activity_cliffs, matched_changes, parts_of
from graphormer_sepnorm.table_model.reliability import USUAL_CONFIDENCE
from graphormer_sepnorm.tasks import TASKS

WORST = 8
EXPLAINED, MOST_ATOMS, SECONDS = 4, 70, 30
CHANGES = 10
CLIFFS = 4
SET_NAME = f"{percent(float(USUAL_CONFIDENCE))} set"


def worst_section(page: Reported) -> Section:
    """The test molecules with the largest errors, each with its most similar training molecule."""
    errors = page.looked.errors
    order = np.argsort(-np.nan_to_num(errors, nan=-1.0), kind="stable")[:WORST]
    molecules = tuple(worst_molecule(page, row) for row in order.tolist() if errors[row] > 0)
    title = "The test molecules with the largest errors, each with the most similar training molecule."
    return Section("Worst predictions", (title,), molecules=molecules)


def worst_molecule(page: Reported, row: int) -> Molecule:
    test, looked, labelled = page.test, page.looked, page.tested[row]
    known = np.flatnonzero(~np.isnan(test.y[row]))[:MAX_PANELS]
    if TASKS[page.task.kind].adds_up:
        facts = list(class_facts(page, row))
    else:
        facts = [fact for place in known.tolist() for fact in facts_of(page, row, place)]
    if looked.warnings[row]:
        facts.append(("warning", looked.warnings[row]))
    smiles = looked.smiles[row]
    return Molecule(page.name_of(labelled.number), smiles, plain_picture(smiles), tuple(facts), neighbour(page, row))


def facts_of(page: Reported, row: int, place: int) -> Iterator[tuple[str, str]]:
    """The label of a test molecule, its prediction with the interval or the set of classes, and its error."""
    y, predicted = page.test.y[row, place], page.test.prediction[row, place]
    yield of_target(page, "measured", place), page.label_of(page.tested[row], place)
    yield of_target(page, "predicted", place), page.predicted(predicted, place)
    if (interval := page.interval(row, place)) is not None:
        yield of_target(page, f"{page.interval_name} of", place), interval
    if (classes := page.class_set(row, place)) is not None:
        yield of_target(page, f"{SET_NAME} of", place), classes
    yield of_target(page, "error of", place), page.difference(predicted, y, place)


def of_target(page: Reported, fact: str, place: int) -> str:
    """The name of a fact, such as "error of", with that of its target if there are several."""
    return fact.removesuffix(" of") if len(page.task.targets) == 1 else f"{fact} {page.task.targets[place]}"


def class_facts(page: Reported, row: int) -> Iterator[tuple[str, str]]:
    """The class of a test molecule of several classes, the most probable one, their probabilities, and its set."""
    prediction, measured = page.test.prediction[row], int(page.test.y[row].argmax())
    predicted, names = int(prediction.argmax()), page.task.classes[0]
    yield "measured", f"{names[measured]} (probability {page.rounded(prediction[measured], measured)})"
    yield "predicted", f"{names[predicted]} (probability {page.rounded(prediction[predicted], predicted)})"
    if (classes := page.class_set(row, 0)) is not None:
        yield SET_NAME, classes


def neighbour(page: Reported, test_row: int) -> Molecule | None:
    """The training molecule that is most similar to a test molecule."""
    trust, asked = page.model.trust, None
    assert trust is not None and trust.rows is not None
    if page.options.feature_columns:
        asked, _ = page.model.conditions.encode_all([page.tested[test_row].conditions])
    matches = same_conditions(trust.rows, asked)
    (similarity,), (row,) = trust.domain.nearest_rows([page.looked.smiles[test_row]], matches)
    if row < 0:
        return None
    name, known = trust.rows.names[row], trust.domain.smiles[row]
    learnt = page.learnt[evenly(len(page.learnt), MAX_REFERENCES)[row]]
    is_same = is_same_molecule(page.looked.smiles[test_row], known)
    facts = [("similarity", similarity_words(similarity, is_same))]
    if TASKS[page.task.kind].adds_up:
        facts.append(("measured", page.task.classes[0][int(np.argmax(learnt.labels))]))
    else:
        places = range(len(page.task.targets[:MAX_PANELS]))
        facts += [(of_target(page, "measured", place), page.label_of(learnt, place)) for place in places]
    facts += zip(page.options.feature_columns, learnt.conditions, strict=True)
    named = name if page.labelled.names else f"row {name}"
    return Molecule(f"Nearest training molecule: {named}", known, plain_picture(known), tuple(facts))


def contributions_section(page: Reported) -> Section | None:
    """Atom contributions for the molecules with the lowest and the highest predictions of the first target.

    Large molecules are left out, and after ``SECONDS`` no other one is begun.
    """
    if page.model.conditions.columns:
        return None
    order = np.argsort(page.test.prediction[:, 0], kind="stable").tolist()
    small = [row for row in order if read_smiles(page.looked.smiles[row]).GetNumAtoms() <= MOST_ATOMS]
    rows = dict.fromkeys([*small[: EXPLAINED // 2], *small[-EXPLAINED // 2 :]])
    decimals, started, pictures = dict(zip(page.task.targets, page.decimals, strict=True)), monotonic(), []
    for row in rows:
        if monotonic() - started < SECONDS:
            explanation = explain_rows(page.model, [page.looked.smiles[row]], decimals=decimals)[0]
            if not isinstance(explanation, InputError):
                if page.is_regression:  # as in the other sections
                    caption = f"{page.task.targets[0]} = {page.predicted(page.test.prediction[row, 0], 0)}"
                    explanation = replace(explanation, caption=caption)
                words_of = f"{page.name_of(page.tested[row].number)}: {explanation.caption}"
                pictures.append(Picture(draw([explanation], ".svg"), words_of))
    target, facts = page.task.targets[0], {"most": MOST_ATOMS, "has_larger": len(small) < len(order)}
    paragraphs = words("predictions.contributions", target=target, of=explained_class(page), **facts)
    return Section("Atom contributions", paragraphs, pictures=tuple(pictures)) if pictures else None


def explained_class(page: Reported) -> str | None:
    """The class whose lowest and highest probabilities are explained; None for a regression."""
    if page.is_regression:
        return None
    if TASKS[page.task.kind].adds_up:
        return page.task.classes[0][0]
    target = page.task.targets[0]
    return page.classes_of(target)[1] + (f" ({target})" if len(page.task.targets) > 1 else "")


def pairs_section(page: Reported) -> Section | None:
    """The replacements of one part with the surest effect."""
    if not page.is_regression:
        return None
    y, bounds = label_arrays(page.paired)
    parts, conditions = [parts_of(mol) for mol in page.paired_mols], [row.conditions for row in page.paired]
    grids = []
    for place, target in enumerate(page.task.targets[:MAX_PANELS]):
        ends = None if bounds is None else bounds[:, place]
        if changes := matched_changes(parts, y[:, place], conditions, page.paired_keys, ends)[:CHANGES]:
            grids.append(changes_grid(target, changes, [row.smiles for row in page.paired], y[:, place]))
    paragraphs = words("predictions.pairs", has_bounds=bounds is not None, all=len(page.learnt), most=MOST_PAIRED)
    return Section("Matched pairs", paragraphs, tuple(grids)) if grids else None


def cliffs_section(page: Reported) -> Section | None:
    """The steepest activity cliffs of the first target."""
    if not page.is_regression:
        return None
    labels, conditions = np.array([row.labels[0] for row in page.paired]), [row.conditions for row in page.paired]
    _, bounds = label_arrays(page.paired)
    ends = None if bounds is None else bounds[:, 0]
    found = activity_cliffs(page.paired_mols, labels, conditions, page.paired_keys, ends)
    counts = {"all": len(page.learnt), "most": MOST_PAIRED}
    paragraphs = words("predictions.cliffs", target=page.task.targets[0], **counts)
    cliffs = tuple(cliff_molecule(page, cliff) for cliff in found[:CLIFFS])
    return Section("Activity cliffs", paragraphs, molecules=cliffs) if cliffs else None


def changes_grid(target: str, changes: list[Change], smiles: Sequence[str], y: np.ndarray) -> Grid:
    """The replacements and their mean effect on a target, each with a pair of the molecules, with labels [M]."""
    decimals = decimals_for(number for change in changes for number in (change.mean, change.deviation))
    rows: list[tuple[Picture | str, ...]] = []
    further: list[str] = []
    header: tuple[str, ...] = ("from", "to", "mean change", "standard deviation", "pairs")
    for change in changes:
        numbers = f"{change.mean:+.{decimals}f}", shown(change.deviation, decimals), f"{len(change.pairs):,}"
        rows.append((*example_of(change, smiles, y), *numbers))
        counts = {"up": change.rising, "down": change.falling, "undecided": change.undecided}
        further.append(", ".join(f"{count:,} {name}" for name, count in counts.items() if count))
    if any(further):
        header, rows = (*header, "pairs with a bound"), [(*row, cell) for row, cell in zip(rows, further, strict=True)]
    return Grid(header, tuple(rows), target)


def example_of(change: Change, smiles: Sequence[str], y: np.ndarray) -> tuple[Picture | str, Picture | str]:
    """The pair whose labels differ most nearly by the mean, drawn; the SMILES of the parts if it cannot be drawn."""
    one, other = min(change.pairs, key=lambda pair: abs(y[pair[1]] - y[pair[0]] - change.mean))
    parts = change.before, change.after
    return pair_pictures((smiles[one], smiles[other]), parts) or parts


def cliff_molecule(page: Reported, cliff: Cliff) -> Molecule:
    """The two molecules of an activity cliff of the first target."""
    lower, higher = page.paired[cliff.lower], page.paired[cliff.higher]
    exact = not np.isnan([lower.labels[0], higher.labels[0]]).any()
    difference = page.difference(higher.labels[0], lower.labels[0], 0) if exact else page.rounded(cliff.difference, 0)
    said = difference if exact else f"more than {difference}"
    of_pair = (of_target(page, "difference of", 0), said), ("similarity of the pair", f"{cliff.similarity:.2f}")
    rows = lower, higher
    pictures = pair_pictures((lower.smiles, higher.smiles), (lower.smiles, higher.smiles)) or (None, None)
    measured = [(of_target(page, "measured", 0), page.label_of(row, 0)) for row in rows]
    names = [page.name_of(row.number) for row in rows]
    partner = Molecule(names[1], higher.smiles, pictures[1], (measured[1], *of_pair))
    return Molecule(names[0], lower.smiles, pictures[0], (measured[0],), partner)


def pair_pictures(smiles: tuple[str, str], described: tuple[str, str]) -> tuple[Picture, Picture] | None:
    """Two aligned molecules with their descriptions; None if they cannot be drawn."""
    try:
        one, other = draw_pair(*smiles)
    except InputError:
        return None
    return Picture(one, described[0]), Picture(other, described[1])
