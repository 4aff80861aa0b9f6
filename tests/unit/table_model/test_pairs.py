"""Activity cliffs and matched pairs, by hand."""

import numpy as np
import pytest
from rdkit import Chem

from graphormer_sepnorm.table_model.pairs import Change, activity_cliffs, change_of, matched_changes, parts_of

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


def test_labels_that_differ_by_less_than_half_a_standard_deviation_are_no_cliff():
    """Half a standard deviation is 0.44 with a label of 0.3, and 0.42 with one of 0.5."""
    mols = read("CCCCCCCCCO", "c1ccccc1", "CCCCCCCCCCO")
    assert activity_cliffs(mols, np.array([0.0, 2, 0.3])) == []
    assert len(activity_cliffs(mols, np.array([0.0, 2, 0.5]))) == 1


def test_equal_labels_are_no_cliff_and_few_molecules_no_pairs():
    assert activity_cliffs(read("CCO", "OCC"), np.array([2.0, 2])) == []
    assert activity_cliffs([], np.empty(0)) == [] == matched_changes([], np.empty(0))


def test_a_change_that_raises_the_label_is_found_with_its_pairs():
    """Chlorine in place of hydroxyl adds 1 and 2 and 3; the fourth pair has no label."""
    mols = read(*(rest.format(part) for part in ("O", "Cl") for rest in RESTS))
    y = np.array([1.0, 2, 3, 4, 2, 4, 6, np.nan])
    (change,) = [
        each
        for each in matched_changes(list(map(parts_of, mols)), y)
        if {each.before, each.after} == {"O[*:1]", "Cl[*:1]"}
    ]
    assert (change.before, change.after) == ("O[*:1]", "Cl[*:1]") and change.pairs == ((0, 4), (1, 5), (2, 6))
    assert (change.mean, change.deviation) == (2, 1)


def test_a_change_that_lowers_the_label_is_told_the_other_way_round():
    mols = read(*(rest.format(part) for part in ("O", "Cl") for rest in RESTS))
    y = np.array([5.0, 5, 5, 5, 3, 3, 3, 3])
    (change,) = [
        each
        for each in matched_changes(list(map(parts_of, mols)), y)
        if {each.before, each.after} == {"O[*:1]", "Cl[*:1]"}
    ]
    assert (change.before, change.after, change.mean, change.deviation) == ("Cl[*:1]", "O[*:1]", 2, 0)
    assert change.pairs[0] == (4, 0) and change.weight == 4


def test_the_same_pairs_are_listed_once_with_the_smallest_part():
    """All four pairs differ in O and Cl, in CO and CCl, and three of them in CCO and CCCl."""
    mols = read(*(rest.format(part) for part in ("O", "Cl") for rest in RESTS))
    changes = matched_changes(list(map(parts_of, mols)), np.array([1.0, 2, 3, 4, 2, 4, 6, 8]))
    assert {(each.before, each.after): len(each.pairs) for each in changes} == {
        ("O[*:1]", "Cl[*:1]"): 4,
        ("OCC[*:1]", "ClCC[*:1]"): 3,
    }


def test_large_changes_of_many_pairs_that_agree_come_first():
    """Three means of 2: of four pairs that agree, of three that agree, and of three that do not."""
    numbers = [[(0, 1), (2, 3), (4, 5), (6, 7)], [(8, 9), (10, 11), (12, 13)], [(14, 15), (16, 17), (18, 19)]]
    values = np.array([0.0, 2] * 7 + [0, 1, 0, 2, 0, 3])
    first, second, third = (change_of("O[*:1]", "Cl[*:1]", pairs, values) for pairs in numbers)
    assert [each.mean for each in (first, second, third)] == [2, 2, 2]
    assert first.weight == 2 * np.sqrt(4) > second.weight == 2 * np.sqrt(3) > third.weight == 4 * np.sqrt(3) / 3


def test_the_part_is_small_and_behind_one_bond():
    assert dict(map(reversed, parts_of(Chem.MolFromSmiles("c1ccccc1CCl")))) == {
        "Cl[*:1]": "c1ccc(C[*:1])cc1",
        "ClC[*:1]": "c1ccc([*:1])cc1",
    }
    assert parts_of(Chem.MolFromSmiles("c1ccccc1")) == [] == parts_of(Chem.MolFromSmiles("C"))
    biphenyl = "c1ccc(-c2ccccc2)cc1"  # neither half is smaller
    assert parts_of(Chem.MolFromSmiles(biphenyl)) == []
