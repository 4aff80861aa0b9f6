import pytest

from graphormer_sepnorm.tables.structures import Structures, known_molecules, read_structures, structures_of


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
        ["Sc1ccccn1", "[Na]Sc1ccccn1", "S=c1cccc[nH]1", "[S-]c1ccccn1.[K+]", "[Mg](Sc1ccccn1)Sc1ccccn1"],
        ["[Na+].[Cl-]", "[Na]Cl", "O.[Na+].[Cl-]"],
        ["N.N.[Pt+2].[Cl-].[Cl-]", "N.N.Cl[Pt]Cl", "[NH3+][Pt-2](Cl)(Cl)[NH3+].O"],
    ],
)
def test_a_family_has_all_salts_isotopes_and_stereoisomers_of_a_molecule(forms):
    *found, other = read_structures("mol", [*forms, "CCCC(=O)O"])
    assert len({each.family for each in found}) == 1 and other.family != found[0].family
    assert len({each.key for each in found}) > 1


def test_inorganic_salts_of_one_ion_are_different_substances():
    drawn = ["Cl", "[Na+].[Cl-]", "[K+].[Cl-]", "[Ca+2].[Cl-].[Cl-]", "N.N.[Pt+2].[Cl-].[Cl-]", "[NH4+].[Cl-]"]
    for name in ("mol", "mol-without-salts", "mol-standardized"):
        found = read_structures(name, drawn)
        assert len({each.family for each in found}) == len({each.key for each in found}) == len(drawn)


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


def test_known_molecules_are_found_in_any_spelling_and_as_salts():
    asked = structures_of("mol", ["OCC", "CC(=O)[O-].[Na+]", "CCC", "C[C"])
    learnt = structures_of("mol", ["CCO", "CC(=O)O", "CCO"])
    assert known_molecules(asked, learnt) == {"training_molecules": 1, "training_families": 1}
