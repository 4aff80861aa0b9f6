"""The terms of a report, by hand."""

from graphormer_sepnorm.report.glossary import TERMS, glossary, metric_words
from graphormer_sepnorm.report.page import Card, Grid, Section
from graphormer_sepnorm.tasks import METRICS


def test_only_the_terms_that_occur_are_explained():
    sections = [Section("Scores", ("An out-of-fold score.",), (Grid(("", "RMSE"), ()),))]
    (grid,) = glossary([Card("a", "0.5", "mean absolute error (MAE)", ("Intervals, not one.",))], sections).grids
    assert [term for term, _ in grid.rows] == ["MAE", "RMSE", "out of fold"]
    assert ("MAE", TERMS["MAE"]) in grid.rows


def test_every_metric_is_explained():
    assert {metric.title for metric in METRICS.values()} <= TERMS.keys()


def test_an_error_has_its_full_name():
    assert metric_words("mae") == "mean absolute error (MAE)" and metric_words("rocauc") == "ROC-AUC"
