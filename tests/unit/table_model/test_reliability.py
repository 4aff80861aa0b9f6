"""How far intervals hold, and errors by distance: by hand."""

import re
from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.predict.classes import ClassSets, fit_calibration
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.predict.predictors import Nearness
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.table_model.reliability import (
    ComparedMolecules,
    clear_error,
    error_words,
    errors_grow,
    low_coverage,
    measure_calibration,
    measure_interval,
    measure_trust,
    molecule_errors,
    no_better,
    unjudged,
    usual_confidence,
)
from graphormer_sepnorm.training.experiment import Scores

ONE = TaskConfig("regression", "mae", ("a",), mean=(0.0,), std=(9.0,))
TWO = TaskConfig("regression", "mae", ("a", "b"), mean=(0.0, 0.0), std=(2.0, 10.0))
CLASSES = TaskConfig("classification", "rocauc", ("a",))
INTERVALS = fit_intervals(np.array([[1.0], [2], [3]]), np.zeros((3, 1)), np.zeros((3, 1)))  # errors 1, 2 and 3


def scores(task, y, prediction) -> Scores:
    values = np.array(prediction, np.float64)
    return Scores({}, task, np.array(y, np.float64), values, values[None])


def test_errors_of_molecules_by_hand():
    assert molecule_errors(ONE, np.array([[1.0], [np.nan]]), np.array([[4.0], [0]])).tolist()[0] == 3
    y = np.array([[1.0, 5], [1, np.nan], [np.nan, np.nan]])
    found = molecule_errors(TWO, y, np.array([[3.0, 0], [2, 0], [0, 0]]))
    np.testing.assert_array_equal(found, [(2 / 2 + 5 / 10) / 2, 1 / 2, np.nan])
    assert molecule_errors(CLASSES, np.array([[1.0]]), np.array([[0.75]])).tolist() == [0.25]
    assert len({error_words(task, len(task.targets)) for task in (ONE, TWO, CLASSES)}) == 3
    assert error_words(TWO) == error_words(ONE), "each target by itself, in its own unit"


def test_coverage_and_width_on_test_by_hand():
    """Half of the labels lie within 2; no interval of 0.9 can be had of three."""
    test = scores(ONE, [[1.0], [2], [2.5], [9]], np.zeros((4, 1)))
    found = measure_interval(INTERVALS, 0.5, test)
    assert (found["coverage"], found["mean_width"]) == (0.5, 4)
    limits = scores(replace(ONE, limits=((0.0, None),)), [[1.0], [-1]], [[1.0], [1]])
    found = measure_interval(INTERVALS, 0.5, limits)
    assert (found["coverage"], found["mean_width"]) == (0.5, 3)
    found = measure_trust(Trust(fit_domain(["CCO"]), INTERVALS), test, test.prediction)
    assert found["coverage"]["0.5"] == {"a": 0.5} and found["mean_width"]["0.9"] == {"a": None}
    assert found["needed_factor"]["0.5"] == {"a": 1} and found["needed_factor"]["0.9"] == {"a": None}


def test_coverage_of_bounds_by_hand():
    """Intervals of 0.5 are 2 to each side of 0: they reach >1 and <-1, but not >2, and contain 1, but not 3."""
    nan, inf = np.nan, np.inf
    ends = np.array([[1, inf], [-inf, -1], [2, inf], [-inf, inf], [-inf, inf]])[:, None]
    test = replace(scores(ONE, [[nan], [nan], [nan], [1], [3]], np.zeros((5, 1))), bounds=ends)
    found = measure_trust(Trust(fit_domain(["CCO"]), INTERVALS), test, test.prediction)
    assert found["coverage"]["0.5"]["a"] == 0.5
    assert found["coverage_of_bounds"]["0.5"]["a"] == pytest.approx(2 / 3)
    assert found["coverage_of_all"]["0.5"]["a"] == 3 / 5
    assert found["coverage_of_all"]["0.9"]["a"] is None


def test_the_width_that_intervals_would_need_by_hand():
    """Intervals of 0.5 are 2 to each side; errors are 1, 3, 4, 9 and unknown: half are within 1.5 times as much."""
    test = scores(ONE, [[1.0], [-3], [4], [9], [np.nan]], np.zeros((5, 1)))
    assert measure_interval(INTERVALS, 0.5, test)["needed_factor"] == 1.5
    assert np.isnan(measure_interval(INTERVALS, 0.5, scores(ONE, [[np.nan]], [[0.0]]))["needed_factor"])


@pytest.mark.parametrize(("errors", "grow"), [(range(29, -1, -1), True), (range(30), False), ([1] * 30, False)])
def test_errors_grow_where_they_clearly_rise_as_similarity_falls(errors, grow):
    similarity = np.append(np.linspace(0.1, 0.9, 30), np.nan)
    assert errors_grow(similarity, np.append(np.array(errors, float), 99)) is grow
    assert not errors_grow(similarity[:29], np.array(errors[:29], float)), "too few to expect the same of others"


@pytest.mark.parametrize(
    ("share", "n", "is_low"), [(0.81, 113, True), (0.81, 21, False), (0.9, 1000, False), (0, 1, False)]
)
def test_a_coverage_that_chance_does_not_explain_is_said(share, n, is_low):
    """Of 113 labels with 0.9, at most 91 by chance of 0.0017; of 21, at most 17 by chance of 0.15."""
    told = {"trust": {"coverage": {"0.9": {"a": share}}}, "targets": {"a": {"n": n}}}
    assert bool(low_coverage(told)) == is_low
    assert [re.findall("[0-9]+", each) for each in low_coverage(told)] == [["81", "113", "90"]] * is_low


def test_the_usual_confidence_is_one_that_the_model_supports():
    assert usual_confidence({"coverage": {"0.5": {"a": 0.5}, "0.8": {"a": 0.8}, "0.9": {"a": None}}}) == "0.8"
    assert usual_confidence({"coverage": {"0.9": {"a": 0.9}, "0.95": {"a": 1.0}}}) == "0.9"
    assert usual_confidence({"coverage": {"0.9": {"a": None}}}) is usual_confidence({}) is None


def test_probabilities_are_measured_before_and_after_by_hand():
    plain, final = scores(CLASSES, [[1.0], [0]], [[0.5], [0.5]]), scores(CLASSES, [[1.0], [0]], [[1.0], [0]])
    trust = Trust(fit_domain(["CCO"]), calibration=fit_calibration(plain.y, plain.prediction))
    found = measure_trust(trust, final, plain.prediction)
    assert found["brier"] == {"before": {"a": 0.25}, "after": {"a": 0}}
    assert found["calibration_error"]["after"] == {"a": 0}
    found = measure_calibration(("a",), np.array([[1.0], [0]]), {"after": np.full((2, 1), 0.75)})
    assert found == {"calibration_error": {"after": {"a": 0.25}}, "brier": {"after": {"a": 0.3125}}}
    assert measure_trust(Trust(fit_domain(["CCO"])), final, plain.prediction) == {}


SETS = np.tile(np.linspace(0.1, 0.9, 9)[:, None, None], (1, 2, 2))  # at 0.9, a class of probability 0.1 is in the set


def test_sets_of_two_classes_are_measured_by_hand():
    """The sets are 0; 0; both; 1; both; and 0 of a molecule without a label. The second target has no labels."""
    y = np.array([[0, np.nan], [1, np.nan], [0, np.nan], [1, np.nan], [1, np.nan], [np.nan, np.nan]])
    probability = np.array([[0.05], [0.05], [0.5], [0.95], [0.5], [0.05]]) * np.ones((1, 2))
    test = scores(TaskConfig("classification", "rocauc", ("a", "b")), y, probability)
    found = measure_trust(Trust(fit_domain(["CCO"]), class_sets=ClassSets(SETS)), test, test.prediction)
    assert found["set_coverage"]["0.9"] == {"a": 0.8, "b": None} and found["one_class"]["0.9"] == {"a": 0.6, "b": None}


def test_sets_of_several_classes_are_measured_by_hand():
    """The sets are 0; 0 and 1; 1 and 2."""
    task = TaskConfig("multiclass", "rocauc", ("low", "middle", "high"))
    test = scores(task, np.eye(3)[[0, 2, 1]], [[0.9, 0.05, 0.05], [0.5, 0.45, 0.05], [0.05, 0.5, 0.45]])
    sets = ClassSets(np.tile(SETS[:, :1, :1], (1, 1, 3)))
    found = measure_trust(Trust(fit_domain(["CCO"]), class_sets=sets), test, test.prediction)
    assert found["set_coverage"]["0.9"] == {"low, middle, high": pytest.approx(2 / 3)}
    assert found["one_class"]["0.9"] == {"low, middle, high": pytest.approx(1 / 3)}


def test_errors_by_similarity_by_hand():
    similarity = np.array([0.1, 0.29, 0.3, 0.95, 1.0, np.nan])
    errors = np.array([1.0, 2, 3, 4, 6, 9])
    looked = ComparedMolecules([], Nearness(similarity, [""] * 6, similarity), ["", "x", "", "y", "", "z"], errors)
    found = looked.by_similarity()
    by_similarity = [(part["n"], part["error"]) for part in found["error_by_similarity"]]
    assert by_similarity == [(2, 1.5), (1, 3), (0, None), (0, None), (0, None), (2, 5)]
    assert (found["unfamiliar"], found["compared"]) == (2, 5)


@pytest.mark.parametrize(
    ("metric", "interval", "said"),
    [
        ("mae", [-0.3, -0.1], False), ("mae", [-0.3, 0.1], True), ("mae", [0.1, 0.2], True),
        ("rocauc", [0.1, 0.3], False), ("rocauc", [-0.1, 0.3], True), ("mae", None, False),
    ],
)  # fmt: skip
def test_a_model_that_is_no_better_than_the_mean_is_said(metric, interval, said):
    scores = {"stack": {metric: 0.5}, "mean": {metric: 0.6}}
    facts = {"n": 40, "scores": scores, "against_mean": {"difference": -0.1, "interval": interval}}
    assert bool(no_better({"metric": metric, "targets": {"y": facts}})) == said
    assert not no_better({"metric": metric, "targets": {"y": {"n": 0}}}) and not no_better({})


def test_a_calibration_error_that_chance_explains_is_none():
    """Half of the labels are 1: a probability of 0.5 is right, and one of 0.9 is off by 0.4."""
    y = np.tile([0.0, 1], 40)
    assert clear_error(y, np.full(80, 0.5)) is clear_error(y[:0], y[:0]) is None
    assert clear_error(y, np.full(80, 0.9)) == pytest.approx(0.4)


def test_targets_that_are_not_judged_are_said_once():
    result = {
        "metric": "rocauc",
        "targets": {"a": {"n": 9, "warning": "w"}, "b": {"n": 9}, "d": {"n": 1, "warning": "v"}},
        "left_out": {"a": "x", "c": "y"},
    }
    assert unjudged(result) == [
        "a is left out of the mean ROC-AUC: w", "d: v", "c is left out of the mean ROC-AUC: y"
    ]  # fmt: skip
    facts = {"warning": "w", "n": 9, "against_mean": {"interval": [-0.1, 0.1]}}
    assert no_better(result | {"targets": {"a": facts}}) == []
