import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.benchmarks import HIV, MAE
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tasks import METRICS, TASKS, make_task
from graphormer_sepnorm.tasks.kinds import Classification, Multiclass, Regression

NAN, INF = float("nan"), float("inf")
CLASSES = TaskConfig("multiclass", "rocauc", ("y_a", "y_b", "y_c"))


def test_regression_scale_loss_and_prediction_by_hand():
    config = Regression(MAE).fitted(np.array([[1.0], [3.0], [NAN]], np.float32))
    assert (config.mean, config.std) == ((2.0,), (1.0,))
    task = Regression(config)
    output, y = torch.tensor([[0.5], [9.0]]), torch.tensor([[4.0], [NAN]])
    assert task.loss(output, y).item() == pytest.approx(1.5)  # |0.5 - (4 - 2) / 1|, the second label is missing
    assert task.predict(output).tolist() == [[2.5], [11.0]]


def test_a_task_that_is_not_fitted_has_no_loss_and_no_predictions():
    output = torch.zeros(2, 1)
    for call in (lambda task: task.loss(output, output), lambda task: task.predict(output)):
        with pytest.raises(InputError, match="the task has no mean and std of its targets"):
            call(Regression(MAE))


def test_whole_numbers_are_scaled_like_others():
    task = Regression(replace(MAE, mean=(2.7,), std=(0.5,)))
    loss = task.loss(torch.tensor([[1.0]]), torch.tensor([[3]]))
    assert loss.item() == pytest.approx(abs(1 - (3 - 2.7) / 0.5))


def test_squared_loss_by_hand():
    config = Regression(replace(MAE, loss="mse")).fitted(np.array([[0.0], [4.0]], np.float32))
    assert (config.mean, config.std) == ((2.0,), (2.0,))
    output, y = torch.tensor([[0.5], [9.0], [2.0]]), torch.tensor([[6.0], [NAN], [2.0]])
    assert Regression(config).loss(output, y).item() == pytest.approx(3.125)  # ((0.5 - 2)^2 + (2 - 0)^2) / 2


@pytest.mark.parametrize("loss, power", [("l1", 1), ("mse", 2)])
def test_a_bound_is_penalized_only_on_the_wrong_side(loss, power):
    task = Regression(replace(MAE, loss=loss, mean=(1.0,), std=(2.0,)))
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


def test_the_scale_of_small_targets():
    y = np.array([[1e-25], [3e-25]], np.float32)
    config = Regression(MAE).fitted(y)
    np.testing.assert_allclose([*config.mean, *config.std], [2e-25, 1e-25], rtol=1e-6)
    task = Regression(config)
    np.testing.assert_allclose(task.predict(torch.tensor([[-1.0], [1.0]])).numpy(), y, rtol=1e-5)
    assert task.loss(torch.zeros(2, 1), torch.from_numpy(y)).item() == pytest.approx(1, rel=1e-5)


def test_the_scale_is_of_means_and_standard_deviations_target_by_target():
    """The computed deviation of seven times 0.1 is 1.4e-17: that of a constant target is 1."""
    task = Regression(replace(MAE, targets=("a", "b")))
    config = task.fitted(np.array([[0, 10], [0, 10], [3, 40]], np.float32))
    assert config.mean == pytest.approx((1, 20)) and config.std == pytest.approx((2**0.5, 200**0.5))
    assert task.fitted(np.array([[0.1, 1.0]] * 6 + [[0.1, 2.0]])).std[0] == 1.0


def test_classification_loss_by_hand_and_missing_labels_have_no_gradient():
    task = Classification(TaskConfig(kind="classification", metric="rocauc", targets=("a", "b")))
    output = torch.zeros(2, 2, requires_grad=True)
    loss = task.loss(output, torch.tensor([[1.0, NAN], [0.0, NAN]]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert output.grad.tolist() == [[-0.25, 0.0], [0.25, 0.0]]
    assert task.predict(torch.zeros(1, 2)).tolist() == [[0.5, 0.5]]


def test_positives_are_weighted_if_requested():
    """Three negatives per positive; a target without positives has weight 1."""
    y = np.array([[1, 0], [0, 0], [0, NAN], [0, 0]], np.float32)
    task = TaskConfig(kind="classification", metric="rocauc", targets=("a", "b"), balance=True)
    balanced = Classification(task).fitted(y)
    assert balanced.pos_weight == (3.0, 1.0)
    assert Classification(task).fitted(y, np.array([0.5, 0, 1, 2])).pos_weight == (6.0, 1.0)
    assert Classification(replace(task, balance=False)).fitted(y).pos_weight == ()
    labels = (torch.tensor([[label, NAN]]) for label in (1.0, 0.0))
    losses = [Classification(balanced).loss(torch.zeros(1, 2), label).item() for label in labels]
    assert losses == pytest.approx([3 * math.log(2), math.log(2)])


def test_classes_exclude_each_other():
    task = Multiclass(CLASSES)
    output = torch.log(torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [1.0, 1.0, 1.0]])) + 7
    assert task.predict(output)[:2].tolist() == [pytest.approx([0.5, 0.25, 0.25]), pytest.approx([0.1, 0.1, 0.8])]
    y = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [NAN] * 3])
    assert task.loss(output, y).item() == pytest.approx(-(math.log(0.25) + math.log(0.8)) / 2)


def test_weights_of_targets_and_molecules_by_hand():
    config = TaskConfig("regression", "mae", ("a", "b"), mean=(0.0, 0.0), std=(1.0, 1.0), weights=(3.0, 1.0))
    output, y = torch.tensor([[1.0, 2.0], [1.0, 2.0]]), torch.tensor([[0.0, 0.0], [NAN, 0.0]])
    weight = torch.tensor([1.0, 0.5])
    assert make_task(config).counts(y, None, weight).tolist() == [[3.0, 1.0], [0.0, 0.5]]
    assert make_task(config).loss(output, y, None, weight).item() == pytest.approx((3 * 1 + 2 + 0.5 * 2) / 4.5)
    assert make_task(config).loss(output, y).item() == pytest.approx((3 * 1 + 2 + 2) / 5)
    assert make_task(config).counts(y).tolist() == [[3.0, 1.0], [0.0, 1.0]]
    small = replace(config, weights=(0.25, 0.25))
    assert make_task(small).loss(output[:1], y[:1]).item() == pytest.approx(1.5)
    assert make_task(small).loss(output, torch.full((2, 2), NAN)).item() == 0


def test_a_target_with_one_class_or_none_is_excluded_from_the_mean_and_reported():
    task = TaskConfig("classification", "rocauc", ("a", "b", "c"))
    y = np.array([[0.0, 1.0, NAN], [1.0, 1.0, NAN], [1.0, NAN, NAN]])
    prediction = np.array([[0.1, 0.3, 0.2], [0.9, 0.3, 0.2], [0.05, 0.3, 0.2]])
    assert METRICS["rocauc"](y, prediction) == pytest.approx(0.5)
    make_task(task).check_scorable(y, "test")
    assert make_task(task).left_out(y) == {
        "b": "ROC-AUC needs both classes, and this split has labels of only one",
        "c": "a target has no labels in this split, so it cannot be scored",
    }
    assert make_task(replace(task, metric="logloss")).left_out(y) == {"c": make_task(task).left_out(y)["c"]}
    with pytest.raises(InputError, match="test split: ROC-AUC needs both classes"):
        make_task(task).check_scorable(y[1:], "test")


def test_metrics_suit_a_kind_of_task():
    assert [task.find_metric(None) for task in TASKS.values()] == ["mae", "rocauc", "rocauc"]
    assert TASKS["classification"].find_metric("logloss") == "logloss"
    with pytest.raises(InputError, match="metric 'accuracy' does not score a multiclass: choose one of rocauc"):
        TASKS["multiclass"].find_metric("accuracy")
    assert set(METRICS) == {name for task in TASKS.values() for name in task.metrics + task.reported}
    assert all(task.metrics[0] in task.reported for task in TASKS.values())


@pytest.mark.parametrize("kind", TASKS)
def test_every_task_implements_the_interface(kind):
    """Three targets, a molecule without labels, and model outputs for all."""
    y = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [NAN] * 3])
    task = make_task(TaskConfig(kind, TASKS[kind].metrics[0], ("a", "b", "c")))
    fitted = make_task(task.fitted(y))
    assert fitted.is_fitted and type(fitted) is TASKS[kind] and fitted.metric is METRICS[TASKS[kind].metrics[0]]
    output, labels = torch.linspace(-2, 2, 12).view(4, 3), torch.tensor(y, dtype=torch.float32)
    assert fitted.losses(output, labels, None)[:3].isfinite().all() and fitted.loss(output[3:], labels[3:]).item() == 0
    assert fitted.loss(output, labels).item() == pytest.approx(fitted.loss(output[:3], labels[:3]).item())
    predicted = fitted.predict(output)
    inside = bool(((predicted >= 0) & (predicted <= 1)).all())
    assert inside == fitted.predicts_probabilities
    assert torch.allclose(predicted.sum(dim=1), torch.ones(4)) == fitted.adds_up
    assert set(fitted.scores(y, predicted.numpy())) == set(fitted.reported)


@pytest.mark.parametrize(
    ("task", "y", "problem"),
    [
        (MAE, [[5.0], [5.0]], "is 5 for every training molecule"),
        (MAE, [[0.0], [1e19]], "put the targets on another scale"),
        (MAE, [[0.0], [1e-31]], "differ by less than 1e-30: use another scale"),
        (MAE, [[0.0], [np.inf]], "of training molecule 1 .counted from 0. is infinite"),
        (HIV, [[0.0], [2.0], [1.0]], "labels other than 0 and 1"),
    ],
)
def test_unlearnable_training_targets_are_refused(task, y, problem):
    with pytest.raises(InputError, match=problem):
        make_task(task).check_learnable(np.array(y))


@pytest.mark.parametrize("kind", TASKS.values())
def test_curves_have_a_score_even_where_all_labels_are_the_same(kind):
    y = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert kind.curve_metric in kind.metrics and np.isfinite(METRICS[kind.curve_metric](y, np.full_like(y, 0.5)))


@pytest.mark.parametrize("kind", TASKS)
def test_labels_that_would_be_broadcast_are_refused(kind):
    """As PyG's ZINC gives them."""
    task = make_task(TaskConfig(kind, TASKS[kind].metrics[0], ("a",)))
    with pytest.raises(InputError, match=r"the labels are \[3\], the output \[3, 1\]"):
        task.loss(torch.zeros(3, 1), torch.zeros(3))


def test_several_targets_are_averaged():
    y = np.array([[0.0, 1.0], [1.0, 1.0]])
    prediction = np.array([[1.0, 1.0], [1.0, 4.0]])
    assert METRICS["mae"](y, prediction) == pytest.approx((0.5 + 1.5) / 2)


def test_scores_of_classes_by_hand():
    y = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [NAN] * 3])
    prediction = np.array([[0.6, 0.2, 0.2], [0.5, 0.25, 0.25], [0.3, 0.3, 0.4], [1.0, 0, 0]])
    assert METRICS["multiclass-accuracy"](y, prediction) == pytest.approx(2 / 3)
    expected = -(math.log(0.6) + math.log(0.25) + math.log(0.4)) / 3
    assert METRICS["multiclass-logloss"](y, prediction) == pytest.approx(expected)
    assert METRICS["multiclass-logloss"](y, 2 * prediction) == pytest.approx(expected)
    assert METRICS["rocauc"](y, prediction) == pytest.approx((1 + 0.5 + 1) / 3)  # of b: 0.25 beats 0.2, not 0.3
    assert METRICS["multiclass-logloss"](y[:1], prediction[:1]) == pytest.approx(-math.log(0.6))
    with pytest.raises(InputError, match="no molecule of this split has a class"):
        METRICS["multiclass-accuracy"](y[3:], prediction[3:])


@pytest.mark.parametrize(
    ("name", "y", "prediction", "score"),
    [
        ("rmse", [0, 0], [3, 4], 12.5**0.5),
        ("r2", [1, 2, 3], [1, 2, 5], -1.0),  # 1 - 4 / 2
        ("prauc", [0, 1, 1, 0], [0.9, 0.8, 0.3, 0.1], (1 / 2 + 2 / 3) / 2),
        ("accuracy", [1, 0, 1, 0], [0.6, 0.4, 0.2, 0.1], 0.75),
        ("accuracy", [1, 0, 1, 0], [0.5, 0.4, 0.2, 0.5], 0.5),
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
    found = Regression.scores(scaled * y, scaled * prediction)
    assert found["mae"] == pytest.approx(scale * 0.5) and found["rmse"] == pytest.approx(scale * (1.25 / 3) ** 0.5)
    assert found["r2"] == pytest.approx(1 - 1.25 / (14 / 3))


def test_an_equal_score_is_not_better_for_any_metric():
    lower, higher = {"mae", "rmse", "logloss", "multiclass-logloss"}, {"r2", "rocauc", "prauc", "accuracy"}
    assert {name for name, metric in METRICS.items() if metric.improves(0.8, 0.9)} == lower
    higher |= {"multiclass-accuracy", "spearman"}
    assert {name for name, metric in METRICS.items() if metric.improves(0.9, 0.8)} == higher
    assert not any(metric.improves(0.5, 0.5) for metric in METRICS.values())
