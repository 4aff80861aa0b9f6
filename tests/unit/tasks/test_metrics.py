import math

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tasks.kinds import Regression
from graphormer_sepnorm.tasks.metrics import METRICS

NAN = float("nan")


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
    assert METRICS["multiclass-logloss"](y[:1], prediction[:1]) == pytest.approx(
        -math.log(0.6)
    )  # of the first class only
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


@pytest.mark.parametrize("name", METRICS)
def test_scores_are_computed_in_double_precision(name):
    """Labels and predictions are stored in single precision, which represents both exactly."""
    rng = np.random.default_rng(0)
    y = (
        np.eye(3, dtype=np.float32)[rng.integers(3, size=500)]
        if name.startswith("multi")
        else rng.integers(2, size=(500, 1))
    )
    prediction = rng.random(y.shape, np.float32)
    assert METRICS[name](y.astype(np.float32), prediction) == METRICS[name](y.astype(float), prediction.astype(float))


def test_an_equal_score_is_not_better_for_any_metric():
    lower, higher = {"mae", "rmse", "logloss", "multiclass-logloss"}, {"r2", "rocauc", "prauc", "accuracy"}
    assert {name for name, metric in METRICS.items() if metric.improves(0.8, 0.9)} == lower
    higher |= {"multiclass-accuracy", "spearman"}
    assert {name for name, metric in METRICS.items() if metric.improves(0.9, 0.8)} == higher
    assert not any(metric.improves(0.5, 0.5) for metric in METRICS.values())
