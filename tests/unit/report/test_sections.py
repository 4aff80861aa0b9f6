"""The table in words, the curves of networks and what to do with the model, by hand."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from graphormer_sepnorm.config import config_to_json
from graphormer_sepnorm.predict.classes import ClassSets
from graphormer_sepnorm.report.sections import (
    conditions_section,
    data_section,
    repeatability_section,
    training_section,
    use_section,
)
from graphormer_sepnorm.runs.folder import Parts, RunFolder
from graphormer_sepnorm.system.progress import AS_LINES
from graphormer_sepnorm.table_model.features import ConditionColumn
from graphormer_sepnorm.tables import remarks
from graphormer_sepnorm.tables.labels import LabelledRow, LabelledTable
from graphormer_sepnorm.tables.splits import Duplicate, MoleculeStructure, Structures
from tests.tiny import tiny_model
from tests.unit.report.conftest import fitted, reported, table


def test_commands_can_be_copied_whatever_the_folder_is_called(tmp_path, monkeypatch):
    coverage = {"0.5": {"a": 0.5}, "0.8": {"a": 0.8}, "0.9": {"a": None}}
    run = RunFolder(tmp_path / "it's mine")
    predict, suggest, explain, serve, evaluate, code = used({"trust": {"coverage": coverage}}, run=run)
    folder = f"'{tmp_path}/it'\"'\"'s mine'"
    assert predict == f"graphormer-sepnorm predict {folder} molecules.csv -o predictions.csv --interval 0.8 --domain"
    assert suggest == f"graphormer-sepnorm suggest {folder} molecules.csv --target a -n 50 -o next.csv"
    assert explain == f'graphormer-sepnorm explain {folder} "c1ccccc1O" -o atoms.svg'
    assert serve == f"graphormer-sepnorm serve {folder}"
    assert evaluate.startswith(f"graphormer-sepnorm evaluate {folder} ")
    compile(code, "report", "exec")
    assert "interval=0.8" in code
    assert "--interval" not in used({"trust": {}})[0]
    monkeypatch.setenv(AS_LINES, "1")
    assert used({"trust": {}}) == [], "the page has buttons"


def used(result: dict, *task, columns: tuple[str, ...] = (), trust: dict | None = None, **parts) -> list[str]:
    """The commands and the code to copy."""
    known = {"conditions": SimpleNamespace(columns=columns), "members": {"kernel": None}}
    page = reported(result, *task, fitted=fitted([[1.0]], trust=trust or {}, model=known), **parts)
    return [text for _, text in use_section(page).commands]


CONDITIONS = (ConditionColumn("pH", mean=7.4), ConditionColumn("solvent", words=("", "DMSO", "water")))


@pytest.mark.parametrize(("columns", "explained"), [((), True), (CONDITIONS, False)])
def test_one_molecule_is_explained_only_without_conditions(columns, explained):
    commands = used({"trust": {}}, "regression", ("a",), columns=columns)
    assert any(" explain " in command for command in commands) == explained
    assert commands[-1].endswith("domain=True))" if explained else "conditions={'pH': '7.4', 'solvent': 'DMSO'}))")
    assert not any("--target" in command for command in commands), "there is one target"


@pytest.mark.parametrize("sets", [None, ClassSets(np.zeros((1, 1, 2)))])
def test_a_level_is_given_for_classes_with_sets(sets):
    predict, *_, code = used({"trust": {}}, "classification", ("a",), trust={"class_sets": sets})
    assert ("--interval 0.9" in predict) == ("interval=0.9" in code) == (sets is not None)


def test_the_curves_of_the_networks_are_drawn_from_their_metrics(tmp_path):
    run = RunFolder(tmp_path)
    run.begin_parts(Parts("model", 2))
    folder = run.member(0).path
    folder.mkdir()
    lines = [{"epoch": epoch, "train_loss": 4 / epoch, "val_metric": 2} for epoch in (1, 2)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert training_section(reported({"members": ["networks"]}, run=run)).words[0].startswith("Orange: ")
    run.member(0).config.write_text(config_to_json(tiny_model()[1]))
    section = training_section(reported({"members": ["kernel", "networks"]}, run=run))
    assert re.match(r"Each network: \d+ epochs, batches of \d+, .+, seed 0\. Orange: ", section.words[0])
    (chart,) = section.charts
    assert {kind: y.tolist() for kind, (_, y) in chart.lines.items()} == {"mean": [4, 2], "trend": [2, 2]}
    assert training_section(reported({"members": ["kernel"]}, run=run)) is None


NAN = float("nan")
SCORES = {"targets": {name: {"scores": {"stack": {"rmse": 0.8}}} for name in ("a", "b")}}


def replicated() -> LabelledTable:
    """Four measurements of two molecules, averaged to three rows: one molecule has two of each target but one."""
    alcohols = [("train", "CCO", [1.0, 0.0]), ("train", "OCC", [2.0, NAN])]
    measured = table(*alcohols, ("val", "CC", [5.0, 1]), ("val", "CC", [5.0, 7]), ("test", "C", [9.0, 9])).rows
    rows = [LabelledRow(1, "CCO", [1.5, 0.0], "train"), LabelledRow(3, "CC", [5.0, 4.0], "val"), measured[-1]]
    duplicates = [Duplicate("ethanol", (0, 1), ()), Duplicate("ethane", (2, 3), (1,))]
    structures = Structures(MoleculeStructure(smiles, "", smiles) for smiles in ("CCO", "CC", "C"))
    return LabelledTable(rows, [(6, "X", "bad")], duplicates, structures, measured, {1: "A1"})


def test_counts_are_those_of_the_command():
    section = data_section(reported(labelled=replicated()))
    assert section.grids[0].rows == (("train", "1", "1", "1"), ("val", "1", "1", "1"), ("test", "1", "1", "1"))
    assert section.words[1] == "5 usable rows of 3 molecules; rows of the same molecule are averaged."
    assert section.words[2].startswith("1 row was skipped, 17 % of the table: row 7 (bad); skipped.csv")
    assert section.words[3].startswith("2 molecules appear in several rows, 1 of them with labels that contradict")
    assert data_section(reported(labelled=table(("test", "C", [1, 2])))).words[1:] == ("1 usable row.",)


def test_molecules_of_a_class_are_counted():
    rows = [("train", "C", [1.0]), ("train", "CC", [0.0]), ("train", "CCC", [NAN]), ("val", "CO", [0.0])]
    page = reported(kind="classification", targets=("a",), labelled=table(*rows), class_names=(("no", "yes"),))
    grid = data_section(page).grids[0]
    assert grid.rows[:2] == (("train", "3", "2, 1 of them yes"), ("val", "1", "1, 0 of them yes"))
    rows = [("train", "C", [1.0, 0.0]), ("train", "CC", [1.0, 0.0]), ("test", "CCC", [0.0, 1.0])]
    grid = data_section(reported(kind="multiclass", targets=("low", "high"), labelled=table(*rows))).grids[0]
    assert grid.rows[0] == ("train", "2", "2", "0") and grid.rows[2] == ("test", "1", "0", "1")
    assert grid.header[2:] == ("y_low", "y_high")


def test_conditions_have_their_values_and_what_a_missing_one_is_read_as():
    cells = [("37.0", "b", "7.5"), ("25", "", "8"), ("37", "a", ""), ("25", "b", "7.25"), ("37", "b", "7")]
    rows = [LabelledRow(number, "C", [1.0], "train", conditions=each) for number, each in enumerate(cells)]
    table = LabelledTable([*rows, replace(rows[0], split="test", conditions=("99", "c", "99"))])
    page = reported(labelled=table, options={"feature_columns": ("T", "assay", "pH")})
    (grid,) = conditions_section(page).grids
    assert [row[:3] for row in grid.rows] == [
        ("T", "37 (3), 25 (2)", "0 of 5"), ("assay", "b (3), a (1)", "1 of 5"), ("pH", "7 to 8", "1 of 5")
    ]  # fmt: skip
    assert [row[3].split()[0] for row in grid.rows] == ["no", "a", "7.25,"]
    assert conditions_section(reported()) is None


def test_replicates_have_a_floor_and_stand_with_their_labels(monkeypatch):
    monkeypatch.setattr(remarks, "LEAST_REPEATED", 1)
    labelled = replicated()
    labelled.measured[1] = replace(labelled.measured[1], bounds={1: "<3.0"})
    page = reported(SCORES, labelled=labelled, fitted=fitted([[1.0, 1.0]]))
    section = repeatability_section(page)
    assert section.words[0] == "2 molecules appear in 4 rows."
    assert section.words[1].startswith("a: the standard deviation of measurements of one molecule is 0.500.")
    assert section.words[2].startswith("b: the standard deviation of measurements of one molecule is 4.24.")
    assert section.words[1].endswith("the RMSE of this model is 0.800.")
    (grid,) = section.grids
    assert grid.rows == (("row 3, row 4", "CC", "5, 5", "1, 7"), ("A1, row 2", "CCO", "1, 2", "0, <3"))


def test_classes_of_one_molecule_may_contradict_each_other():
    rows = (("train", "C", [0]), ("train", "C", [1]), ("test", "CC", [1]))
    labelled = table(*rows, duplicates=[Duplicate("C", (0, 1), (0,))])
    parts = {"kind": "classification", "targets": ("a",), "class_names": (("no", "yes"),)}
    section = repeatability_section(reported(labelled=labelled, **parts))
    assert section.words[1] == "Labels contradict each other in 1 of these cases: no model can fit both."
    assert section.grids[0].rows == (("row 1, row 2", "C", "no, yes"),)
    agreeing = table(("train", "C", [1]), ("train", "C", [1]), duplicates=[Duplicate("C", (0, 1), ())])
    section = repeatability_section(reported(labelled=agreeing, **parts))
    assert section.words[1] == "Their labels agree." and section.grids == ()


def test_censored_labels_are_counted_and_said_how_they_are_used():
    rows = [
        LabelledRow(1, "C", [NAN, 1.0], "train", bounds={0: "<5.096910013008056"}),
        LabelledRow(2, "CC", [NAN, NAN], "val", bounds={0: "<5.0", 1: ">9.0"}),
        LabelledRow(3, "CCC", [3.0, NAN], "test", bounds={1: ">7.0"}),
    ]
    trust = {f"coverage{name}": {"0.9": {"a": 0.5, "b": 0.75}} for name in ("", "_of_bounds", "_of_all")}
    page = reported({"trust": trust}, labelled=LabelledTable(rows), fitted=fitted([[NAN, 1.0]]))
    words = data_section(page).words
    assert words[-2].startswith("a: 2 training labels and 0 test labels are bounds, such as <5.10.")
    assert words[-1].startswith("b: 1 training label and 1 test label are bounds, such as >9.")
    assert "75 %" in words[-1] and "75 %" not in words[-2]
