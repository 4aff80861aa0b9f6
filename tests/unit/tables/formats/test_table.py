import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats.table import is_molecule, molecule_among, places_of_column
from tests.tables import read, write


@pytest.mark.parametrize(
    ("columns", "places"),
    [
        (["id", "SMILES"], [1]), (["Canonical_SMILES", "smiles"], [1]),
        (["Canonical SMILES", "IsomericSMILES", "y"], [0]), (["y", "SMILES_parent"], [1]),
        (["Structure", "InChI"], [0]), (["InChIKey", "InChI"], [1]), (["rdkit_smiles", "y"], [0]),
        (["smiles_a", "smiles_b"], [0, 1]), (["smiles", "smiles"], [0, 1]), (["InChIKey", "molecule"], []),
    ],
)  # fmt: skip
def test_the_column_of_molecules_is_found_by_the_names_that_people_give_it(columns, places):
    assert places_of_column(columns, None) == places


def test_a_column_that_is_named_is_taken_as_it_is_written():
    assert places_of_column(["smiles", "SMILES"], "SMILES") == [1]


LIST = "CCO\nCCN\nc1ccccc1O\n"
NO_HEADER = "seems to have no header: its first line contains the molecule 'CCO'; write the names of the columns"


@pytest.mark.parametrize("name", ["plain.txt", "plain.csv", "plain.tsv"])
@pytest.mark.parametrize("column", [None, "CCO"])
def test_a_list_without_a_header_is_read_as_smi(tmp_path, name, column):
    columns, rows = read(write(tmp_path, name, LIST), column)
    assert (columns, [row.smiles for row in rows]) == read_smi_of(tmp_path, LIST)
    assert len(rows) == 3


def test_names_with_commas_and_one_molecule_are_lists_too(tmp_path):
    for text in ("CCO ethanol\n\nCN(C)C N,N-dimethyl\n", "CCO\n", "CCO\r\nnone\r\nCCN\r\n"):
        columns, rows = read(write(tmp_path, "a.csv", text))
        assert (columns, [row.smiles for row in rows]) == read_smi_of(tmp_path, text)


def read_smi_of(folder, text):
    columns, rows = read(write(folder, "same.smi", text))
    return columns, [row.smiles for row in rows]


@pytest.mark.parametrize("column", [None, "CCO"])
@pytest.mark.parametrize("text", ["A1,CCO\nA2,CCN\n", "CCO\tx\nCCN\ty\n", '"CCO"\n"CCN"\n', "sep=;\nA1;CCO\nA2;CCN\n"])
def test_a_table_without_a_header_is_refused(tmp_path, text, column):
    with pytest.raises(InputError, match=f"a.csv {NO_HEADER}") as caught:
        read(write(tmp_path, "a.csv", text), column)
    assert ("end in .smi" in str(caught.value)) == text.startswith("CCO\t")


@pytest.mark.parametrize(
    "name", ["smiles", "name", "Structure", "logD", "pIC50", "CN", "ID", "C", "N", "CO", "NO", "IC50", "Conc", "Cl", ""]
)
def test_a_name_is_no_molecule(name):
    assert not is_molecule(name) and not molecule_among([name], [["CCO"]])
