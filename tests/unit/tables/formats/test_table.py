import pytest

from graphormer_sepnorm.tables.formats import Row, free_name, not_one_column, table_of_smiles, with_free_names
from graphormer_sepnorm.tables.formats.table import NoColumn, find_column, places_of_column


def test_free_name():
    assert free_name("a", ["b"], "_x") == "a"
    assert free_name("a", ["a", "a_x"], "_x") == "a_x_x"
    assert with_free_names(["a", "b"], ["a"]) == ["a_predicted", "b"]


def test_smiles_are_a_table_of_one_column():
    table = table_of_smiles(["C", "CC"])
    assert table.columns == ["smiles"] and list(table.rows) == [Row(["C"], "C"), Row(["CC"], "CC")]


def test_a_column_in_another_encoding_is_shown_and_not_offered():
    message = not_one_column("a.csv", ["smiles", "l\udcf6slichkeit"], "löslichkeit", 0, "name another")
    assert message.endswith("save the table as UTF-8. Its columns: smiles, l\ufffdslichkeit")
    assert "mean" not in message and message.isprintable()


def test_of_many_columns_some_are_shown():
    columns = [f"d{number}" for number in range(1000)]
    assert not_one_column("a.csv", columns, "y", 0).endswith("d18, d19, ...")
    assert not_one_column("a.csv", ["smiles", "pIC50"], "pIC5", 0) == (
        "a.csv has no column 'pIC5'; did you mean 'pIC50'? Its columns: smiles, pIC50"
    )
    assert not_one_column("a.csv", ["smiles", "y", "y"], "y", 2, "name another") == (
        "a.csv has 2 columns 'y': name another. Its columns: smiles, y, y"
    )


@pytest.mark.parametrize(
    ("columns", "places"),
    [
        (["id", "SMILES"], [1]),
        (["Canonical_SMILES", "smiles"], [1]),
        (["Canonical SMILES", "IsomericSMILES", "y"], [0]),
        (["y", "SMILES_parent"], [1]),
        (["Structure", "InChI"], [0]),
        (["InChIKey", "InChI"], [1]),
        (["rdkit_smiles", "y"], [0]),
        (["smiles_a", "smiles_b"], [0, 1]),
        (["smiles", "smiles"], [0, 1]),
        (["InChIKey", "molecule"], []),
    ],
)
def test_the_column_of_molecules_is_found_by_the_names_that_people_give_it(columns, places):
    assert places_of_column(columns, None) == places


def test_columns_of_the_same_name_have_to_be_renamed():
    with pytest.raises(
        NoColumn, match=r"^a.csv has 2 columns 'Structure': rename one. Its columns: Structure, y, Struct"
    ):
        find_column(["Structure", "y", "Structure"], None, "a.csv")


def test_a_column_that_is_named_is_taken_as_it_is_written():
    assert places_of_column(["smiles", "SMILES"], "SMILES") == [1]
