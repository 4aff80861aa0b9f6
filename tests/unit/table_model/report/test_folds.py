"""The report on a cross-validation of two folds, by hand."""

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.report.folds import parity_charts, pooled, report_folds, scores_grid
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


def test_the_report_has_the_mean_and_each_fold(tmp_path):
    options = TableOptions("a.csv", ("a",), split="random", folds=2)
    report_folds(RunFolder(tmp_path), TASK, options, [fold(0.4), fold(0.6)], LINES)
    report = (tmp_path / "report.html").read_text()
    assert '<p class="value">0.500 <small>MAE</small></p>' in report
    assert "Mean over 2 folds: 0.400 to 0.600, with a standard deviation of 0.141." in report
    assert "3 molecules in 2 folds (random, seed 0)" in report and "train it without --folds" in report
    assert report.count("<svg") == 1 and "Only" not in report


def test_scores_are_a_row_per_fold():
    grid = scores_grid(TASK, "a", [fold(0.4)["targets"]["a"], fold(0.6, n=59)["targets"]["a"]])
    assert grid.header == ("fold", "test labels", "prediction", "random forest", "mean training label")
    assert grid.rows == (("fold-0", "60", "0.400", "0.750", "2.000"), ("fold-1", "59", "0.600", "0.750", "2.000"))


def test_too_low_a_coverage_of_all_folds_is_said(tmp_path):
    results = [fold(0.4, 0.8), fold(0.6, 0.7, 20)]
    assert pooled(results) == {"trust": {"coverage": {"0.9": {"a": 0.775}}}, "targets": {"a": {"n": 80}}}
    assert pooled([fold(0.4), fold(0.6, None)]) == {}
    report_folds(RunFolder(tmp_path), TASK, TableOptions("a.csv", ("a",), folds=2), results, LINES)
    assert (
        "Only 78 % of the 80 test labels of a are inside their 90 % intervals" in (tmp_path / "report.html").read_text()
    )


def test_only_exact_labels_are_drawn():
    (chart,) = parity_charts(TASK, LINES)
    assert chart.svg.count("<circle") == 1 and "row 1, fold-0" in chart.svg
    assert not list(parity_charts(TaskConfig("classification", "rocauc", ("a",)), LINES))
