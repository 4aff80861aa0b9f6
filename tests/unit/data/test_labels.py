import math

import pytest

from graphormer_sepnorm.data.labels import TableOptions, read_label, read_labelled
from graphormer_sepnorm.data.splits import Duplicate, Sizes
from graphormer_sepnorm.errors import InputError


@pytest.mark.parametrize(
    ("text", "kind", "label"),
    [
        (" 1.5 ", "regression", 1.5),
        ("-2e3", "regression", -2000.0),
        ("1", "classification", 1.0),
        ("False", "classification", 0.0),
        ("0.0", "classification", 0.0),
    ],
)
def test_labels_by_hand(text, kind, label):
    assert read_label(text, "y", kind) == label


@pytest.mark.parametrize("text", ["", "  ", "NA", "nan", "N/A", "null", "None"])
@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_missing_labels(text, kind):
    assert math.isnan(read_label(text, "y", kind))


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("high", "regression", "y is 'high', not a number"),
        ("inf", "regression", "y is 'inf', not a number"),
        ("2", "classification", "y is '2', not 0 or 1"),
        ("yes", "classification", "y is 'yes', not 0 or 1"),
    ],
)
def test_labels_that_a_task_cannot_have(text, kind, reason):
    with pytest.raises(InputError, match=reason):
        read_label(text, "y", kind)


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
