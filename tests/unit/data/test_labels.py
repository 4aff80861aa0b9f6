import math

import pytest

from graphormer_sepnorm.data.labels import TableOptions, read_labelled, read_weights, table_task, task_of_table
from graphormer_sepnorm.data.splits import Duplicate, Sizes
from graphormer_sepnorm.errors import InputError


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"targets": ()}, "--target-columns"),
        ({"targets": ("y", "y")}, "named twice: y, y"),
        ({"split": "column"}, "--split-column NAME go together"),
        ({"split": "time"}, "--split-column NAME go together"),
        ({"split_column": "fold"}, "--split-column NAME go together"),
        (
            {"split": "column", "split_column": "fold", "sizes": Sizes(0.5, 0.25, 0.25)},
            "--split-sizes does not go with",
        ),
        ({"balance": True}, "--balance is for --task classification"),
        ({"balance": True, "kind": "multiclass", "classes": ("a", "b")}, "--balance is for --task classification"),
        ({"loss": "mse", "kind": "classification"}, "--loss is for --task regression"),
        ({"metric": "rocauc"}, "'rocauc' does not score a regression: choose one of mae, rmse, r2"),
        ({"metric": "mae", "kind": "classification"}, "choose one of rocauc, prauc, accuracy, logloss"),
        ({"weights": (1.0, 2.0)}, "--target-weights has 2 numbers for 1 columns"),
        ({"weights": (0.0,)}, "--target-weights are above 0"),
        ({"weights": (1.0,), "kind": "multiclass", "classes": ("a", "b")}, "--target-weights is for several columns"),
    ],
)
def test_options_that_do_not_fit_together(options, sentence):
    with pytest.raises(InputError, match=sentence):
        TableOptions("table.csv", **{"targets": ("y",), **options})


def test_rows_that_cannot_be_used_are_skipped_with_their_number_and_reason(tmp_path):
    smiles = ["C", "CC", "CCC", "CCCC", "CCCCC", "CO", "CCO", "CN", "CCN", "CF"]
    rows = [
        f"{text},{number},{'train' if number < 6 else 'val' if number < 8 else 'test'}"
        for number, text in enumerate(smiles)
    ]
    rows += ["C(,1,train", "CCF,,train", "CCF,x,train", "CCF,1,fold3", "CCF"]
    path = tmp_path / "table.csv"
    path.write_text("smiles,y,fold\n" + "\n".join(rows) + "\n")
    labelled = read_labelled(TableOptions(str(path), ("y",), split="column", split_column="fold"), "ogb")
    assert [(row.number, row.smiles, row.labels, row.split) for row in labelled.rows] == [
        (number + 1, text, [float(number)], "train" if number < 6 else "val" if number < 8 else "test")
        for number, text in enumerate(smiles)
    ]
    reasons = {number: reason for number, _, reason in labelled.skipped}
    assert sorted(reasons) == [11, 12, 13, 14, 15]
    assert "not a valid SMILES" in reasons[11] and reasons[12] == "it has no label"
    assert reasons[13] == "y is 'x', not a number" and reasons[14] == "its split is 'fold3', not train, val or test"
    assert reasons[15] == "the row has 1 fields, the header has 3"


def test_rows_by_time_and_rows_without_one(tmp_path):
    path = tmp_path / "table.csv"
    times = [2009, 2001, 2002, 2003, 2004, 2005, 2006, 2007, 2008, 2000]
    rows = [f"{'C' * number},{number},{time}" for number, time in enumerate(times, 1)]
    path.write_text("\n".join(["smiles,y,year", *rows, "CO,1,soon", "CO,1,"]) + "\n")
    labelled = read_labelled(TableOptions(str(path), ("y",), split="time", split_column="year"), "ogb")
    assert [row.split for row in labelled.rows] == ["test", *["train"] * 7, "val", "train"]
    reasons = [reason for _, _, reason in labelled.skipped]
    assert reasons == [
        f"its time is {said}, neither a number nor a date such as 2024-05-31" for said in ("'soon'", "''")
    ]


def test_duplicates_are_found_among_the_rows_that_can_be_used(tmp_path):
    path = tmp_path / "table.csv"
    rows = [
        ("CCO", 0),
        ("C(", 0),
        ("OCC", 1),
        ("CN", 0),
        ("NC", 4),
        *(("C" * number, number % 5) for number in range(3, 9)),
    ]
    path.write_text("smiles,y\n" + "".join(f"{smiles},{label}\n" for smiles, label in rows))
    labelled = read_labelled(TableOptions(str(path), ("y",), split="random"), "ogb")
    assert labelled.duplicates == [
        Duplicate("LFQSCWFLJHTTHZ-UHFFFAOYSA-N", (0, 1), (0,)),
        Duplicate("BAVYZALUXZFZLV-UHFFFAOYSA-N", (2, 3), (0,)),
    ]


def table_of(tmp_path, columns: str, *labels: str) -> str:
    rows = [f"{'C' * number},{label}" for number, label in enumerate(labels, 1)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join([f"smiles,{columns}", *rows]) + "\n")
    return str(path)


def test_bounds_are_no_labels_and_are_kept_as_text(tmp_path):
    labels = ["1.5", "<5", ">= 10", '"<2,5"', "<", "6", "7", "8", "9", "10"]
    path = table_of(tmp_path, "y", *labels)
    labelled = read_labelled(TableOptions(path, ("y",), split="random"), "ogb")
    found = {row.number: (row.labels[0], row.bounds) for row in labelled.rows}
    assert found[1] == (1.5, {}) and math.isnan(found[2][0])
    assert [found[number][1] for number in (2, 3, 4)] == [{0: "<5.0"}, {0: ">10.0"}, {0: "<2.5"}]
    assert [(number, reason) for number, _, reason in labelled.skipped] == [(5, "y is '<', a bound without a number")]


def test_commas_are_decimal_points_where_columns_are_not_divided_by_them(tmp_path):
    path = tmp_path / "table.csv"
    rows = [f"{'C' * number};{number},234" for number in range(1, 11)]
    path.write_text("\n".join(["smiles;y", *rows]) + "\n")
    labelled = read_labelled(TableOptions(str(path), ("y",), split="random"), "ogb")
    assert [row.labels for row in labelled.rows[:2]] == [[1.234], [2.234]]
    path.write_text(path.read_text().replace(",", ".").replace(";", ",").replace("9.234", '"9,234"'))
    labelled = read_labelled(TableOptions(str(path), ("y",), split="random"), "ogb")
    assert [reason for _, _, reason in labelled.skipped] == ["y is '9,234': write 9234 or 9.234"]


def test_several_classes_are_a_column_each(tmp_path):
    path = table_of(tmp_path, "y", "Low", "high", "mid", "", *["low", "high", "mid"] * 4)
    guess = task_of_table(path, ("y",))
    assert (guess.kind, guess.classes) == ("multiclass", ("high", "Low", "mid"))
    options = TableOptions(path, ("y",), guess.kind, classes=guess.classes, split="random")
    labelled = read_labelled(options, "ogb")
    assert [row.labels for row in labelled.rows[:3]] == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert [(number, reason) for number, _, reason in labelled.skipped] == [(4, "it has no label")]
    task = table_task(options)
    assert (task.kind, task.targets, task.metric) == ("multiclass", ("y_high", "y_Low", "y_mid"), "rocauc")


def test_a_task_has_the_metric_loss_and_weights_that_are_asked_for():
    task = table_task(TableOptions("t.csv", ("a", "b"), metric="r2", loss="mse", weights=(1.0, 0.5)))
    assert (task.metric, task.loss, task.weights) == ("r2", "mse", (1.0, 0.5))
    assert table_task(TableOptions("t.csv", ("a",), "classification")).metric == "rocauc"


def test_weights_are_numbers():
    assert read_weights("1,2, 0.5") == (1.0, 2.0, 0.5) and read_weights(None) == ()
    with pytest.raises(InputError, match=r"give a number for each column, such as 1,2,0\.5"):
        read_weights("1;2")


def test_a_task_that_is_asked_for_needs_no_look_at_the_table():
    assert task_of_table("no such file", ("y",), "regression").kind == "regression"


def test_rows_have_no_salts_if_the_featurizer_strips_them(tmp_path):
    path = tmp_path / "table.csv"
    rows = ["CCO.[Na+],1", "OCC,2", *(f"{'C' * number}.Cl,{number}" for number in range(3, 12))]
    path.write_text("\n".join(["smiles,y", *rows]) + "\n")
    labelled = read_labelled(TableOptions(str(path), ("y",), split="random"), "mol-without-salts")
    assert [row.smiles for row in labelled.rows[:3]] == ["CCO", "OCC", "CCC"]
    assert [duplicate.rows for duplicate in labelled.duplicates] == [(0, 1)]
