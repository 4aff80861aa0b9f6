import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats import Row
from tests.tables import read, write


def test_smi(tmp_path):
    path = write(tmp_path, "a.smi", "CCO ethanol of wine\nC\tmethane\n\nCC\n")
    columns, rows = read(path)
    assert columns == ["smiles", "name"]
    assert [row.fields for row in rows] == [["CCO", "ethanol of wine"], ["C", "methane"], ["", ""], ["CC", ""]]
    assert read(write(tmp_path, "b.smi", "SMILES Name\nCCO x\n"))[1] == [Row(["CCO", "x"], "CCO")]


def test_another_column_of_molecules_is_refused(tmp_path):
    path = write(tmp_path, "a.smi", "CCO a\n")
    assert read(path, "smiles") == read(path)
    with pytest.raises(InputError, match="has its molecules first on each line: leave --smiles-column out"):
        read(path, "name")


def test_the_extension_of_a_cxsmiles_is_no_name(tmp_path):
    _, rows = read(write(tmp_path, "a.smi", "CCO |^1:0| a radical\nCCO\t|^1:0|\nCCO |\n"))
    assert [row.fields for row in rows] == [["CCO |^1:0|", "a radical"], ["CCO\t|^1:0|", ""], ["CCO", "|"]]


@pytest.mark.parametrize("extension", ["&1:1", "$;;R$", "(0,0,;1,0,)", "r", "r,^1:0", "", "c:1,t:3", "o12:1,2", "Z:0"])
def test_extensions_of_a_cxsmiles_have_a_form(tmp_path, extension):
    (row,) = read(write(tmp_path, "a.smi", f"CCO |{extension}| x\n"))[1]
    assert row.smiles == f"CCO |{extension}|" and row.fields[1] == "x"


@pytest.mark.parametrize("name", ["|batch 7| x", "|7|", "|red, 2|", "|CAS:64-17-5|"])
def test_a_name_between_bars_is_no_extension(tmp_path, name):
    assert read(write(tmp_path, "a.smi", f"CCO {name}\n"))[1] == [Row(["CCO", name], "CCO")]


@pytest.mark.parametrize("content", ["\nCCO a\nC\n", "\n\nCCO a\nC\n", "\nsmiles name\nC\n", " \nCCO\n"])
def test_a_blank_line_is_a_row_wherever_it_stands(tmp_path, content):
    rows = read(write(tmp_path, "a.smi", content))[1]
    assert len(rows) == content.count("\n") and rows[0] == Row(["", ""], "")


def test_an_empty_file_has_no_rows(tmp_path):
    assert read(write(tmp_path, "a.smi", ""))[1] == read(write(tmp_path, "a.smi", "\n\n"))[1] == []
