"""Conformal sets of classes."""

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.classes import ClassSets, fit_class_sets
from graphormer_sepnorm.runs.arrays import read_part


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def test_a_class_is_in_a_set_unless_it_is_less_probable_than_of_its_own_molecules():
    """Of class 1: four molecules, so four of five places are at or below 0.6, one at or below 0.1."""
    y, probability = column(1, 1, 1, 1, 0, 0, 0, 0), column(0.2, 0.4, 0.6, 0.8, 0.1, 0.1, 0.1, 0.1)
    sets = fit_class_sets(y, probability, exclude_each_other=False)
    held = sets.holds(column(0.6, 0.1, 0.95), 0.6)[:, 0]
    np.testing.assert_array_equal(held[:, 1], [True, False, True])  # 4 / 5, 1 / 5 and 5 / 5, against 0.4
    np.testing.assert_array_equal(held[:, 0], [False, True, False])  # 1 / 5, 5 / 5 and 1 / 5
    assert sets.texts(0, column(0.1, 0.95, np.nan), 0.6, ("no", "yes")) == ["no", "yes", ""]


def test_a_class_of_few_molecules_is_in_every_set():
    sets = fit_class_sets(column(1, 0, 0, 0), column(0.9, 0.1, 0.1, 0.1), exclude_each_other=False)
    assert sets.texts(0, column(0.001), 0.5, ("0", "1")) == ["0"], "1 / 2 is not above 0.5"
    assert sets.texts(0, column(0.001), 0.9, ("0", "1")) == ["0; 1"]


def test_a_class_that_is_as_probable_as_the_confidence_leaves_is_out():
    """One of ten places is not above 1 - 0.9, which is a little less than 0.1 in floating-point numbers."""
    sets = fit_class_sets(column(*[1] * 9, 0), column(*[0.9] * 9, 0.1), exclude_each_other=False)
    assert sets.texts(0, column(0.01), 0.9, ("0", "1")) == ["0"]


def test_the_most_probable_class_is_in_every_set():
    """Of class 1 one of 11 places is at or below 0.4, of class 0 one of 51 at or below 0.6; then one and all."""
    y, probability = column(*[0] * 50, *[1] * 10), column(*[0.01] * 50, *[0.99] * 10)
    sets = fit_class_sets(y, probability, exclude_each_other=False)
    np.testing.assert_array_equal(sets.holds(column(0.4), 0.5)[0, 0], [True, False])
    rare = fit_class_sets(y, np.where(y == 1, 0.05, probability), exclude_each_other=False)
    np.testing.assert_array_equal(rare.holds(column(0.05), 0.5)[0, 0], [True, True])


def test_classes_of_one_column_are_one_group():
    y, probability = np.eye(3)[[0, 1, 2] * 20], np.tile([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]], (20, 1))
    sets = fit_class_sets(y, probability, exclude_each_other=True)
    assert sets.scores.shape == (60, 1, 3) and sets.fits(3) and not sets.fits(2)
    asked = np.array([[0.05, 0.15, 0.8], [0.7, 0.7, 0.1]])
    assert sets.texts(0, asked, 0.9, ("a", "b", "c")) == ["c", "a; b"]


def test_sets_hold_the_class_as_often_as_they_promise():
    """Of molecules of each class, though one of ten is of class 1."""
    rng = np.random.default_rng(0)
    y = (rng.random((4000, 1)) < 0.1).astype(float)
    probability = 1 / (1 + np.exp(-(rng.normal(size=y.shape) + 2 * y - 2)))
    sets = fit_class_sets(y[:2000], probability[:2000], exclude_each_other=False)
    held = sets.holds(probability[2000:], 0.8)[:, 0]
    for label in (0, 1):
        asked = y[2000:, 0] == label
        assert held[asked, label].mean() > 0.8 - 3 * np.sqrt(0.16 / asked.sum()) - 0.04
    assert held.all(axis=1).mean() < 0.3, "sets of both classes say nothing"


@pytest.mark.parametrize("confidence", [0, 1, -0.1, np.nan])
def test_a_confidence_that_is_none(confidence):
    with pytest.raises(InputError, match="choose one between 0 and 1"):
        ClassSets(np.full((1, 1, 2), 0.5)).holds(column(0.5), confidence)


def test_what_is_read(tmp_path):
    scores = np.full((3, 2, 2), 0.5)
    assert read_part(ClassSets, "sets", {}, tmp_path) is None
    np.testing.assert_array_equal(read_part(ClassSets, "sets", {"sets.scores": scores}, tmp_path).scores, scores)
    with pytest.raises(InputError, match="damaged"):
        read_part(ClassSets, "sets", {"sets.scores": scores[0]}, tmp_path)
