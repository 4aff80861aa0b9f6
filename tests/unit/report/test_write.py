"""A report as a whole, and that on a cross-validation of two folds, by hand."""

import json
import re
from dataclasses import replace
from html import escape
from types import SimpleNamespace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.interfaces.commands.train import left_out_lines
from graphormer_sepnorm.report.reported import Trained as Whole
from graphormer_sepnorm.report.sections import SECTIONS
from graphormer_sepnorm.report.write import (
    facts_out_of_fold,
    folds_grid,
    parity_of,
    pooled,
    predicted_together,
    report_folds,
    worst_molecule,
)
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.fit import FittedTable
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.model import Stacked, TableModel
from graphormer_sepnorm.tables.options import TableOptions
from tests.table_models import Trained

WITHOUT = SimpleNamespace(models=[])  # a member without networks
TITLES = (
    "Scores", "Predictions", "Learning curve", "Data and split", "Intervals", "Distance to the training molecules",
    "Worst predictions", "Atom contributions", "Training", "How to use the model",
    "Glossary",
)  # fmt: skip


def test_a_report_has_every_section_in_its_order(trained: Trained):
    report = trained.run.report.read_text()
    assert tuple(re.findall("<h2>(.*)</h2>", report)) == TITLES
    assert len(TITLES[:-1]) + 4 == len(SECTIONS), (
        "no two of these molecules are matched pairs or similar, or replicates, and there are no times"
    )
    facts, trust = trained.result["targets"]["a"], trained.result["trust"]
    for member in MEMBERS:
        assert f"only the {member}" in report and f"{facts['scores'][member]['mae']:.3f}" in report
    low, high = facts["interval"]["stack"]
    assert f"{low:.3f} to {high:.3f}" in report
    assert "mean training label" in report and f"{100 * trust['coverage']['0.5']['a']:.0f} %" in report
    assert "data:image/png" not in report
    tested = trained.labelled.of_split("test")
    for row in tested:
        assert report.count(f"<title>row {row.number}\n{escape(row.smiles)}\nmeasured ") == 2
    assert report.count(" % interval ") >= len(tested)


def test_the_learning_curve_is_kept(trained: Trained):
    curve = json.loads(trained.run.test.read_text())["learning_curve"]
    assert curve == trained.result["learning_curve"]
    learnt = 60 - trained.result["n"]
    assert curve["rows"][-1] == pytest.approx(learnt / 2, abs=1), "half of them are outside each of two folds"
    assert curve["targets"]["a"]["values"][-1] == pytest.approx(trained.result["out_of_fold"]["kernel"]["mae"])


def scores_of(fitted: FittedTable, labels: Labels, folds: Folds) -> dict:
    options = TableOptions("a.csv", ("a",))
    return facts_out_of_fold(Whole(None, fitted, None, labels, folds, None, options), {})["out_of_fold"]


def test_scores_out_of_fold_are_of_the_rows_that_were_predicted():
    y = np.array([[1.0], [2], [5]])
    member = np.array([[[np.nan], [3], [5]]])
    model = TableModel(TaskConfig("regression", "mae", ("a",)), "mol", {"kernel": WITHOUT}, np.ones((1, 1)))
    fitted = FittedTable(model, Stacked(member, member[0], member[0]), {})
    found = scores_of(fitted, Labels(model.task, y), Folds(np.array([-1, 0, 0])))
    assert found["kernel"]["mae"] == found["stack"]["mae"] == pytest.approx(0.5)
    bounds = np.array([[[-np.inf, np.inf]], [[-np.inf, 2]], [[-np.inf, np.inf]]])
    bounded = Labels(model.task, np.array([[1.0], [np.nan], [5]]), bounds)
    found = scores_of(fitted, bounded, Folds(np.array([-1, 0, 0])))
    assert found["stack"]["bounds"]["a"]["bounds"] == 1 and found["stack"]["bounds"]["a"]["right_side"] == 0
    assert found["kernel"]["bounds"] == found["stack"]["bounds"] and found["kernel"]["mae"] == 0


def test_the_only_member_of_a_model_of_several_classes_has_the_score_of_the_model():
    """Its predictions do not add up to 1, and rank the molecules differently as long as they do not."""
    y = np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]])
    member = np.array([[0.2, 0.1], [0.5, 0.5], [0.6, 0.1], [0.9, 0.8]])
    task = TaskConfig("multiclass", "rocauc", ("x", "y"))
    model = TableModel(task, "mol", {"kernel": WITHOUT}, np.ones((1, 2)))
    values = member / member.sum(axis=1, keepdims=True)
    fitted = FittedTable(model, Stacked(member[None], values, values), {})
    found = scores_of(fitted, Labels(task, y), Folds(np.array([0, 1, 0, 1])))
    assert found["kernel"] == found["stack"] and found["stack"]["rocauc"] == 1


TASK = TaskConfig("regression", "mae", ("a",), mean=(0.0,), std=(1.0,))
LINES = [
    ["row", "smiles", "split", "a", "a_predicted"],
    ["1", "CC", "fold-0", "1.5", "1.25"],
    ["2", "CCO", "fold-1", "<5", "4.0"],
    ["3", "C", "fold-1", "", "4.0"],
]


def fold(mae: float, coverage: float | None = 0.9, n: int = 60) -> dict:
    scores = {"stack": {"mae": mae}, "forest": {"mae": 0.75}, "mean": {"mae": 2.0}}
    return {"targets": {"a": {"n": n, "scores": scores}}, "trust": {"coverage": {"0.9": {"a": coverage}}}}


TOGETHER = predicted_together(TASK, [*LINES[:2], *LINES[3:]])


def test_the_report_has_the_mean_and_each_fold(tmp_path):
    options = TableOptions("a.csv", ("a",), split="random", folds=2, title="Kinase & friends")
    report_folds(RunFolder(tmp_path), TASK, options, [fold(0.4), fold(0.6)], LINES)
    report = (tmp_path / "report.html").read_text()
    assert '<p class="value">0.500 <small>mean absolute error (MAE)</small></p>' in report
    assert "<h1>Kinase &amp; friends</h1>" in report
    assert "This is the mean of 2 folds, which range from 0.400 to 0.600 (standard deviation 0.141)." in report
    assert "On all 1 label together: 0.250.</p>" in report
    assert "a, all folds together<" in report and "<h3>row 1, fold-0</h3>" in report
    assert '<p class="value">90 % <small></small></p>' in report
    assert "3 molecules in 2 folds (random, seed 0)" in report and "--final in place of --folds" in report
    assert report.count("<svg") == 1 and "Only" not in report


def test_scores_are_a_row_per_fold():
    grid = folds_grid(TASK, "a", [fold(0.4)["targets"]["a"], fold(0.6, n=59)["targets"]["a"]])
    assert grid.header == ("fold", "labels", "prediction", "forest", "mean training label")
    assert grid.rows == (("fold-0", "60", "0.400", "0.750", "2.000"), ("fold-1", "59", "0.600", "0.750", "2.000"))


def test_too_low_a_coverage_of_all_folds_is_said(tmp_path):
    results = [fold(0.4, 0.8), fold(0.6, 0.7, 20)]
    targets = {"targets": {"a": {"n": 80}}}
    assert pooled(results, TOGETHER) == {"trust": {"coverage": {"0.9": {"a": 0.775}}}, **targets}
    assert pooled([fold(0.4), fold(0.6, None, 20)], TOGETHER) == targets, "a fold without intervals"
    report_folds(RunFolder(tmp_path), TASK, TableOptions("a.csv", ("a",), folds=2), results, LINES)
    report = (tmp_path / "report.html").read_text()
    assert "Only 78 % of the 80 test labels of a are inside their 90 % intervals" in report


def test_bounds_of_all_folds_together_are_scored(tmp_path):
    """Labels 1, <5 and >3, predicted as 4, 4 and 2: 1 bound is right; the only certain order, 1 < 3, is not."""
    header, labels = LINES[0], (("1", "4"), ("<5", "4"), (">3", "2"))
    lines = [header, *([str(row), "C", f"fold-{row % 2}", *pair] for row, pair in enumerate(labels))]
    results = [fold(0.4) | {"censored": {"a": 1}}, fold(0.6) | {"censored": {"a": 1}}]
    found = pooled(results, predicted_together(TASK, lines))
    scores = found["targets"]["a"]["bounds"]["stack"]
    assert found["censored"] == {"a": 2} and (scores["bounds"], scores["right_side"]) == (2, 0.5)
    assert scores["concordance"] == 0 and scores["log_likelihood"] < 0
    report_folds(RunFolder(tmp_path), TASK, TableOptions("a.csv", ("a",), folds=2), results, lines)
    report = (tmp_path / "report.html").read_text()
    assert "2 more labels are bounds: 50 % predicted on the right side." in report
    assert "<th>concordance</th>" in report.replace(' scope="col"', "")
    (said,) = left_out_lines({"metric": "mae", **found, "trust": {}})
    assert said.startswith("2 bounds among the labels of a") and said.endswith(": 1")


def test_molecules_that_a_fold_was_trained_on_are_counted(tmp_path):
    names = ("n", "training_molecules", "training_families")
    known = [dict(zip(names, numbers, strict=True)) for numbers in ((60, 2, 1), (20, 9, 0))]
    results = [fold(0.4, coverage) | numbers for coverage, numbers in zip((0.9, None), known, strict=True)]
    found = {"n": 80, "training_molecules": 11, "training_families": 1, "targets": {"a": {"n": 120}}}
    assert pooled(results, TOGETHER) == found
    assert pooled(results[:1], TOGETHER).items() >= known[0].items()
    assert "n" not in pooled([results[0], fold(0.6)], TOGETHER)
    report_folds(RunFolder(tmp_path), TASK, TableOptions("a.csv", ("a",), folds=2), results, LINES)
    assert "12 of 80 rows have" in (tmp_path / "report.html").read_text()


def test_bounds_are_arrows():
    chart = parity_of(predicted_together(TASK, LINES), LINES, 0)
    assert chart.svg.count("<circle") == chart.svg.count("<polygon") == 1
    assert "row 1, fold-0" in chart.svg and "measured &lt;5.0\npredicted" in chart.svg
    assert parity_of(replace(TOGETHER, task=TaskConfig("classification", "rocauc", ("a",))), LINES, 0) is None


def test_large_folds_count_more_in_the_score_of_all_labels_together(tmp_path):
    """Errors of 0.5 in a fold of one label and of 0.2 in a fold of two: a mean of 0.35, and of 0.3 over the labels."""
    header, lines = LINES[0], (("1", "0", "2", "2.5"), ("2", "1", "2", "2.2"), ("3", "1", "4", "4.2"))
    lines = [header, *([row, "C", f"fold-{fold}", y, predicted] for row, fold, y, predicted in lines)]
    results = [fold(0.5, n=1), fold(0.2, n=2)]
    report_folds(RunFolder(tmp_path), TASK, TableOptions("a.csv", ("a",), folds=2), results, lines)
    report = (tmp_path / "report.html").read_text()
    assert '<p class="value">0.350 <small>mean absolute error (MAE)</small></p>' in report
    assert "On all 3 labels together: 0.300 (95 % interval 0.200 to 0.500)." in report


def test_the_best_of_all_folds_together_are_looked_for(tmp_path):
    """Of 30 labels, the 3 highest are predicted highest, and 2 of the 3 lowest lowest."""
    numbers = [*range(30)]
    numbers[2], numbers[9] = 9, 2
    rows = [[str(row), "C", f"fold-{row % 2}", str(row), str(value)] for row, value in enumerate(numbers)]
    found = pooled([fold(0.4), fold(0.6)], predicted_together(TASK, [LINES[0], *rows]))["targets"]["a"]["top"]
    assert {side: (top["n"], top["found"]) for side, top in found.items()} == {"highest": (3, 3), "lowest": (3, 2)}
    report_folds(RunFolder(tmp_path), TASK, TableOptions("a.csv", ("a",)), [fold(0.4), fold(0.6)], [LINES[0], *rows])
    report = (tmp_path / "report.html").read_text()
    assert "2 are among the 3 lowest; 0.3 by chance." in report and 'class="verdict">Ranks well' in report


def test_the_worst_predictions_are_named_with_their_facts():
    task = TaskConfig("regression", "mae", ("a", "b"), mean=(0.0, 0.0), std=(1.0, 10.0))
    header = ["row", "smiles", "split", "a", "b", "a_predicted", "b_predicted", "name"]
    lines = [
        header,
        ["1", "CC", "fold-0", "", "5", "1", "10", "ethane"],
        ["2", "CCO", "fold-1", "1.5", "", "3.5", "1", ""],
        ["3", "C", "fold-1", "<5", "", "4.0", "1", "methane"],
    ]
    first, second = (worst_molecule(predicted_together(task, lines), lines, row) for row in (1, 0))
    assert (first.name, second.name) == ("row 2, fold-1", "ethane, fold-0")
    assert first.facts == (("measured a", "1.5"), ("predicted a", "3.5"), ("error a", "2.0")), "decimals of the labels"
    assert second.facts[0] == ("measured b", "5") and second.picture is not None
