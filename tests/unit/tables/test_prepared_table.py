from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import RECIPES, task_config
from graphormer_sepnorm.tables.labels import LabelledRow, LabelledTable, TableOptions, read_labelled, table_task
from graphormer_sepnorm.tables.prepared_table import rows_of_split, table_dataset, write_labelled
from graphormer_sepnorm.tables.splits import Duplicate

NAN, INF = float("nan"), float("inf")
OPTIONS = TableOptions("table.csv", ("logp", "a, b"))
ROWS = [
    LabelledRow(1, "CCO", [1.5, float("nan")], "train"),
    LabelledRow(3, "c1ccccc1", [float("nan"), -2.0], "val"),
    LabelledRow(4, "CN", [0.1, 0.25], "train"),
]
LABELLED = LabelledTable(ROWS, [(2, "C(", "not a valid SMILES")], [Duplicate("KEY", (0, 2), (0, 1))])


@pytest.fixture
def folder(tmp_path):
    write(tmp_path)
    return tmp_path


def write(folder, labelled=LABELLED, featurizer="ogb", options=OPTIONS):
    config = task_config("table.csv", featurizer, table_task(options), RECIPES["slim"])
    write_labelled(folder, labelled, config, options)


def test_the_files_by_hand(folder):
    assert (folder / "table.csv").read_text() == (
        'row,smiles,split,target logp,"target a, b"\n1,CCO,train,1.5,\n3,c1ccccc1,val,,-2.0\n4,CN,train,0.1,0.25\n'
    )
    assert (folder / "skipped.csv").read_text() == "row,smiles,error,in_file\n2,C(,not a valid SMILES,row 3\n"
    assert (folder / "duplicates.csv").read_text() == (
        'molecule,row,smiles,split,conflicting targets,target logp,"target a, b",averaged in row\n'
        'KEY,1,CCO,train,"logp; a, b",1.5,,1\nKEY,4,CN,train,"logp; a, b",0.1,0.25,4\n'
    )


def test_each_measurement_names_the_row_that_it_was_averaged_in(tmp_path):
    """Rows 1, 3 and 4 are one molecule; row 4 has another condition, and is averaged only where that is not learnt."""
    lines = ["smiles,T,logp,fold", "CCO,1,1,test", "C,1,2,train", "OCC,1,3,test", "CCO,2,5,test", "CC,1,0,val"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    for conditions, repeated, labels in (((), [1, 3, 4], [3, 2, 0]), (("T",), [1, 3], [2, 2, 5, 0])):
        reading = {"split": "column", "split_column": "fold", "feature_columns": conditions}
        options = TableOptions(str(tmp_path / "a.csv"), ("logp",), **reading)
        labelled, out = read_labelled(options, "ogb"), tmp_path / f"{len(conditions)}"
        out.mkdir()
        write(out, labelled, options=options)
        found = pd.read_csv(out / "duplicates.csv")
        assert found["row"].tolist() == repeated and set(found["averaged in row"]) == {1}
        assert pd.read_csv(out / "table.csv")["target logp"].tolist() == labels


def test_names_and_weights_of_rows_are_kept(tmp_path):
    options = replace(OPTIONS, weight_column="w")
    rows = [replace(ROWS[0], weight=2.0), *ROWS[1:]]
    labelled = replace(LABELLED, rows=rows, names={1: "001", 2: "b,c", 3: "NA", 4: ""})
    write(tmp_path, labelled, options=options)
    assert (tmp_path / "table.csv").read_text().splitlines()[:3] == [
        'row,name,smiles,split,weight,target logp,"target a, b"',
        "1,001,CCO,train,2.0,1.5,",
        "3,NA,c1ccccc1,val,1.0,,-2.0",
    ]
    skipped = 'row,name,smiles,error,in_file\n2,"b,c",C(,not a valid SMILES,row 3\n'
    assert (tmp_path / "skipped.csv").read_text() == skipped
    assert (tmp_path / "duplicates.csv").read_text().splitlines()[1].startswith("KEY,1,001,CCO,train")
    assert rows_of_split(tmp_path / "table.csv", "train", ())[1] == ["001", ""]
    assert rows_of_split(tmp_path / "table.csv", "val", ())[1] == ["NA"]


def test_the_same_table_may_be_written_again_and_no_other(folder):
    write(folder)
    with pytest.raises(InputError, match="was begun with another table"):
        write(folder, LabelledTable(ROWS[:2]))
    assert "CN,train" in (folder / "table.csv").read_text()


@pytest.mark.parametrize("other", [{"featurizer": "mol"}, {"options": replace(OPTIONS, metric="rmse", loss="mse")}])
def test_a_table_for_another_task_or_features_is_refused_and_left_as_it_is(folder, other):
    before = (folder / "table.json").read_bytes()
    with pytest.raises(InputError, match="was begun for another task or with other features"):
        write(folder, **other)
    assert (folder / "table.json").read_bytes() == before
    (folder / "table.json").write_text("{")
    write(folder)
    assert (folder / "table.json").read_bytes() == before


@pytest.mark.parametrize(
    "damage",
    ["", "{", '{"task": 1}', '{"task": {"kind": "regression", "metric": "mae", "targets": ["y"]}, "featurizer": []}'],
)
def test_a_damaged_description_is_a_sentence(folder, damage):
    (folder / "table.json").write_text(damage)
    with pytest.raises(InputError, match=r"table\.json is missing or damaged"):
        table_dataset(folder / "table.csv")


BOUNDED = LabelledTable(
    [
        LabelledRow(1, "CCO", [NAN, 2.0], "train", bounds={0: "<1.5"}),
        LabelledRow(2, "CC", [0.5, NAN], "train"),
        LabelledRow(5, "CN", [NAN, NAN], "val", bounds={0: ">3.0", 1: "<0.25"}),
        LabelledRow(6, "CF", [1.0, 2.0], "test"),
    ]
)


def test_bounds_are_written_and_read_again(tmp_path):
    write(tmp_path, BOUNDED)
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines[1:4] == ["1,CCO,train,<1.5,2.0", "2,CC,train,0.5,", "5,CN,val,>3.0,<0.25"]
    dataset = table_dataset(tmp_path / "table.csv")
    train, val, test = (dataset.read(split, tmp_path) for split in ("train", "val", "test"))
    np.testing.assert_array_equal(train.y, np.array([[NAN, 2.0], [0.5, NAN]], np.float64))
    np.testing.assert_array_equal(train.bounds, np.array([[[-INF, 1.5], [-INF, INF]], [[-INF, INF]] * 2], np.float64))
    np.testing.assert_array_equal(val.y, np.full((1, 2), NAN, np.float64))
    np.testing.assert_array_equal(val.bounds, np.array([[[3.0, INF], [-INF, 0.25]]], np.float64))
    assert test.bounds is None and test.y.tolist() == [[1.0, 2.0]]


def test_a_name_behind_a_smiles_may_have_any_bytes(tmp_path):
    write(tmp_path, LabelledTable([LabelledRow(1, "CCO caf\udce9", [1.0, 2.0], "train")]))
    assert rows_of_split(tmp_path / "table.csv", "train", ("logp",))[0] == [[1, "CCO caf?", "train", "1.0"]]
    assert len(table_dataset(tmp_path / "table.csv").read("train", tmp_path)) == 1
