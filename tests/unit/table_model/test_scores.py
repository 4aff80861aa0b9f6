"""Scores of targets by hand, and their intervals by what they promise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import bootstrap

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model.scores import (
    MEAN,
    STACK,
    Predicted,
    correlation_of_ranks,
    draws_of,
    informative,
    roc_auc_of_ranks,
    score_of_draws,
    scores_of,
)
from graphormer_sepnorm.tasks import METRICS

TWO = TaskConfig("regression", "mae", ("a", "b"))
NAN = np.nan


def test_scores_by_hand():
    """Where a member predicts nothing, the mean stands."""
    y = np.array([[1.0, NAN], [2, NAN], [4, 7]])
    stack, forest = np.array([[1.0, 0], [2, 0], [5, 8]]), np.array([[NAN, 0], [3, 0], [2, 9]])
    found = Predicted(TWO, y, {STACK: stack, "forest": forest}, np.array([2.0, 5])).by_target()
    assert list(found) == ["a", "b"] and list(found["a"]["scores"]) == [STACK, "forest", MEAN]
    errors = [scores["mae"] for scores in found["a"]["scores"].values()]
    assert errors == pytest.approx([1 / 3, (1 + 1 + 2) / 3, (1 + 0 + 2) / 3])
    assert found["a"]["scores"][STACK]["spearman"] == pytest.approx(1)
    assert found["a"]["scores"][MEAN]["spearman"] is None, "a mean has no order"
    assert found["a"]["against_forest"]["difference"] == pytest.approx(1 / 3 - 4 / 3)
    assert found["a"]["against_mean"]["difference"] == pytest.approx(1 / 3 - 1)
    assert found["a"]["interval"][STACK] == [0, 1], "of three errors 0, 0, 1"


def test_scores_with_bounds_by_hand():
    """The mean label 2 is on the known side of >1, the whole is not; only the first target has bounds."""
    y, bounds = np.array([[1.0, 1], [2, 2], [NAN, NAN]]), np.tile([-np.inf, np.inf], (3, 2, 1))
    bounds[2, 0, 0] = 1
    stack = np.array([[1.0, 1], [2, 2], [0, 0]])
    found = Predicted(TWO, y, {STACK: stack}, np.array([2.0, 5]), bounds).by_target()
    assert "bounds" not in found["b"] and found["a"]["n"] == 2
    whole, mean = found["a"]["bounds"][STACK], found["a"]["bounds"][MEAN]
    assert (whole["bounds"], whole["right_side"], mean["right_side"]) == (1, 0, 1)
    assert (whole["concordance"], mean["concordance"]) == (0.5, 0.5), "1 < 2 and 1 < >1"


def test_targets_with_too_few_labels_are_left_out_of_the_mean():
    """Of 30 labels, 10, 9 and none are 1."""
    task = TaskConfig("classification", "rocauc", ("a", "b", "c"))
    y = (np.arange(30.0)[:, None] < [10, 9, 0]).astype(float)
    found = Predicted(task, y, {}, np.zeros(3))
    assert list(found.left_out) == ["c", "b"] and "9 of 30" in found.left_out["b"]
    assert "none of 30" in found.left_out["c"] and np.isnan(found.judged).tolist() == [[False, True, True]] * 30
    two = Predicted(replace(task, targets=("b", "c")), y[:, 1:], {}, np.zeros(2))
    assert list(two.left_out) == ["c"], "all are too few"
    assert Predicted(TWO, np.array([[1.0, 1], [2, NAN]]), {}, np.zeros(2)).left_out == {
        "b": "only 1 scored molecule has a label: its error is not a score"
    }


def test_a_resample_has_as_many_labels_as_there_are_up_to_a_limit():
    assert draws_of(7).shape == (1000, 7)
    assert (many := draws_of(20_000)).shape == (1000, 10_000) and many.max() == 19_999


@pytest.mark.slow
def test_highest_and_lowest_are_looked_for():
    y = np.arange(60.0).reshape(30, 2)
    stack, bounds = np.where(y < 6, 100, y), np.full((30, 2, 2), [-np.inf, np.inf])
    y[0, 0], bounds[0, 0, 1] = NAN, 1
    found = Predicted(TWO, y, {STACK: stack}, np.zeros(2), bounds).by_target()["a"]["top"]
    counts = {side: (top["n"], top["best"], top["found"]) for side, top in found.items()}
    assert counts == {"highest": (3, 3, 0), "lowest": (3, 3, 0)}
    assert "top" not in Predicted(TWO, y[:29], {STACK: y[:29]}, np.zeros(2)).by_target()["a"]


def test_a_label_without_a_prediction_is_left_out():
    y, prediction = np.array([[1.0, 4], [2, NAN], [4, 7]]), np.array([[1.5, NAN], [2, NAN], [5, NAN]])
    assert scores_of(TWO, y, prediction)["mae"] == pytest.approx((0.5 + 0 + 1) / 3)


@pytest.mark.slow
def test_intervals_are_those_of_scipy():
    random = np.random.default_rng(1)
    y = random.normal(size=(80, 1))
    stack, forest = y + random.normal(size=(80, 1)), y + 1.5 * random.normal(size=(80, 1))
    task = TaskConfig("regression", "rmse", ("a",))
    found = Predicted(task, y, {STACK: stack, "forest": forest}, np.zeros(1)).by_target()["a"]
    rmse = METRICS["rmse"].score

    def compared(statistic, *columns: np.ndarray) -> tuple[float, float]:
        options = {"paired": True, "vectorized": False, "method": "percentile", "n_resamples": 4000, "rng": 2}
        return bootstrap([column[:, 0] for column in columns], statistic, **options).confidence_interval

    np.testing.assert_allclose(found["interval"][STACK], compared(rmse, y, stack), atol=0.03)
    expected = compared(lambda y, ours, theirs: rmse(y, ours) - rmse(y, theirs), y, stack, forest)
    np.testing.assert_allclose(found["against_forest"]["interval"], expected, atol=0.04)
    low, high = found["against_forest"]["interval"]
    assert low < found["against_forest"]["difference"] < high < 0


def test_a_difference_is_paired():
    """Both are wrong by the same errors: each is uncertain, their difference is not."""
    y = np.random.default_rng(0).normal(size=(50, 1))
    task, zeros = TaskConfig("regression", "mae", ("a",)), np.zeros_like(y)
    found = Predicted(task, y, {STACK: zeros, "forest": zeros}, y[0]).by_target()
    assert found["a"]["interval"][STACK][1] - found["a"]["interval"][STACK][0] > 0.1
    assert found["a"]["against_forest"] == {"difference": 0, "interval": [0, 0]}


def test_draws_of_a_single_class_do_not_count():
    y = np.array([[1.0], [0], [0]])
    predicted = Predicted(TaskConfig("classification", "rocauc", ("a",)), y, {STACK: y}, np.array([1 / 3]))
    found = predicted.by_target()["a"]
    assert found["interval"] == {STACK: [1, 1], MEAN: [0.5, 0.5]} and "against_forest" not in found
    alike = Predicted(predicted.task, 0 * y, {STACK: y}, np.zeros(1))
    assert alike.by_target()["a"]["interval"][STACK] is None


def test_the_quick_roc_auc_is_that_of_scikit_learn():
    random = np.random.default_rng(3)
    y, prediction = (random.random((5, 200)) > 0.3).astype(float), random.integers(0, 20, (5, 200)) / 20
    expected = [METRICS["rocauc"].score(*rows) for rows in zip(y, prediction, strict=True)]
    np.testing.assert_allclose(roc_auc_of_ranks(y, prediction), expected, rtol=1e-12)
    assert np.isnan(roc_auc_of_ranks(np.array([[1.0, 1], [0, 0]]), np.zeros((2, 2)))).all()


def test_the_quick_rank_correlation_is_that_of_scipy():
    random = np.random.default_rng(3)
    y, prediction = random.integers(0, 9, (5, 60)) / 4, random.normal(size=(5, 60))
    expected = [METRICS["spearman"].score(*rows) for rows in zip(y, prediction, strict=True)]
    np.testing.assert_allclose(correlation_of_ranks(y, prediction), expected, rtol=1e-12)
    assert np.isnan(correlation_of_ranks(np.ones((1, 3)), np.arange(3.0)[None])).all()


@pytest.mark.slow
def test_the_area_of_several_classes_is_the_mean_of_those_that_are_drawn():
    """Some draws lack a class, one has only one."""
    random = np.random.default_rng(4)
    y, prediction = np.eye(3)[random.integers(0, 3, 12)], random.integers(0, 20, (12, 3)) / 20
    draws = np.concatenate([random.integers(12, size=(50, 5)), np.full((1, 5), 7)])
    expected = [METRICS["rocauc"].or_nan(y[rows], prediction[rows]) for rows in draws]
    assert np.isnan(expected[-1]) and not np.isnan(expected[:-1]).all()
    np.testing.assert_allclose(score_of_draws(roc_auc_of_ranks, y, prediction, draws), expected, rtol=1e-12)


def test_the_classes_of_one_column_are_one_target():
    y = np.eye(3)[[0, 1, 2, 0, 1]]
    task = TaskConfig("multiclass", "multiclass-accuracy", ("c_x", "c_y", "c_z"))
    prediction = np.eye(3)[[0, 1, 2, 0, 0]] * 0.8 + 0.2 / 3
    found = Predicted(task, y, {STACK: prediction}, y.mean(axis=0)).by_target()
    ((target, facts),) = found.items()
    assert target == "c_x, c_y, c_z" and facts["interval"][STACK][1] == 1
    assert facts["scores"][STACK]["multiclass-accuracy"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("ones", "rarer", "warning"),
    [
        (1, ("yes", 1), "1 of 30 scored labels is yes: too few to judge"),
        (21, ("no", 9), "9 of 30 scored labels are no: too few to judge"),
        (0, ("yes", 0), "none of 30 scored labels is yes: no ROC-AUC"),
        (20, ("no", 10), None),
    ],
)
def test_the_labels_of_the_rarer_class_count(ones, rarer, warning):
    task = TaskConfig("classification", "rocauc", ("a",), class_names=(("no", "yes"),))
    y = (np.arange(30) < ones).astype(float)[:, None]
    facts = Predicted(task, y, {STACK: np.full((30, 1), 0.5)}, np.zeros(1)).by_target()["a"]
    assert tuple(facts["rarer"].values()) == rarer and facts.get("warning") == warning
    assert informative(facts) == 2 * rarer[1] and informative({"n": 30}) == 30


def test_of_several_classes_those_that_are_not_the_most_frequent_count():
    task, y = TaskConfig("multiclass", "rocauc", ("low", "mid", "high")), np.eye(3)[[0] * 5 + [1] * 2 + [2] * 3]
    (facts,) = Predicted(task, y, {STACK: np.full((10, 3), 1 / 3)}, np.full(3, 1 / 3)).by_target().values()
    assert facts["rarer"] == {"class": "not low", "n": 5}
