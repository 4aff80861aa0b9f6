import os
import pty
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.own_table import only_target, options_of_table
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


def test_the_column_is_named_once_it_is_detected_and_not_if_it_was_given(capsys):
    rows = [Row([str(number / 10), "C" * number], "C" * number) for number in range(1, 9)]
    content = WholeTable(["logD", "smiles"], rows, smiles_place=1)
    assert options_of_table("a.csv", content, {}, None, 0).targets == ("logD",)
    said = capsys.readouterr().err
    assert "predicting logD, the only column that is neither SMILES nor an id\n" in said
    options_of_table("a.csv", content, {"targets": ("logD",)}, None, 0)
    assert "predicting" not in capsys.readouterr().err
    rows = [Row([*row.fields, "train"], row.smiles) for row in rows]
    content = WholeTable(["logD", "smiles", "set"], rows, smiles_place=1)
    options_of_table("a.csv", content, {"split": "column", "split_column": "set"}, None, 0)
    assert "neither SMILES, nor an id, nor named by another option\n" in capsys.readouterr().err


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
def test_it_is_said_whether_a_column_splits_the_table(capsys, name, cells, given, said):
    rows = [Row([str(number / 10), "C" * number, cells], "C" * number) for number in range(1, 9)]
    content = WholeTable(["y", "smiles", name], rows, smiles_place=1)
    options_of_table("a.csv", content, {"targets": ("y",), **given}, None, 0)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("the column")]
    assert len(lines) == (said is not None) and all(said in line for line in lines)
    assert not any("leave" in line for line in lines), "no advice against what was asked for"


def test_a_split_column_that_is_missing_is_named_before_anything_is_said_of_it(capsys):
    content = WholeTable(["y", "smiles", "split"], [Row(["0.1", "C", "train"], "C")], smiles_place=1)
    given = {"targets": ("y",), "split": "column", "split_column": "splt"}
    with pytest.raises(InputError, match=r"^a.csv has no column 'splt'; did you mean 'split'\?"):
        options_of_table("a.csv", content, given, None, 0)
    assert not capsys.readouterr().err


@pytest.mark.parametrize(("columns", "given"), [(["smiles", "y"], {}), (["y", "drug"], {"smiles_column": "drug"})])
def test_the_column_of_molecules_is_no_target(columns, given):
    name = given.get("smiles_column", "smiles")
    with pytest.raises(InputError, match=f"^{name} is the column of molecules: name the columns to predict with --tar"):
        options_of_table("a.csv", table(*columns), {**given, "targets": ("y", name)}, None, 0)


def test_a_threshold_makes_a_classification_of_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smiles,IC50_nM\nC,5\nCC,>1000\nCCC,<7\n")
    options = options_of_table(str(path), read_whole(str(path)), {"active_below": "100nM"}, None, 0)
    assert options.kind == "classification" and options.threshold == "<100nM"
    with pytest.raises(InputError, match="--active-below"):
        options_of_table(str(path), read_whole(str(path)), {"active_below": "100nM"}, "regression", 0)


@contextmanager
def answering(text: str) -> Iterator[Callable[[], str]]:
    """Lets somebody at a terminal type an answer; gives what the terminal shows until now."""
    terminal, own = pty.openpty()
    os.write(terminal, text.encode())
    with (
        os.fdopen(own, "r", closefd=False) as typed,
        os.fdopen(own, "w") as shown,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", typed)
        patch.setattr(sys, "stderr", shown)

        def until_now() -> str:
            print("(end)", file=shown, flush=True)
            seen = b""
            while b"(end)" not in seen:
                seen += os.read(terminal, 10_000)
            return seen.decode()

        yield until_now
    os.close(terminal)


CONCENTRATIONS = WholeTable(
    ["smiles", "Ki_nM", "S"],
    [Row(["C" * (k + 1), f"{10**k}", f"<{k}"], "C" * (k + 1)) for k in range(6)],
    smiles_place=0,
)


@pytest.mark.parametrize(
    ("typed", "given", "scales", "asks"),
    [
        ("\n", {}, ("-log10 nM", ""), True),
        ("n\n", {}, (), True),
        ("", {"negative_log_molar": ("Ki_nM=uM",)}, ("-log10 uM", ""), False),
        ("", {"active_below": "100nM", "targets": ("Ki_nM",)}, (), False),
    ],
)
def test_somebody_at_a_terminal_is_asked_whether_to_learn_logarithms(typed, given, scales, asks):
    with answering(typed) as shown:
        options = options_of_table("a.csv", CONCENTRATIONS, {"targets": ("Ki_nM", "S")} | given, None, 0)
        assert options.scales == scales and ("Learn pKi?" in shown()) == asks


def test_nobody_is_asked_without_a_terminal():
    assert options_of_table("a.csv", CONCENTRATIONS, {"targets": ("Ki_nM", "S")}, None, 0).scales == ()
