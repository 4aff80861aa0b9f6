"""Activity cliffs and matched pairs, by hand."""

import numpy as np
import pytest
from rdkit import Chem

from graphormer_sepnorm.table_model.pairs import Change, activity_cliffs, cuts_of, matched_changes, surest_first

RESTS = ["c1ccccc1CCC{}", "c1ccncc1CCC{}", "C1CCCCC1CNC{}", "c1ccccc1C(=O)NCC{}"]


def read(*smiles: str) -> list[Chem.Mol]:
    return [Chem.MolFromSmiles(text) for text in smiles]


def of_chlorine(changes: list[Change]) -> list[Change]:
    """The changes between hydroxyl and chlorine."""
    return [each for each in changes if {each.before, each.after} == {"O[*:1]", "Cl[*:1]"}]


def test_the_steepest_cliff_comes_first():
    mols = read("CCCCCCCCCO", "CCCCCCCCCCO", "CCCCCCCCCN", "c1ccccc1", "OCCCCCCCCC")
    y = np.array([1.0, 4, np.nan, 4, 2.75])
    cliffs = activity_cliffs(mols, y)
    assert [(cliff.lower, cliff.higher) for cliff in cliffs] == [(0, 4), (0, 1), (4, 1)]
    assert cliffs[1].similarity < 1, "they differ in the number of carbons"
    same = next(cliff for cliff in cliffs if (cliff.lower, cliff.higher) == (0, 4))
    assert (same.similarity, same.difference) == (1, 1.75) and same.steepness == pytest.approx(175)
    assert [cliff.steepness for cliff in cliffs] == sorted((cliff.steepness for cliff in cliffs), reverse=True)


def test_bounds_differ_at_least_as_much_as_they_say():
    """Labels 1, >4, >2, <0.5 of homologues: 3 and 1 above the first, and the last is 0.5, 3.5 and 1.5 below them."""
    mols = read("CCCCCCCCCO", "CCCCCCCCCCO", "CCCCCCCCCCCO", "CCCCCCCCCCCCO")
    y = np.array([1.0, np.nan, np.nan, np.nan])
    bounds = np.array([[-np.inf, np.inf], [4, np.inf], [2, np.inf], [-np.inf, 0.5]])
    found = {(cliff.lower, cliff.higher): cliff.difference for cliff in activity_cliffs(mols, y, bounds=bounds)}
    assert found == {(0, 1): 3, (0, 2): 1, (3, 0): 0.5, (3, 1): 3.5, (3, 2): 1.5}


def test_measurements_under_other_conditions_are_not_compared():
    mols = read("CCCCCCCCCO", "CCCCCCCCCO", "CCCCCCCCCCO", "CCCCCCCCCCO")
    y, conditions = np.array([1.0, 5, 2, 9]), [("25",), ("37",), ("25",), ("37",)]
    assert {(cliff.lower, cliff.higher) for cliff in activity_cliffs(mols, y, conditions)} == {(1, 3)}
    halves = read("CCCCCCO", "CCCCCCN", "CCCCCCCO", "CCCCCCCN", "CCCCCCCCO", "CCCCCCCCN")
    parts, y = list(map(cuts_of, halves)), np.array([1.0, 2, 1, 2.1, 1, 1.9])
    same, mixed = [("25",)] * 6, [("25",), ("37",)] * 3
    found = {(each.before, each.after): len(each.pairs) for each in matched_changes(parts, y, same)}
    assert found["O[*:1]", "N[*:1]"] == 3
    assert all({each.before, each.after} != {"O[*:1]", "N[*:1]"} for each in matched_changes(parts, y, mixed))


def test_two_molecules_under_several_conditions_are_one_pair():
    mols = read(*["CCCCCCO", "CCCCCCN"] * 3)
    y, conditions = np.array([1.0, 2, 1, 2.1, 1, 1.9]), [(text,) for text in ("25", "25", "37", "37", "45", "45")]
    parts, keys = list(map(cuts_of, mols)), ["O", "N"] * 3
    assert matched_changes(parts, y, conditions)[0].pairs == ((0, 1), (2, 3), (4, 5))
    assert matched_changes(parts, y, conditions, keys) == []
    close = read(*["CCCCCCCCCO", "CCCCCCCCCCO"] * 3)
    assert len(activity_cliffs(close, y, conditions)) == 3
    (cliff,) = activity_cliffs(close, y, conditions, keys)
    assert (cliff.lower, cliff.higher) == (2, 3), "the steepest"


@pytest.mark.parametrize("sign", [1, -1])
def test_pairs_with_a_bound_are_counted_and_not_averaged(sign):
    """Hydroxyl 1, 2, 3, 1, >2, 5, chlorine 2, 4, 6, >2, >1, <4: the last three go up, anywhere and down."""
    rests = [*RESTS, "C1CCCC1CCC{}", "c1ccsc1CCC{}"]
    parts = [cuts_of(mol) for mol in read(*(rest.format(part) for part in ("O", "Cl") for rest in rests))]
    y = np.array([1.0, 2, 3, 1, np.nan, 5, 2, 4, 6, np.nan, np.nan, np.nan])
    bounds = np.full((12, 2), [-np.inf, np.inf])
    bounds[[4, 9, 10], 0], bounds[11, 1] = (2, 2, 1), 4
    (change,) = of_chlorine(matched_changes(parts, sign * y, bounds=np.sort(sign * bounds)))
    assert {frozenset(pair) for pair in change.pairs} == {frozenset(pair) for pair in ((0, 6), (1, 7), (2, 8))}
    assert (change.mean, change.deviation) == (2, 1)
    assert (change.rising, change.falling, change.undecided) == (1, 1, 1)


def test_a_change_that_lowers_the_label_is_told_the_other_way_round():
    mols = read(*(rest.format(part) for part in ("O", "Cl") for rest in RESTS))
    y = np.array([5.0, 5, 5, 5, 3, 3, 3, 3])
    (change,) = of_chlorine(matched_changes(list(map(cuts_of, mols)), y))
    assert (change.before, change.after, change.mean, change.deviation) == ("Cl[*:1]", "O[*:1]", 2, 0)
    assert change.pairs[0] == (4, 0)


def test_the_same_pairs_are_listed_once_with_the_smallest_part():
    """All four pairs differ in O and Cl, in CO and CCl, and three of them in CCO and CCCl."""
    mols = read(*(rest.format(part) for part in ("O", "Cl") for rest in RESTS))
    changes = matched_changes(list(map(cuts_of, mols)), np.array([1.0, 2, 3, 4, 2, 4, 6, 8]))
    counts = {(each.before, each.after): len(each.pairs) for each in changes}
    assert counts == {("O[*:1]", "Cl[*:1]"): 4, ("OCC[*:1]", "ClCC[*:1]"): 3}


@pytest.mark.parametrize(
    ("facts", "order"),
    [([(0.765, 0.871, 3), (0.2, 0.037, 16)], [1, 0]), ([(2, 1, 3), (2, 1, 4), (2, 2, 4), (3, 1, 4)], [3, 1, 0, 2])],
)
def test_the_surest_changes_come_first(facts, order):
    """The means over their standard errors: 21.6 and 1.5 without the prior, and about 6 and 2 with it."""
    changes = [Change("O[*:1]", "Cl[*:1]", ((0, 1),) * pairs, *numbers) for *numbers, pairs in facts]
    assert surest_first(changes) == [changes[place] for place in order]


def test_the_part_is_small_and_behind_one_bond():
    benzyl, *without = read("c1ccccc1CCl", "c1ccccc1", "C", "c1ccc(-c2ccccc2)cc1")  # no half of biphenyl is smaller
    found = dict(map(reversed, cuts_of(benzyl)))
    assert found == {"Cl[*:1]": "c1ccc(C[*:1])cc1", "ClC[*:1]": "c1ccc([*:1])cc1"}
    assert [cuts_of(mol) for mol in without] == [[], [], []]
