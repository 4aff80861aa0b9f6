import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.own_table import only_target, options_of_table
from graphormer_sepnorm.tables.formats.table import WholeTable
from graphormer_sepnorm.tables.labels import read_whole


def table(*columns: str) -> WholeTable:
    """Its molecules are in the column of one of these names."""
    names = ("smiles", "SMILES", "structure", "drug")
    return WholeTable(list(columns), [], smiles_place=next(n for n, name in enumerate(columns) if name in names))


@pytest.mark.parametrize(
    ("columns", "given"),
    [
        (["smiles", "logD"], {}),
        (["compound_id", "logD", "SMILES"], {}),
        (["structure", "logD", "set"], {"smiles_column": "structure", "split_column": "set"}),
        (["smiles", "logD", "weight", "pH"], {"weight_column": "weight", "feature_columns": ("pH",)}),
        (["smiles", "batch", "logD"], {"id_column": "batch"}),
    ],
)
def test_the_only_column_without_another_purpose_is_predicted(columns, given):
    assert only_target("a.csv", table(*columns), given) == ("logD",)


def test_several_columns_need_the_names_of_the_targets():
    with pytest.raises(InputError, match=r"--target-columns \(the columns of a.csv: smiles, logD, logP\)"):
        only_target("a.csv", table("smiles", "logD", "logP"), {})


@pytest.mark.parametrize("columns", [["smiles"], ["smiles", "id"]])
def test_a_table_without_another_column_has_nothing_to_predict(columns):
    sentence = f"^a.csv has no column to predict: its columns are {', '.join(columns)}$"
    with pytest.raises(InputError, match=sentence):
        only_target("a.csv", table(*columns), {})


def test_a_threshold_makes_a_classification_of_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smiles,IC50_nM\nC,5\nCC,>1000\nCCC,<7\n")
    options = options_of_table(str(path), read_whole(str(path)), {"active_below": "100nM"}, None, 0)
    assert options.kind == "classification" and options.threshold == "<100nM"
    with pytest.raises(InputError, match="--active-below"):
        options_of_table(str(path), read_whole(str(path)), {"active_below": "100nM"}, "regression", 0)
