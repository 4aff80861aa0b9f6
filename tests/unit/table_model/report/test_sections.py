from pathlib import Path
from types import SimpleNamespace

import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.training.table_report import (
    forest_words,
    rows_of,
    shown,
    split_words,
    trust_section,
    use_section,
)

SIZES = {"train": 0.8, "val": 0.1, "test": 0.1}


def test_numbers_are_shown_with_four_digits():
    assert [shown(value) for value in (1.23456, 0.0, None, float("nan"))] == ["1.235", "0", *["not defined"] * 2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"split": "scaffold", "seed": 3, "split_column": None}, "scaffold, 80:10:10, seed 3"),
        ({"split": "column", "seed": 0, "split_column": "part"}, "the column part"),
        (
            {"split": "random", "seed": 1, "split_column": None, "folds": 5},
            "random into 5 folds, one of which is tested here, seed 1",
        ),
        ({"split": "time", "seed": 0, "split_column": "day"}, "the times in the column day, 80:10:10"),
    ],
)
def test_a_split_in_words(options, words):
    assert split_words({**options, "sizes": SIZES}) == words


@pytest.mark.parametrize(
    ("metric", "ours", "forest", "words"),
    [
        ("mae", 0.5, 0.4, "; a random forest alone has 0.4, which is better"),
        ("mae", 0.5, 0.6, "; a random forest alone has 0.6"),
        ("rocauc", 0.5, 0.6, "; a random forest alone has 0.6, which is better"),
        ("rocauc", 0.5, None, ""),
    ],
)
def test_the_forest_is_said_to_be_better_where_it_is(metric, ours, forest, words):
    result = {"metric": metric, "value": ours, "baseline": {"random_forest": {metric: forest}}}
    assert forest_words(result) == words
    assert forest_words({"metric": metric, "value": ours}) == ""


def test_what_is_not_calibrated_is_said_for_its_own_reason():
    def words(kind: str) -> str:
        task = TaskConfig(kind, TASKS[kind].find_metric(None), ("a", "b"))
        return trust_section(RunFolder(Path("run")), {"trust": {"calibrated_on": 3}}, SimpleNamespace(task=task)).words[
            0
        ]

    assert words("multiclass") == "Those of several classes are not calibrated, and have no intervals."
    assert words("regression") == "There are none: a target has no labels among the validation molecules."


def test_rows_are_counted_without_header_and_across_lines(tmp_path):
    (tmp_path / "skipped.csv").write_text('row,smiles,error\n1,"C\nC",bad\n2,D,bad\n')
    assert rows_of(tmp_path / "skipped.csv") == 2


def test_commands_can_be_copied_whatever_the_folder_is_called(tmp_path):
    coverage = {"0.5": {"a": 0.5}, "0.8": {"a": 0.8}, "0.9": {"a": None}}
    found = use_section(RunFolder(tmp_path / "it's mine"), {"trust": {"coverage": coverage}})
    predict, evaluate, code = found.commands
    folder = f"'{tmp_path}/it'\"'\"'s mine'"
    assert predict == f"graphormer-sepnorm predict {folder} molecules.csv -o predictions.csv --interval 0.8 --domain"
    assert evaluate == f"graphormer-sepnorm evaluate {folder}"
    compile(code, "report", "exec")
    assert "--interval" not in use_section(RunFolder(tmp_path), {"trust": {}}).commands[0]
