"""The table of scores of a target and the weights in words, by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.report.scores import scores_grid, scores_section, weight_words
from graphormer_sepnorm.table_model.labels import Folds
from graphormer_sepnorm.table_model.model import Stacked
from graphormer_sepnorm.table_model.scores import columns_of
from tests.unit.report.conftest import reported

TASK = TaskConfig("regression", "mae", ("a",))


def scores(mae: float, r2: float | None = None) -> dict:
    return {"mae": mae, "rmse": 2 * mae, "r2": r2, "spearman": None}


FACTS = {
    "n": 9,
    "scores": {"stack": scores(0.5), "mean": scores(1.0, 0.0)},
    "interval": {"stack": [0.4, 0.61234], "mean": None},
}


def test_the_scores_of_a_target_stand_with_their_interval():
    found = scores(0.45, 0.9), "out of fold, on 90 training labels"
    grid = scores_grid("a", FACTS, TASK, "mean training label", found)
    assert grid.rows == (
        ("prediction", "0.500", "1.00", "not defined", "not defined", "0.400 to 0.612"),
        ("mean training label", "1.000", "2.00", "0.000", "not defined", "not defined"),
        ("prediction, out of fold, on 90 training labels", "0.450", "0.90", "0.900", "not defined", ""),
    )
    assert grid.header[-1] == "95 % interval of the MAE"
    grid = scores_grid("a", {"n": 1, "scores": {"stack": scores(0.5)}}, TASK, "", found)
    assert grid.header == ("", "MAE", "RMSE", "R2", "Spearman") and {len(row) for row in grid.rows} == {5}


def test_bounds_have_columns_also_out_of_fold():
    """Of the labels 1, 2 and >3, predicted as 1, 2 and 0, one of three orders is right, and no bound."""
    y, bounds = np.array([[1.0], [2], [np.nan]]), np.full((3, 1, 2), [-np.inf, np.inf])
    bounds[2, 0, 0] = 3
    values = np.array([[1.0], [2], [0]])
    parts = {"fitted": SimpleNamespace(out_of_fold=Stacked(values[None], values, values)), "folds": Folds(np.arange(3))}
    page = reported(targets=("a",), y=y, **parts)
    page = replace(page, labels=replace(page.labels, bounds=bounds))
    facts = FACTS | {"bounds": {"stack": {"right_side": 0.25, "concordance": 0.5}}}
    grid = scores_grid("a", facts, TASK, "mean", page.out_of_fold("a"))
    assert [row[-2:] for row in grid.rows] == [("25 %", "0.500"), ("", ""), ("0 %", "0.333")]
    assert {len(row) for row in grid.rows} == {len(grid.header)}


def test_a_metric_that_is_not_usually_reported_comes_first():
    known = {"logloss": 0.4, "rocauc": 0.8, "prauc": 0.7, "accuracy": 0.6}
    told = {"targets": {"a": {"n": 9, "scores": {"stack": known}}}, "weights": {"kernel": {"a": 1.0}}}
    y = np.array([[1.0], [0]])
    values = Stacked(np.array([y]), np.array([[0.75], [0.25]]), y)
    parts = {"fitted": SimpleNamespace(out_of_fold=values), "folds": Folds(np.arange(2))}
    (grid,) = scores_section(reported(told, "classification", ("a",), "logloss", y=y, **parts)).grids
    assert grid.header == ("", "log loss", "ROC-AUC", "PR-AUC", "accuracy")
    assert grid.rows == (
        ("prediction", "0.400", "0.800", "0.700", "0.600"),
        ("prediction, out of fold, on 2 training labels", "0.288", "1.000", "1.000", "1.000"),
    )


def test_a_single_member_has_no_row_of_its_own_and_no_weight():
    known = {"stack": scores(0.5), "kernel": scores(0.5), "mean": scores(1.0)}
    facts, found = {"n": 9, "scores": known}, (scores(0.5), "on 8 validation labels")
    assert [row[0] for row in scores_grid("a", facts, TASK, "mean training label", found).rows] == [
        "prediction",
        "mean training label",
        "prediction, on 8 validation labels",
    ]
    facts["scores"] = known | {"forest": scores(0.6)}
    assert scores_grid("a", facts, TASK, "mean training label", found).rows[1][0] == "only the kernel"
    told = {"targets": {}, "weights": {"kernel": {"a": 1.0}}}
    assert "one member, the kernel" in scores_section(reported(told)).words[1]


@pytest.mark.parametrize(
    ("kind", "targets", "y", "name"),
    [
        ("classification", ("a",), [[1.0], [0], [1], [np.nan]], "yes"),
        ("multiclass", ("low", "high"), [[1.0, 0], [0, 1], [0, 1]], "high"),
    ],
)
def test_the_most_frequent_class_is_named(kind, targets, y, name):
    names = (("no", "yes"),) if kind == "classification" else ()
    page = reported(None, kind, targets, y=np.array(y), class_names=names)
    assert page.frequent_class(next(iter(columns_of(page.task))))[1] == name


def test_weights_in_words():
    assert weight_words({"a": 0.25, "b": 0.5}) == "0.25 to 0.50" and weight_words({"a": 0.1, "b": 0.1}) == "0.10"
