import math

import pytest

from graphormer_sepnorm.data.labels import TableOptions, read_label, read_labelled
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
        ({"split_column": "fold"}, "--split-column NAME go together"),
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
