"""The report on a cross-validation of two folds, by hand."""

from dataclasses import replace

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.interfaces.commands.train import left_out_lines
from graphormer_sepnorm.report.write import (
    folds_grid,
    parity_of,
    pooled,
    predicted_together,
    report_folds,
    worst_molecule,
)
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.tables.options import TableOptions

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
    assert (
        "Only 78 % of the 80 test labels of a are inside their 90 % intervals" in (tmp_path / "report.html").read_text()
    )


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
