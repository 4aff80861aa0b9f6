"""Scores, the learning curve and reliability, by hand."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.report import scores
from graphormer_sepnorm.report.reported import Trained
from graphormer_sepnorm.report.scores import (
    distance_charts,
    learning_curve,
    reliability_charts,
    scores_grid,
    scores_section,
    weight_words,
)
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members.base import ToFit
from graphormer_sepnorm.table_model.members.kernel import KernelMember
from graphormer_sepnorm.table_model.model import Stacked
from graphormer_sepnorm.table_model.scores import columns_of
from graphormer_sepnorm.tasks import METRICS
from tests.unit.report.conftest import reported


def page_of(out_of_fold: tuple[dict, str]) -> SimpleNamespace:
    """A report on one target with these scores out of fold."""
    task, found = TaskConfig("regression", "mae", ("a",)), lambda target: out_of_fold
    return SimpleNamespace(task=task, is_regression=True, results={}, out_of_fold=found, title_of=str, metric="MAE")


def of_scores(mae: float, r2: float | None = None) -> dict:
    return {"mae": mae, "rmse": 2 * mae, "r2": r2, "spearman": None}


FACTS = {
    "n": 9,
    "scores": {"stack": of_scores(0.5), "mean": of_scores(1.0, 0.0)},
    "interval": {"stack": [0.4, 0.61234], "mean": None},
}


def test_the_scores_of_a_target_stand_with_their_interval():
    found = of_scores(0.45, 0.9), "out of fold, on 90 training labels"
    grid = scores_grid(page_of(found), "a", FACTS)
    assert grid.rows == (
        ("prediction", "0.500", "1.00", "not defined", "not defined", "0.400 to 0.612"),
        ("mean training label", "1.000", "2.00", "0.000", "not defined", "not defined"),
        ("prediction, out of fold, on 90 training labels", "0.450", "0.90", "0.900", "not defined", ""),
    )
    assert grid.header[-1] == "95 % interval of the MAE"
    grid = scores_grid(page_of(found), "a", {"n": 1, "scores": {"stack": of_scores(0.5)}})
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
    grid = scores_grid(page, "a", facts)
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
        ("prediction, out of fold, on 2 training labels (1 of them 1)", "0.288", "1.000", "1.000", "1.000"),
    )


def test_a_single_member_has_no_row_of_its_own_and_no_weight():
    known = {"stack": of_scores(0.5), "kernel": of_scores(0.5), "mean": of_scores(1.0)}
    facts, found = {"n": 9, "scores": known}, (of_scores(0.5), "on 8 validation labels")
    grid = scores_grid(page_of(found), "a", facts)
    assert [row[0] for row in grid.rows] == ["prediction", "mean training label", "prediction, on 8 validation labels"]
    facts["scores"] = known | {"forest": of_scores(0.6)}
    assert scores_grid(page_of(found), "a", facts).rows[1][0] == "only the kernel"
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


def curve_of(fitted, molecules, labels, folds) -> dict | None:
    """The learning curve with the seed 0."""
    return learning_curve(Trained(None, fitted, molecules, labels, folds, None, SimpleNamespace(seed=0)))


@pytest.fixture(scope="module")
def kernel(labels: Labels, to_fit: ToFit) -> SimpleNamespace:
    """A model of a kernel and another member, with their out-of-fold predictions."""
    fitted = KernelMember.fit(to_fit)
    by_member = np.stack([np.zeros_like(labels.y), fitted.out_of_fold])
    members = {"forest": None, "kernel": fitted.member}
    return SimpleNamespace(model=SimpleNamespace(members=members), out_of_fold=Stacked(by_member, None, None))


@pytest.mark.slow
def test_the_last_point_is_the_score_of_the_kernel_and_fewer_molecules_do_worse(kernel, molecules, labels, folds):
    curve = curve_of(kernel, molecules, labels, folds)
    assert curve["rows"] == [10, 20, 40] and list(curve["targets"]) == ["logP", "TPSA"]
    for place, facts in enumerate(curve["targets"].values()):
        error = kernel.out_of_fold.by_member[1][:, place] - labels.y[:, place]
        assert facts["values"][-1] == pytest.approx(np.sqrt(np.nanmean(error**2)))
        assert facts["values"][0] > facts["values"][-1]
        assert all(low < value < high for value, (low, high) in zip(facts["values"], facts["interval"], strict=True))
        low, high = facts["last_doubling"]["interval"]
        assert low < facts["last_doubling"]["difference"] == facts["values"][-1] - facts["values"][-2] < high


@pytest.mark.slow
def test_bounds_are_learnt_and_scored(kernel, molecules, labels, folds):
    """Only the target with bounds has likelihoods, and its labels beyond the bound change what a part predicts."""
    limit = np.nanmedian(labels.y[:, 0])
    hidden, y = labels.y[:, 0] > limit, labels.y.copy()
    bounds = np.tile([-np.inf, np.inf], (*y.shape, 1))
    y[hidden, 0], bounds[hidden, 0, 0] = np.nan, limit
    curves = [curve_of(kernel, molecules, Labels(labels.task, y, each), folds)["targets"] for each in (bounds, None)]
    assert len(curves[0]["logP"]["log_likelihood"]) == 3 and "log_likelihood" not in curves[0]["TPSA"]
    assert "log_likelihood" not in curves[1]["logP"]
    assert curves[0]["logP"]["values"][0] != curves[1]["logP"]["values"][0]
    assert curves[0]["TPSA"] == curves[1]["TPSA"]


@pytest.mark.slow
def test_a_part_is_fitted_without_the_molecules_of_its_fold(kernel, molecules, labels, folds, monkeypatch):
    fitted = []

    def watched(compared, labels, learnt):
        fitted.append(set(learnt.tolist()))
        return lambda similarities: np.zeros((len(similarities), 2))

    monkeypatch.setattr(scores, "fit_machines", watched)
    curve_of(kernel, molecules, labels, folds)
    outside = [set(learnt.tolist()) for learnt, _ in folds.parts()]
    assert [len(rows) for rows in fitted] == [10] * 3 + [20] * 3
    for number, allowed in enumerate(outside):
        assert fitted[number] < fitted[3 + number] < allowed, "the half holds the quarter"


@pytest.mark.slow
def test_tables_that_are_too_small_or_too_costly_have_no_curve(kernel, molecules, labels, folds, monkeypatch):
    for name, value in (("LEAST_MOLECULES", 61), ("MOST_LABELS", 119)):
        with monkeypatch.context() as patch:
            patch.setattr(scores, name, value)
            assert curve_of(kernel, molecules, labels, folds) is None
    without = SimpleNamespace(model=SimpleNamespace(members={"networks": None}))
    assert curve_of(without, molecules, labels, folds) is None


@pytest.mark.slow
def test_the_curve_of_several_classes_ends_at_the_score_of_a_model_of_the_kernel(molecules, labels, folds, to_fit):
    """The kernel predicts the classes one by one; those of a model add up to 1."""
    thirds = np.searchsorted(np.nanquantile(labels.y[:, 0], [1 / 3, 2 / 3]), np.nan_to_num(labels.y[:, 0]))
    several = Labels(TaskConfig("multiclass", "rocauc", ("low", "middle", "high")), np.eye(3)[thirds])
    fitted = KernelMember.fit(replace(to_fit, labels=several))
    values = fitted.out_of_fold / fitted.out_of_fold.sum(axis=1, keepdims=True)
    whole = SimpleNamespace(
        model=SimpleNamespace(members={"kernel": fitted.member}),
        out_of_fold=Stacked(fitted.out_of_fold[None], values, values),
    )
    (facts,) = curve_of(whole, molecules, several, folds)["targets"].values()
    score = METRICS["rocauc"]
    assert facts["values"][-1] == score(several.y, values) != score(several.y, fitted.out_of_fold)


def test_sets_of_classes_are_judged_for_each_target():
    held, single = {"a": 0.93, "b": 0.8, "c": None}, {"a": 0.41, "b": 1.0, "c": None}
    trust = {"set_coverage": {"0.9": held}, "one_class": {"0.9": single}}
    said = reported({"trust": trust}, "classification", options={"split": "random"}).words("trust.sets")
    assert [re.findall(r"\d+", each) for each in said] == [["90", "93", "41"], ["90", "80", "100"]]
    assert [each.partition(":")[0] for each in said] == ["a", "b"]
    assert reported({"trust": {}}, "classification").words("trust.sets") == ()


@pytest.mark.parametrize(("known", "line"), [(50, True), (49, False)])
def test_errors_are_drawn_against_both_distances_where_they_are_known(known, line):
    """With a running mean if there are enough; one similarity and all distances of embeddings are unknown."""
    similarity, errors = np.append(np.linspace(0.2, 0.4, known), np.nan), np.ones(known + 1)
    near = SimpleNamespace(similarity=similarity, distance=np.full(known + 1, np.nan))
    looked = SimpleNamespace(nearness=near, errors=errors, smiles=["C"] * (known + 1))
    (chart,) = distance_charts(reported(targets=("a",), looked=looked))
    assert chart.svg.count("<circle") == known and "C\nabsolute error 1.00" in chart.svg
    assert ('class="mean"' in chart.svg, "The line joins the means of 2 groups" in chart.words) == (line, line)


def test_calibration_is_drawn_before_and_after_for_targets_with_labels():
    y, after = np.array([[0.0, np.nan], [1, np.nan]]), np.array([[0.1, 0.5], [0.8, 0.5]])
    page = reported(kind="classification", test={"y": y, "prediction": after, "plain": after / 2})
    (chart,) = reliability_charts(page)
    assert "a: calibration" in chart.svg and chart.svg.count("<circle") == 2
    assert "mean predicted probability 0.100\n0 % are positive" in chart.svg
    assert [np.array(chart.lines[kind][0]).tolist() for kind in ("mean", "trend")] == [[0.05, 0.4], [0.1, 0.8]]
