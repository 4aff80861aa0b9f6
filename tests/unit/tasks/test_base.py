from dataclasses import replace

import numpy as np
import pytest
import torch

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.benchmarks import HIV, MAE
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tasks import METRICS, TASKS, make_task

NAN = float("nan")


def test_weights_by_hand():
    config = TaskConfig("regression", "mae", ("a", "b"), mean=(0.0, 0.0), std=(1.0, 1.0), weights=(3.0, 1.0))
    output, y = torch.tensor([[1.0, 2.0], [1.0, 2.0]]), torch.tensor([[0.0, 0.0], [NAN, 0.0]])
    assert make_task(config).loss(output, y).item() == pytest.approx((3 * 1 + 2 + 2) / 5)
    assert make_task(config).counts(y).tolist() == [[3.0, 1.0], [0.0, 1.0]]
    small = replace(config, weights=(0.25, 0.25))
    assert make_task(small).loss(output[:1], y[:1]).item() == pytest.approx(1.5)
    assert make_task(small).loss(output, torch.full((2, 2), NAN)).item() == 0


def test_weights_of_molecules_by_hand():
    known = make_task(TaskConfig("regression", "mae", ("a", "b"), mean=(0.0, 0.0), std=(1.0, 1.0), weights=(3.0, 1.0)))
    output, y = torch.tensor([[1.0, 2.0], [1.0, 2.0]]), torch.tensor([[0.0, 0.0], [NAN, 0.0]])
    weight = torch.tensor([1.0, 0.5])
    assert known.counts(y, None, weight).tolist() == [[3.0, 1.0], [0.0, 0.5]]
    assert known.loss(output, y, None, weight).item() == pytest.approx((3 * 1 + 2 + 0.5 * 2) / 4.5)


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
    with pytest.raises(
        InputError, match="metric 'accuracy' does not score a multiclass: choose one of rocauc, prauc, mul"
    ):
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


def test_one_constant_target_of_two_is_no_obstacle():
    make_task(replace(MAE, targets=("a", "b"))).check_learnable(np.array([[5.0, 1.0], [5.0, 2.0]]))
    with pytest.raises(InputError, match="the val split has no molecules"):
        make_task(MAE).check_targets(np.empty((0, 1)), "val")


@pytest.mark.parametrize("kind", TASKS.values())
def test_curves_have_a_score_even_where_all_labels_are_the_same(kind):
    y = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert kind.curve_metric in kind.metrics and np.isfinite(METRICS[kind.curve_metric](y, np.full_like(y, 0.5)))


@pytest.mark.parametrize("kind", TASKS)
def test_labels_that_would_be_broadcast_are_refused(kind):
    """As PyG's ZINC gives them."""
    task = make_task(
        replace(MAE, mean=(0.0,), std=(1.0,)) if kind == "regression" else TaskConfig(kind, "logloss", ("a",))
    )
    with pytest.raises(InputError, match=r"the labels are \[3\], the output \[3, 1\]"):
        task.loss(torch.zeros(3, 1), torch.zeros(3))
