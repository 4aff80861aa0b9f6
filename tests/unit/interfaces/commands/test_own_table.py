import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.own_table import detected, only_target
from graphormer_sepnorm.tables.formats.table import Row, WholeTable
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


def test_the_column_is_named_once_it_is_detected_and_not_if_it_was_given():
    rows = [Row([str(number / 10), "C" * number], "C" * number) for number in range(1, 9)]
    content = WholeTable(["logD", "smiles"], rows, smiles_place=1)
    options, said = detected("a.csv", content, {}, None, 0)
    assert options.targets == ("logD",)
    assert "predicting logD, the only column that is neither SMILES nor an id" in said
    assert not any("predicting" in line for line in detected("a.csv", content, {"targets": ("logD",)}, None, 0)[1])
    rows = [Row([*row.fields, "train"], row.smiles) for row in rows]
    content = WholeTable(["logD", "smiles", "set"], rows, smiles_place=1)
    _, said = detected("a.csv", content, {"split": "column", "split_column": "set"}, None, 0)
    assert any(line.endswith("neither SMILES, nor an id, nor named by another option") for line in said)


@pytest.mark.parametrize(
    ("name", "cells", "given", "said"),
    [
        ("split", "train", {}, "the column split is not used, because the split is by scaffold: to use it, add"),
        ("Split", "Valid", {"split": "random"}, "the column Split is not used, because the split is by random"),
        ("split", "train", {"test_csv": "b.csv"}, "the column split is not used, because the split is by --test-csv"),
        ("split", "fold 1", {}, "to use it if its cells are train, val or test, add --split column --split-column"),
        (
            "set",
            "train",
            {"split": "column", "split_column": "set"},
            "the column set says which rows are train, val and",
        ),
        ("set", "train", {}, None),
        ("split", "train", {"feature_columns": ("split",)}, None),
    ],
)
def test_it_is_said_whether_a_column_splits_the_table(name, cells, given, said):
    rows = [Row([str(number / 10), "C" * number, cells], "C" * number) for number in range(1, 9)]
    content = WholeTable(["y", "smiles", name], rows, smiles_place=1)
    _, sentences = detected("a.csv", content, {"targets": ("y",), **given}, None, 0)
    lines = [line for line in sentences if line.startswith("the column")]
    assert len(lines) == (said is not None) and all(said in line for line in lines)
    assert not any("leave" in line for line in lines), "no advice against what was asked for"


def test_a_split_column_that_is_missing_is_named_before_anything_is_said_of_it():
    content = WholeTable(["y", "smiles", "split"], [Row(["0.1", "C", "train"], "C")], smiles_place=1)
    given = {"targets": ("y",), "split": "column", "split_column": "splt"}
    with pytest.raises(InputError, match=r"^a.csv has no column 'splt'; did you mean 'split'\?"):
        detected("a.csv", content, given, None, 0)


@pytest.mark.parametrize(("columns", "given"), [(["smiles", "y"], {}), (["y", "drug"], {"smiles_column": "drug"})])
def test_the_column_of_molecules_is_no_target(columns, given):
    name = given.get("smiles_column", "smiles")
    with pytest.raises(InputError, match=f"^{name} is the column of molecules: name the columns to predict with --tar"):
        detected("a.csv", table(*columns), {**given, "targets": ("y", name)}, None, 0)


def test_a_threshold_makes_a_classification_of_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smiles,IC50_nM\nC,5\nCC,>1000\nCCC,<7\n")
    options, _ = detected(str(path), read_whole(str(path)), {"active_below": "100nM"}, None, 0)
    assert options.kind == "classification" and options.threshold == "<100nM"
    with pytest.raises(InputError, match="--active-below"):
        detected(str(path), read_whole(str(path)), {"active_below": "100nM"}, "regression", 0)
