"""What the sections of a report say, by hand; the whole of one in ``test_write``."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.report.sections import (
    Reported,
    comparison_words,
    pairs_section,
    rows_of,
    scores_grid,
    shown,
    split_words,
    summary,
    trust_section,
    use_section,
    weight_words,
)
from graphormer_sepnorm.tables.labels import TableOptions
from graphormer_sepnorm.tasks import TASKS


def page(result: dict, kind: str = "regression", folder: Path = Path("run"), metric: str | None = None) -> Reported:
    """A report of which nothing is there but the result."""
    task = TaskConfig(kind, TASKS[kind].find_metric(metric), ("a", "b"))
    return Reported(RunFolder(folder), None, None, SimpleNamespace(task=task, result=result), None)


def test_numbers_are_shown_with_four_digits():
    assert [shown(value) for value in (1.23456, 0.0, None, float("nan"))] == ["1.235", "0", *["not defined"] * 2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"split": "scaffold", "seed": 3}, "scaffold, 80:10:10, seed 3"),
        ({"split": "column", "split_column": "part"}, "the column part"),
        ({"split": "random", "seed": 1, "folds": 5}, "random into 5 folds, one of which is the test set here, seed 1"),
        ({"split": "time", "split_column": "day"}, "the times in the column day, 80:10:10"),
    ],
)
def test_a_split_in_words(options, words):
    assert split_words(TableOptions("a.csv", ("a",), **options)) == words


@pytest.mark.parametrize(
    ("metric", "ours", "forest", "words"),
    [
        ("mae", 0.5, 0.4, "is 0.5. A random forest trained on the same data scores 0.4, which is better."),
        ("mae", 0.5, 0.6, "is 0.5. A random forest trained on the same data scores 0.6."),
        ("rocauc", 0.5, 0.6, "is 0.5. A random forest trained on the same data scores 0.6, which is better."),
        ("rocauc", 0.5, None, "the ROC-AUC of its predictions is 0.5."),
    ],
)
def test_the_forest_is_said_to_be_better_where_it_is(metric, ours, forest, words):
    result = {"metric": metric, "value": ours, "n": 3}
    if forest is not None:
        result["baseline"] = {"random_forest": {metric: forest}}
    kind = "regression" if metric == "mae" else "classification"
    assert summary(page(result, kind)).endswith(words)


def test_the_scores_of_a_target_stand_with_their_interval():
    facts = {
        "n": 9,
        "scores": {"stack": {"mae": 0.5, "r2": None}, "mean": {"mae": 1.0, "r2": 0.0}},
        "interval": {"stack": [0.4, 0.61234], "mean": None},
        "against_forest": {"difference": -0.1, "interval": [-0.2, 0.05]},
    }
    grid = scores_grid("a", facts, "mae", ("mae", "r2"))
    assert grid.rows == (
        ("prediction", "0.5", "not defined", "0.4 to 0.6123"),
        ("mean of the training labels", "1", "0", "not defined"),
    )
    assert grid.header[-1] == "95 % interval of the MAE" and grid.words == "a, 9 labels"
    (words,) = comparison_words("a", "mae", facts)
    assert words == "a: the MAE of the prediction minus that of the forest is -0.1 (95 % interval -0.2 to 0.05)."
    alone = {
        "n": 1,
        "scores": {"stack": {"mae": 0.5}},
        "warning": "only 1 test molecule has a label: its error is not a score",
    }
    assert comparison_words("a", "mae", alone) == ["a: only 1 test molecule has a label: its error is not a score."]
    assert scores_grid("a", alone, "mae", ("mae",)).header == ("", "MAE")


def test_weights_in_words():
    assert weight_words({"kernel": {"a": 0.25, "b": 0.5}, "forest": {"a": 0.1, "b": 0.1}}) == (
        "kernel 0.25 to 0.50, forest 0.10"
    )


def test_what_is_not_calibrated_is_said_for_its_own_reason():
    def words(kind: str) -> str:
        return trust_section(page({"trust": {"calibrated_by": "validation molecules"}}, kind)).words[0]

    assert words("multiclass") == "Multiclass probabilities are not calibrated and have no intervals."
    assert words("regression") == "No intervals: a target has no labels among the validation molecules."


def test_pairs_of_the_rows_that_were_learnt_from(tmp_path):
    """Chlorine in place of hydroxyl adds 1; ethanol is written twice, with unlike numbers."""
    rests = ["c1ccccc1CCC{}", "c1ccncc1CCC{}", "C1CCCCC1CNC{}"]
    smiles = [rest.format(part) for part in ("O", "Cl") for rest in rests] + ["CCO", "OCC"]
    labels = [1, 2, 3, 2, 3, 4, 7, 9]
    lines = [
        f"{row},{text},{'train' if row % 2 else 'val'},{label},0"
        for row, (text, label) in enumerate(zip(smiles, labels, strict=True))
    ]
    (tmp_path / "table.csv").write_text(
        "\n".join(["row,smiles,split,target a,target b", *lines, "9,C,test,99,0"]) + "\n"
    )
    found = pairs_section(page({}, folder=tmp_path))
    (grid,) = (grid for grid in found.grids if grid.words == "a")
    assert ("O[*:1]", "Cl[*:1]", "+1", "0", "3") in grid.rows
    assert [molecule.smiles for molecule in found.molecules[:2]] == ["CCO", "OCC"]
    assert found.molecules[0].facts == (("a", "7"), ("similarity of the pair", "1.00"))
    assert pairs_section(page({}, "classification", tmp_path)) is None


def test_rows_are_counted_without_header_and_across_lines(tmp_path):
    (tmp_path / "skipped.csv").write_text('row,smiles,error\n1,"C\nC",bad\n2,D,bad\n')
    assert rows_of(tmp_path / "skipped.csv") == 2


def test_commands_can_be_copied_whatever_the_folder_is_called(tmp_path):
    coverage = {"0.5": {"a": 0.5}, "0.8": {"a": 0.8}, "0.9": {"a": None}}
    found = use_section(page({"trust": {"coverage": coverage}}, folder=tmp_path / "it's mine"))
    predict, evaluate, code = found.commands
    folder = f"'{tmp_path}/it'\"'\"'s mine'"
    assert predict == f"graphormer-sepnorm predict {folder} molecules.csv -o predictions.csv --interval 0.8 --domain"
    assert evaluate == f"graphormer-sepnorm evaluate {folder}"
    compile(code, "report", "exec")
    assert "interval=0.8" in code
    assert "--interval" not in use_section(page({"trust": {}}, folder=tmp_path)).commands[0]
