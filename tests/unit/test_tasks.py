import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.benchmarks import HIV, MAE
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tasks import (
    METRICS,
    METRICS_OF,
    REPORTED,
    Task,
    all_scores,
    check_learnable,
    check_scorable,
    check_targets,
    find_metric,
    fit_scale,
    left_out,
)

NAN = float("nan")


def test_regression_scale_loss_and_prediction_by_hand():
    config = fit_scale(MAE, np.array([[1.0], [3.0], [NAN]], np.float32))
    assert (config.mean, config.std) == ((2.0,), (1.0,))
    task = Task(config)
    output, y = torch.tensor([[0.5], [9.0]]), torch.tensor([[4.0], [NAN]])
    assert task.loss(output, y).item() == pytest.approx(1.5)  # |0.5 - (4 - 2) / 1|, the second label is missing
    assert task.predict(output).tolist() == [[2.5], [11.0]]


def test_squared_loss_by_hand():
    config = fit_scale(replace(MAE, loss="mse"), np.array([[0.0], [4.0]], np.float32))
    assert (config.mean, config.std) == ((2.0,), (2.0,))
    output, y = torch.tensor([[0.5], [9.0], [2.0]]), torch.tensor([[6.0], [NAN], [2.0]])
    assert Task(config).loss(output, y).item() == pytest.approx(3.125)  # ((0.5 - 2)^2 + (2 - 0)^2) / 2


def test_a_classification_has_its_own_loss():
    with pytest.raises(ValidationError, match="loss mse is for regression"):
        replace(HIV, loss="mse")


def test_a_config_without_a_loss_means_l1():
    assert TypeAdapter(TaskConfig).validate_json('{"kind":"regression","metric":"mae","targets":["a"]}').loss == "l1"


def test_scale_of_constant_targets_is_one():
    config = fit_scale(MAE, np.full((4, 1), 5.0, np.float32))
    assert (config.mean, config.std) == ((5.0,), (1.0,))


def test_classification_loss_by_hand_and_missing_labels_have_no_gradient():
    task = Task(TaskConfig(kind="classification", metric="rocauc", targets=("a", "b")))
    output = torch.zeros(2, 2, requires_grad=True)
    loss = task.loss(output, torch.tensor([[1.0, NAN], [0.0, NAN]]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert output.grad.tolist() == [[-0.25, 0.0], [0.25, 0.0]]
    assert task.predict(torch.zeros(1, 2)).tolist() == [[0.5, 0.5]]


def test_mae_by_hand_skips_missing_labels():
    y, prediction = np.array([[1.0], [NAN], [4.0]]), np.array([[2.0], [7.0], [4.5]])
    assert METRICS["mae"](y, prediction) == pytest.approx(0.75)


def test_rocauc_by_hand():
    y, prediction = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([[0.1], [0.4], [0.35], [0.8]])
    assert METRICS["rocauc"](y, prediction) == pytest.approx(0.75)  # 3 of 4 pairs in order


def test_several_targets_are_averaged():
    y = np.array([[0.0, 1.0], [1.0, 1.0]])
    prediction = np.array([[1.0, 1.0], [1.0, 4.0]])
    assert METRICS["mae"](y, prediction) == pytest.approx((0.5 + 1.5) / 2)


def test_directions():
    assert METRICS["mae"].improves(0.1, 0.2) and not METRICS["mae"].improves(0.2, 0.1)
    assert METRICS["rocauc"].improves(0.9, 0.8) and not METRICS["rocauc"].improves(0.8, 0.9)
    assert METRICS["mae"].improves(5.0, None)


@pytest.mark.parametrize(
    "task, y, problem",
    [
        (MAE, [[np.inf], [0.0]], "infinite"),
        (MAE, [[NAN], [NAN]], "no labels"),
        (HIV, [[NAN], [NAN]], "no labels"),
    ],
)
def test_unusable_training_targets_are_refused(task, y, problem):
    with pytest.raises(InputError, match=problem):
        fit_scale(task, np.array(y, np.float32))


def test_a_single_class_cannot_be_scored():
    with pytest.raises(InputError, match="both classes"):
        METRICS["rocauc"](np.ones((3, 1)), np.zeros((3, 1)))


INF = float("inf")


@pytest.mark.parametrize("loss, power", [("l1", 1), ("mse", 2)])
def test_a_bound_costs_nothing_on_its_side_and_a_distance_on_the_other(loss, power):
    task = Task(replace(MAE, loss=loss, mean=(1.0,), std=(2.0,)))
    y = torch.tensor([[3.0], [NAN], [NAN], [NAN]])
    bounds = torch.tensor([[[-INF, INF]], [[-INF, 5.0]], [[9.0, INF]], [[-INF, INF]]])
    output = torch.tensor([[0.5], [1.5], [4.5], [9.0]], requires_grad=True)  # 2, 4 (below 5), 10 (above 9), no label
    loss = task.loss(output, y, bounds)
    loss.backward()
    assert loss.item() == pytest.approx(0.5**power / 3)
    assert output.grad[1:].abs().sum() == 0 and output.grad[0] < 0
    output = torch.tensor([[1.0], [3.0], [3.0], [9.0]], requires_grad=True)  # 3, 7 (2 above 5), 7 (2 below 9), no label
    loss = task.loss(output, y, bounds)
    loss.backward()
    assert loss.item() == pytest.approx(2 * 1**power / 3)
    assert output.grad[1] > 0 > output.grad[2] and output.grad[3] == 0


def test_bounds_that_say_nothing_change_nothing():
    task = Task(replace(MAE, mean=(0.0,), std=(1.0,)))
    output, y = torch.tensor([[0.5], [9.0]]), torch.tensor([[4.0], [NAN]])
    assert task.loss(output, y, torch.tensor([[[-INF, INF]]] * 2)).item() == task.loss(output, y).item()


def test_weights_by_hand():
    config = TaskConfig("regression", "mae", ("a", "b"), mean=(0.0, 0.0), std=(1.0, 1.0), weights=(3.0, 1.0))
    output, y = torch.tensor([[1.0, 2.0], [1.0, 2.0]]), torch.tensor([[0.0, 0.0], [NAN, 0.0]])
    assert Task(config).loss(output, y).item() == pytest.approx((3 * 1 + 2 + 2) / 5)
    assert Task(config).counts(y).tolist() == [[3.0, 1.0], [0.0, 1.0]]
    small = replace(config, weights=(0.25, 0.25))
    assert Task(small).loss(output[:1], y[:1]).item() == pytest.approx(1.5)
    assert Task(small).loss(output, torch.full((2, 2), NAN)).item() == 0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"weights": (1.0, 2.0)}, "1 targets .penalized_logp., but 2 weights"),
        ({"weights": (0.0,)}, "greater than 0"),
        ({"kind": "multiclass", "weights": (1.0,)}, "weights are for several targets"),
    ],
)
def test_weights_that_do_not_fit_are_refused(changes, sentence):
    with pytest.raises(ValidationError, match=sentence):
        replace(MAE, **changes)


CLASSES = TaskConfig("multiclass", "rocauc", ("y_a", "y_b", "y_c"))


def test_classes_exclude_each_other():
    task = Task(CLASSES)
    output = torch.log(torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [1.0, 1.0, 1.0]])) + 7
    assert task.predict(output)[:2].tolist() == [pytest.approx([0.5, 0.25, 0.25]), pytest.approx([0.1, 0.1, 0.8])]
    y = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [NAN] * 3])
    assert task.loss(output, y).item() == pytest.approx(-(math.log(0.25) + math.log(0.8)) / 2)
    assert task.loss(output, y).item() == pytest.approx(
        torch.nn.functional.cross_entropy(output[:2], torch.tensor([1, 2])).item()
    )


def test_scores_of_classes_by_hand():
    y = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [NAN] * 3])
    prediction = np.array([[0.6, 0.2, 0.2], [0.5, 0.25, 0.25], [0.3, 0.3, 0.4], [1.0, 0, 0]])
    assert METRICS["multiclass-accuracy"](y, prediction) == pytest.approx(2 / 3)
    expected = -(math.log(0.6) + math.log(0.25) + math.log(0.4)) / 3
    assert METRICS["multiclass-logloss"](y, prediction) == pytest.approx(expected)
    assert METRICS["multiclass-logloss"](y, 2 * prediction) == pytest.approx(expected)
    assert METRICS["rocauc"](y, prediction) == pytest.approx((1 + 0.5 + 1) / 3)  # of b: 0.25 beats 0.2, not 0.3
    with pytest.raises(InputError, match="no molecule of this split has a class"):
        METRICS["multiclass-accuracy"](y[3:], prediction[3:])


def test_a_target_of_one_class_or_none_is_left_out_of_the_mean_and_named():
    task = TaskConfig("classification", "rocauc", ("a", "b", "c"))
    y = np.array([[0.0, 1.0, NAN], [1.0, 1.0, NAN], [1.0, NAN, NAN]])
    prediction = np.array([[0.1, 0.3, 0.2], [0.9, 0.3, 0.2], [0.05, 0.3, 0.2]])
    assert METRICS["rocauc"](y, prediction) == pytest.approx(0.5)
    check_scorable(task, y, "test")
    assert left_out(task, y) == {
        "b": "ROC-AUC needs both classes, and this split has labels of one alone",
        "c": "a target has no labels in this split, so it cannot be scored",
    }
    assert left_out(replace(task, metric="logloss"), y) == {"c": left_out(task, y)["c"]}
    with pytest.raises(InputError, match="test split: ROC-AUC needs both classes"):
        check_scorable(task, y[1:], "test")


def test_a_target_without_labels_cannot_be_learnt():
    task = TaskConfig("classification", "rocauc", ("a", "b"))
    with pytest.raises(InputError, match="target b has no labels in the training split"):
        check_learnable(task, np.array([[0.0, NAN], [1.0, NAN]]))


def test_metrics_suit_a_kind_of_task():
    assert [find_metric(kind, None) for kind in METRICS_OF] == ["mae", "rocauc", "rocauc"]
    assert find_metric("classification", "logloss") == "logloss"
    with pytest.raises(
        InputError, match="metric 'accuracy' does not score a multiclass: choose one of rocauc, prauc, mul"
    ):
        find_metric("multiclass", "accuracy")
    assert set(METRICS_OF) == set(REPORTED) and set(METRICS) == {
        name for names in METRICS_OF.values() for name in names
    }


@pytest.mark.parametrize(
    ("name", "y", "prediction", "score"),
    [
        ("rmse", [0, 0], [3, 4], 12.5**0.5),
        ("r2", [1, 2, 3], [1, 2, 5], -1.0),  # 1 - 4 / 2
        ("prauc", [0, 1, 1, 0], [0.9, 0.8, 0.3, 0.1], (1 / 2 + 2 / 3) / 2),
        ("accuracy", [1, 0, 1, 0], [0.6, 0.4, 0.2, 0.1], 0.75),
        ("logloss", [1, 0], [0.5, 0.75], (math.log(2) + math.log(4)) / 2),
    ],
)
def test_further_scores_by_hand(name, y, prediction, score):
    y, prediction = (np.array(values, np.float32)[:, None] for values in (y, prediction))
    assert METRICS[name](y, prediction) == pytest.approx(score)


@pytest.mark.parametrize("scale", [1e-28, 1e-23, 1.0, 1e18])
def test_scores_of_small_and_large_numbers_are_those_of_others(scale):
    """In float32 the squares of 1e-23 are 0, and those of 1e20 infinite."""
    y, prediction = np.array([[1.0], [2.0], [4.0]], np.float32), np.array([[1.5], [2.0], [3.0]], np.float32)
    scaled = np.float32(scale)
    found = all_scores("regression", scaled * y, scaled * prediction)
    assert found["mae"] == pytest.approx(scale * 0.5) and found["rmse"] == pytest.approx(scale * (1.25 / 3) ** 0.5)
    assert found["r2"] == pytest.approx(1 - 1.25 / (14 / 3))


@pytest.mark.parametrize("name", METRICS)
def test_scores_are_computed_in_double_precision(name):
    """Labels and predictions are kept in single precision, which both can hold."""
    rng = np.random.default_rng(0)
    y = (
        np.eye(3, dtype=np.float32)[rng.integers(3, size=500)]
        if name.startswith("multi")
        else rng.integers(2, size=(500, 1))
    )
    prediction = rng.random(y.shape, np.float32)
    assert METRICS[name](y.astype(np.float32), prediction) == METRICS[name](y.astype(float), prediction.astype(float))


def test_the_scale_of_small_targets_is_theirs():
    y = np.array([[1e-25], [3e-25]], np.float32)
    config = fit_scale(MAE, y)
    np.testing.assert_allclose([*config.mean, *config.std], [2e-25, 1e-25], rtol=1e-6)
    task = Task(config)
    np.testing.assert_allclose(task.predict(torch.tensor([[-1.0], [1.0]])).numpy(), y, rtol=1e-5)
    assert task.loss(torch.zeros(2, 1), torch.from_numpy(y)).item() == pytest.approx(1, rel=1e-5)


def test_every_metric_has_its_direction_and_what_is_equal_is_no_better():
    lower, higher = {"mae", "rmse", "logloss", "multiclass-logloss"}, {"r2", "rocauc", "prauc", "accuracy"}
    assert {name for name, metric in METRICS.items() if metric.improves(0.8, 0.9)} == lower
    higher |= {"multiclass-accuracy"}
    assert {name for name, metric in METRICS.items() if metric.improves(0.9, 0.8)} == higher
    assert not any(metric.improves(0.5, 0.5) for metric in METRICS.values())


def test_the_scale_is_of_means_and_standard_deviations_target_by_target():
    config = fit_scale(replace(MAE, targets=("a", "b")), np.array([[0, 10], [0, 10], [3, 40]], np.float32))
    assert config.mean == pytest.approx((1, 20)) and config.std == pytest.approx((2**0.5, 200**0.5))


def test_positives_are_weighted_where_that_is_asked_for():
    """Three negatives to a positive; a target without positives counts as it is."""
    y = np.array([[1, 0], [0, 0], [0, NAN], [0, 0]], np.float32)
    task = TaskConfig(kind="classification", metric="rocauc", targets=("a", "b"), balance=True)
    balanced = fit_scale(task, y)
    assert balanced.pos_weight == (3.0, 1.0)
    assert fit_scale(replace(task, balance=False), y).pos_weight == ()
    losses = [Task(balanced).loss(torch.zeros(1, 2), torch.tensor([[label, NAN]])).item() for label in (1.0, 0.0)]
    assert losses == pytest.approx([3 * math.log(2), math.log(2)])


def test_scores_that_are_reported():
    y, prediction = np.array([[1.0], [1.0]]), np.array([[1.0], [2.0]])
    assert all_scores("regression", y, prediction) == {"mae": 0.5, "rmse": 0.5**0.5, "r2": None}
    assert all_scores("classification", y, prediction) == {"rocauc": None, "prauc": 1.0, "accuracy": 1.0}


@pytest.mark.parametrize(
    ("task", "y", "problem"),
    [
        (MAE, [[5.0], [5.0]], "is 5 for every training molecule"),
        (MAE, [[0.0], [1e19]], "put the targets on another scale"),
        (MAE, [[0.0], [1e-31]], "differ by less than 1e-30: put the targets on another scale"),
        (MAE, [[0.0], [np.inf]], "of training molecule 1 .counted from 0. is infinite"),
        (HIV, [[0.0], [2.0], [1.0]], "labels other than 0 and 1"),
    ],
)
def test_training_targets_that_cannot_be_learnt_are_refused(task, y, problem):
    with pytest.raises(InputError, match=problem):
        check_learnable(task, np.array(y))


def test_one_constant_target_of_two_is_no_obstacle():
    check_learnable(replace(MAE, targets=("a", "b")), np.array([[5.0, 1.0], [5.0, 2.0]]))
    with pytest.raises(InputError, match="the val split has no molecules"):
        check_targets(MAE, np.empty((0, 1)), "val")
