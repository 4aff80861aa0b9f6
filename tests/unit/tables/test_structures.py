import pytest

from graphormer_sepnorm.tables.structures import (
    Structures,
    known_molecules,
    known_words,
    read_structures,
    structures_of,
)


def test_a_salt_its_acid_and_its_anion_are_one_family():
    acid, anion, salt, other = read_structures("mol", ["CC(=O)O", "CC(=O)[O-]", "CC(=O)[O-].[Na+]", "CCC(=O)O"])
    assert acid.parent == anion.parent == salt.parent != other.parent
    assert len({acid.key, anion.key, salt.key}) == 3 and (acid.parts, salt.parts) == (1, 2)


def test_stereoisomers_are_not_one_family():
    left, right = read_structures("mol", ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"])
    assert left.parent != right.parent


def test_structures_are_grouped_by_their_keys_where_no_parent_is_known():
    assert Structures(["C"], [""], ["k"]).families == ["k"]
    found = Structures.of(read_structures("mol", ["C", "CC", "CCC"]))
    assert found.take([2, 0]).smiles == ["CCC", "C"] and found.take([1]).parts == [1]
    assert Structures(["C", "CC"], ["", ""], ["k", "l"]).take([1]) == Structures(["CC"], [""], ["l"])


@pytest.mark.parametrize(
    ("same", "alike", "rows", "words"),
    [
        (0, 0, 28, ""),
        (1, 0, 28, "1 of 28 rows has a training molecule: the score is slightly too good"),
        (99, 0, 1_000, "99 of 1,000 rows have a training molecule: the score is slightly too good"),
        (50, 0, 50, "50 of 50 rows have a training molecule: this is no test score"),
        (0, 100, 1_000, "100 of 1,000 rows have a salt or charged form of a training molecule, or the molecule: this "
         "is no test score"),
    ],
)  # fmt: skip
def test_few_training_molecules_spoil_a_score_slightly(same, alike, rows, words):
    assert known_words({"training_molecules": same, "training_families": alike, "n": rows}) == words
    assert known_words({"n": rows}) == ""


def test_known_molecules_are_found_in_any_spelling_and_as_salts():
    asked = structures_of("mol", ["OCC", "CC(=O)[O-].[Na+]", "CCC", "C[C"])
    learnt = structures_of("mol", ["CCO", "CC(=O)O", "CCO"])
    assert known_molecules(asked, learnt) == {"training_molecules": 1, "training_families": 1}
