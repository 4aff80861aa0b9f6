import os
import pty
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.own_table import detected, on_better_scales, only_target
from graphormer_sepnorm.tables.formats.table import Row, WholeTable
from graphormer_sepnorm.tables.labels import read_whole


def table(*columns: str) -> WholeTable:
    names, row = ("smiles", "SMILES", "structure", "drug"), Row(["1" * (name != "comment") for name in columns], "C")
    return WholeTable(list(columns), [row], smiles_place=next(n for n, name in enumerate(columns) if name in names))


@pytest.mark.parametrize(
    ("columns", "given"),
    [
        (["smiles", "logD"], {}),
        (["compound_id", "logD", "SMILES"], {}),
        (["structure", "logD", "set"], {"smiles_column": "structure", "split_column": "set"}),
        (["smiles", "logD", "weight", "pH"], {"weight_column": "weight", "feature_columns": ("pH",)}),
        (["smiles", "batch", "logD"], {"id_column": "batch"}),
        (["Fragment ID", "structure", "logD", "comment"], {}),
    ],
)
def test_the_only_column_without_another_purpose_is_predicted(columns, given):
    assert only_target("a.csv", table(*columns), given) == ("logD",)


def test_several_columns_need_the_names_of_the_targets():
    with pytest.raises(InputError, match=r"\(the columns of a.csv: smiles, logD, logP\); see target_columns"):
        only_target("a.csv", table("smiles", "logD", "logP"), {})


@pytest.mark.parametrize("columns", [["smiles"], ["smiles", "id"]])
def test_a_table_without_another_column_has_nothing_to_predict(columns):
    sentence = f"^a.csv has no column to predict: its columns are {', '.join(columns)}$"
    with pytest.raises(InputError, match=sentence):
        only_target("a.csv", table(*columns), {})


def test_a_threshold_makes_a_classification_of_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smiles,IC50_nM\nC,5\nCC,>1000\nCCC,<7\n")
    options, _ = detected(str(path), read_whole(str(path)), {"active_below": "100nM"}, None, 0)
    assert options.kind == "classification" and options.threshold == "<100nM"
    with pytest.raises(InputError, match="--active-below"):
        detected(str(path), read_whole(str(path)), {"active_below": "100nM"}, "regression", 0)


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
        ("", {"negative_log_molar": ("S=uM",)}, ("", "-log10 uM"), False),
        ("", {"active_below": "100nM", "targets": ("Ki_nM",)}, (), False),
    ],
)
def test_somebody_at_a_terminal_is_asked_whether_to_learn_logarithms(typed, given, scales, asks):
    with answering(typed) as shown:
        options, _ = detected("a.csv", CONCENTRATIONS, {"targets": ("Ki_nM", "S")} | given, None, 0)
        assert on_better_scales(options, CONCENTRATIONS).scales == scales
        seen = shown()
        assert (seen.count("Learn pKi instead?"), seen.count("Ki_nM")) == ((1, 1) if asks else (0, 0))


def test_nobody_is_asked_without_a_terminal():
    options, _ = detected("a.csv", CONCENTRATIONS, {"targets": ("Ki_nM", "S")}, None, 0)
    assert on_better_scales(options, CONCENTRATIONS) is options
