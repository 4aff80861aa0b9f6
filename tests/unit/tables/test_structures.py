from graphormer_sepnorm.tables.structures import Structures, read_structures


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
