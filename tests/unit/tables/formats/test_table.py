from graphormer_sepnorm.tables.formats import (
    Row,
    free_name,
    not_one_column,
    open_table,
    table_of_smiles,
    with_free_names,
)
from tests.tables import write


def test_chunks_are_lists_of_rows_in_order(tmp_path):
    with open_table(write(tmp_path, "a.csv", "smiles\n" + "C\n" * 5)) as table:
        assert [len(chunk) for chunk in table.chunks(2)] == [2, 2, 1]


def test_free_name():
    assert free_name("a", ["b"], "_x") == "a"
    assert free_name("a", ["a", "a_x"], "_x") == "a_x_x"
    assert with_free_names(["a", "b"], ["a"]) == ["a_predicted", "b"]


def test_smiles_are_a_table_of_one_column():
    table = table_of_smiles(["C", "CC"])
    assert table.columns == ["smiles"] and list(table.rows) == [Row(["C"], "C"), Row(["CC"], "CC")]


def test_of_many_columns_some_are_shown():
    columns = [f"d{number}" for number in range(1000)]
    assert not_one_column("a.csv", columns, "y", 0).endswith("d18, d19, ...)")
    assert not_one_column("a.csv", ["smiles", "y", "y"], "y", 2) == (
        "a.csv has 2 columns 'y' (its columns: smiles, y, y)"
    )
