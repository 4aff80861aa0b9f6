import pytest

from graphormer_sepnorm.tables.structures import Structures, read_structures


@pytest.mark.parametrize(
    "forms",
    [
        [
            "OC(=O)c1cccs1",
            "O=C([O-])c1cccs1",
            "O=C([O-])c1cccs1.[Na+]",
            "O=C(O[Na])c1cccs1",
            "O=C(O)c1cccs1.CNC[C@H](O)[C@@H](O)[C@H](O)[C@H](O)CO",
        ],
        ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "CC([NH3+])C(=O)[O-]", "[2H]C(N)(C)C(=O)O.Cl", "CC(N)C(=O)O[K]"],
        ["C/C=C/c1nnn[nH]1", "CC=Cc1nnn[n-]1.[K+]", "CC=Cc1nn[nH]n1"],
        ["*[C@H](C)F", "*C(C)F", "*[C@@H](C)F.O"],
    ],
)
def test_a_family_has_all_salts_isotopes_and_stereoisomers_of_a_molecule(forms):
    *found, other = read_structures("mol", [*forms, "CCCC(=O)O"])
    assert len({each.family for each in found}) == 1 and other.family != found[0].family
    assert len({each.key for each in found}) > 1


def test_stereo_that_is_drawn_and_stereo_that_is_lost_are_known():
    salt = "OC(=O)[C@H](O)[C@@H](O)C(=O)O.CC(N)c1ccc2ccccc2c1"
    drawn = read_structures("mol", ["C[C@H](N)CC", "CC(N)CC", salt])
    assert [each.has_stereo for each in drawn] == [True, False, False]
    smiles = ["C[C@H](O)C=O", "CC(O)=C=O", salt, "CC([O-])=C(C)C(C)=O.[Na+]", "CC(/O)=C(/C)C(C)=O"]
    assert [each.loses_stereo for each in read_structures("mol-tautomer", smiles)] == [False] * 4 + [True]


def test_structures_are_grouped_by_their_keys_where_no_parent_is_known():
    assert Structures(["C"], [""], ["k"]).families == ["k"]
    found = Structures.of(read_structures("mol", ["C", "CC", "CCC"]))
    assert found.take([2, 0]).smiles == ["CCC", "C"] and found.take([1]).parts == [1]
    assert Structures(["C", "CC"], ["", ""], ["k", "l"]).take([1]) == Structures(["CC"], [""], ["l"])
