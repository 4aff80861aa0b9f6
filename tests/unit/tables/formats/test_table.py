import pytest

from graphormer_sepnorm.tables.formats.table import places_of_column


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
