"""A report as a whole, and that on a cross-validation of two folds, by hand."""

import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.interfaces.commands.sentences import on_left_out
from graphormer_sepnorm.report.reported import Trained as Whole
from graphormer_sepnorm.report.sections import SECTIONS
from graphormer_sepnorm.report.write import facts_out_of_fold, pooled, predicted_together, report_folds, rows_of_folds
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.fit import FittedTable
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.model import Stacked, TableModel
from graphormer_sepnorm.tables.labels import LabelledRow, LabelledTable
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.splits import MoleculeStructure, Structures
from tests.table_models import Trained

WITHOUT = SimpleNamespace(models=[])  # a member without networks
TITLES = (
    "Scores", "Predictions", "Learning curve", "Data and split", "Intervals", "Distance to the training molecules",
    "Worst predictions", "Atom contributions", "Training", "How to use the model",
    "Reproduce", "Glossary",
)  # fmt: skip


def test_a_report_has_every_section_in_its_order(trained: Trained):
    report = trained.run.report.read_text()
    assert tuple(re.findall("<h2>(.*)</h2>", report)) == TITLES
    assert len(TITLES[:-1]) + 5 == len(SECTIONS), (
        "no two of these molecules are matched pairs or similar, or replicates, and there are no times or conditions"
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


def fold(mae: float | None, coverage: float | None = 0.9, n: int = 60) -> dict:
    scores = {"stack": {"mae": mae}, "forest": {"mae": 0.75}, "mean": {"mae": 2.0}}
    trust = {"coverage": {"0.9": {"a": coverage}}, "mean_width": {"0.9": {"a": 2.0}}}
    return {"targets": {"a": {"n": n, "scores": scores}}, "trust": trust}


def reported(path: Path, results: list[dict], lines: list, kind: str = "regression", names=None, **options) -> str:
    """The report on folds with these results and predictions."""
    task = replace(TASK, kind=kind, metric="mae" if kind == "regression" else "rocauc", mean=(), std=())
    rows = []
    for number, smiles, split, text, _ in lines[1:]:
        bounds, label = {0: text} if text[:1] in ("<", ">") else {}, [float(text) if text[:1].isdigit() else np.nan]
        rows.append(LabelledRow(int(number), smiles, label, split, bounds=bounds))
    smiles = [row.smiles for row in rows]
    table = LabelledTable(rows, structures=Structures(map(MoleculeStructure, *[smiles] * 3)), names=names or {})
    together = predicted_together(task, lines)
    result = {"metric": task.metric, "value": 0.5, **pooled(results, together)}
    chosen = TableOptions("a.csv", ("a",), kind, **{"split": "random", "folds": 2, **options})
    report_folds(RunFolder(path), chosen, results, table, result, together)
    return (path / "report.html").read_text()


def test_the_report_has_the_mean_and_each_fold(tmp_path):
    report = reported(tmp_path, [fold(0.4), fold(0.6, n=59)], LINES, title="Kinase & friends")
    assert '<p class="value">0.500 <small>mean absolute error (MAE)</small></p>' in report
    assert "<h1>Kinase &amp; friends</h1>" in report
    assert "This is the mean of 2 folds, which range from 0.400 to 0.600 (standard deviation 0.141)." in report
    assert "All folds together: 0.250. On 1 out-of-fold label." in report
    assert "a, all folds together<" in report and "<h3>row 1, fold-0</h3>" in report
    assert '<p class="value">90 % <small></small></p>' in report
    assert "3 molecules in 2 folds (random, seed 0)" in report and "--final in place of --folds" in report
    cells = re.findall(r"<td[^>]*>(.*?)</td>", report)
    assert cells[:5] == ["fold-0", "60 labels", "0.400", "0.750", "2.000"] and cells[6] == "59 labels"
    titles = re.findall("<h2>(.*)</h2>", report)
    assert titles == ["Scores", "Predictions", "Data", "Intervals", "Worst predictions", "Reproduce", "Glossary"]


def test_a_fold_without_a_score_is_named_on_the_card(tmp_path):
    report = reported(tmp_path, [fold(0.4), fold(None), fold(0.6)], LINES)
    assert '<p class="value">0.500 ' in report and "No score: fold-1" in report
    assert '<p class="value">0.250 ' in reported(tmp_path, [fold(0.4), fold(None)], LINES), "that of all folds together"


def test_folds_of_classes_have_the_sections_of_every_report(tmp_path):
    """Ten of twenty labels are 1, of which nine are predicted as 1; the mean squared error is 0.04."""
    pairs = [("1", "0.8")] * 9 + [("1", "0.2")] + [("0", "0.2")] * 10
    lines = [LINES[0], *([str(row), "C", f"fold-{row % 2}", *pair] for row, pair in enumerate(pairs, 1))]
    scores = {"stack": {"rocauc": 0.9}, "mean": {"rocauc": 0.5}}
    trust = {"set_coverage": {"0.9": {"a": 0.5}}, "one_class": {"0.9": {"a": 0.25}}}
    results = [{"targets": {"a": {"n": n, "scores": scores}}, "trust": trust} for n in (10, 10)]
    report = reported(tmp_path, results, lines, "classification")
    titles = re.findall("<h2>(.*)</h2>", report)
    assert titles == ["Scores", "Predictions", "Data", "Calibration", "Worst predictions", "Reproduce", "Glossary"]
    assert "0.90 (9 of 10)" in report and "a: ROC curve" in report and "25 % of the sets have one class" in report
    found = pooled(results, predicted_together(replace(TASK, kind="classification", metric="rocauc"), lines))["trust"]
    assert found["brier"]["after"]["a"] == pytest.approx((19 * 0.04 + 0.64) / 20)
    assert "Only 50 % of the 20 molecules of a have their class in their 90 % set" in report


def test_too_low_a_coverage_of_all_folds_is_said(tmp_path):
    """Of 20 labels, 12 in a fold with a coverage of 0.75 and 8 in one with 0.5: 0.65."""
    lines = [LINES[0], *([str(row), "C", "fold-0", str(row), "1"] for row in range(20))]
    results = [fold(0.4, 0.75, 12), fold(0.6, 0.5, 8)]
    trust = pooled(results, predicted_together(TASK, lines))["trust"]
    assert trust["coverage"]["0.9"]["a"] == pytest.approx(0.65) and trust["mean_width"] == {"0.9": {"a": 2.0}}
    whole = pooled([fold(0.4), fold(0.6, None, 20)], predicted_together(TASK, lines))["trust"]["coverage"]
    assert whole == {"0.9": {"a": None}}, "a fold without intervals"
    said = "Only 65 % of the 20 out-of-fold labels of a are inside their 90 % intervals"
    assert said in reported(tmp_path, results, lines)


def test_similarities_of_all_folds_are_counted(tmp_path):
    bins = [[{"from": 0.0, "to": 0.3, "n": n, "error": error}] for n, error in ((1, 0.5), (3, 0.1), (0, None))]
    facts = [{"unfamiliar": 1, "compared": 4, "error_by_similarity": part} for part in bins]
    results = [fold(0.4) | {"trust": part} for part in facts]
    trust = pooled(results, predicted_together(TASK, LINES))["trust"]
    assert (trust["unfamiliar"], trust["compared"]) == (3, 12)
    (found,) = trust["error_by_similarity"]
    assert (found["n"], found["error"]) == (4, pytest.approx(0.2))
    assert "3 molecules get a warning" in reported(tmp_path, results, LINES), "there is no test set"


def test_the_tested_rows_of_all_folds_are_in_the_order_of_the_table():
    rows = [LabelledRow(number, "C" * number, [0.0]) for number in (1, 2, 3)]
    smiles = [row.smiles for row in rows]
    table = LabelledTable(rows, structures=Structures(map(MoleculeStructure, smiles, smiles, smiles)))
    found = rows_of_folds(
        [table.with_splits(splits) for splits in (["train", "test", "train"], ["test", "train", "test"])]
    )
    assert [(row.number, row.split) for row in found.rows] == [(1, "fold-1"), (2, "fold-0"), (3, "fold-1")]
    assert found.structures.keys == smiles


def test_bounds_of_all_folds_together_are_scored(tmp_path):
    """Labels 1, <5 and >3, predicted as 4, 4 and 2: 1 bound is right; the only certain order, 1 < 3, is not."""
    header, labels = LINES[0], (("1", "4"), ("<5", "4"), (">3", "2"))
    lines = [header, *([str(row), "C", f"fold-{row % 2}", *pair] for row, pair in enumerate(labels))]
    results = [fold(0.4) | {"censored": {"a": 1}}, fold(0.6) | {"censored": {"a": 1}}]
    found = pooled(results, predicted_together(TASK, lines))
    scores = found["targets"]["a"]["bounds"]["stack"]
    assert found["censored"] == {"a": 2} and (scores["bounds"], scores["right_side"]) == (2, 0.5)
    assert scores["concordance"] == 0 and scores["log_likelihood"] < 0
    report = reported(tmp_path, results, lines)
    assert "2 more labels are bounds: 50 % predicted on the right side." in report and report.count("<polygon") == 2
    assert "<th>concordance</th>" in report.replace(' scope="col"', "")
    *_, said = on_left_out({"metric": "mae", **found, "trust": {}})
    assert said.startswith("2 bounds among the labels of a") and said.endswith(": 1")


def test_molecules_that_a_fold_was_trained_on_are_counted(tmp_path):
    names = ("n", "tested_in_training", "tested_related_to_training")
    known = [dict(zip(names, numbers, strict=True)) for numbers in ((60, 2, 1), (20, 9, 0))]
    results = [fold(0.4, coverage) | numbers for coverage, numbers in zip((0.9, None), known, strict=True)]
    together = predicted_together(TASK, LINES)
    assert pooled(results, together).items() >= dict(zip(names, (80, 11, 1), strict=True)).items()
    assert pooled(results[:1], together).items() >= known[0].items()
    assert "n" not in pooled([results[0], fold(0.6)], together)
    assert "12 of 80 rows have" in reported(tmp_path, results, LINES)


def test_large_folds_count_more_in_the_score_of_all_labels_together(tmp_path):
    """Errors of 0.5 in a fold of one label and of 0.2 in a fold of two: a mean of 0.35, and of 0.3 over the labels."""
    header, lines = LINES[0], (("1", "0", "2", "2.5"), ("2", "1", "2", "2.2"), ("3", "1", "4", "4.2"))
    lines = [header, *([row, "C", f"fold-{fold}", y, predicted] for row, fold, y, predicted in lines)]
    report = reported(tmp_path, [fold(0.5, n=1), fold(0.2, n=2)], lines)
    assert '<p class="value">0.350 <small>mean absolute error (MAE)</small></p>' in report
    assert "All folds together: 0.300. 95 % interval 0.200 to 0.500, on 3 out-of-fold labels." in report


def test_the_best_of_all_folds_together_are_looked_for(tmp_path):
    """Of 30 labels, the 3 highest are predicted highest, and 2 of the 3 lowest lowest."""
    numbers = [*range(30)]
    numbers[2], numbers[9] = 9, 2
    rows = [[str(row), "C", f"fold-{row % 2}", str(row), str(value)] for row, value in enumerate(numbers)]
    report = reported(tmp_path, [fold(0.4), fold(0.6)], [LINES[0], *rows])
    assert "2 are among the 3 lowest; 0.3 by chance." in report and 'class="verdict">Ranks well' in report


def test_the_worst_predictions_are_named_with_their_facts(tmp_path):
    lines = [LINES[0], ["1", "CC", "fold-0", "5.0", "5.5"], ["2", "CCO", "fold-1", "1.5", "3.5"]]
    report = reported(tmp_path, [fold(0.4), fold(0.6)], lines, names={1: "ethane"})
    assert re.findall("<h3>(.*, fold.*)</h3>", report) == ["row 2, fold-1", "ethane, fold-0"]
    assert [float(text) for text in re.findall("<dd>([0-9.]*)</dd>", report)] == [1.5, 3.5, 2.0, 5.0, 5.5, 0.5]
