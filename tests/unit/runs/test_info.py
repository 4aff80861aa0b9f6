from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.runs import plots
from graphormer_sepnorm.runs.info import describe_model, salts_words, vocabulary_words
from graphormer_sepnorm.runs.numbers import (
    counted,
    decimals_for,
    percent,
    shown,
    shown_interval,
    shown_together,
    significant,
)
from graphormer_sepnorm.runs.plots import binned, draw_roc, plot_predictions
from tests.tiny import save_tiny, tiny_model


def test_facts_of_a_model(tmp_path):
    facts = describe_model(save_tiny(tmp_path))
    model, _ = tiny_model()
    assert facts["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert facts["architecture"] == "Graphormer, 1 layers, width 16, FFN 16, 2 heads, sepnorm (post-norm)"
    assert (facts["epoch"], facts["validation"], facts["test"]) == (3, 0.5, None)
    assert (facts["task"], facts["targets"], facts["training_data"]) == ("regression", ["logp"], "sample")


def test_probabilities_are_of_the_second_class(tmp_path):
    names = (("safe", "toxic"), ("0", "1"))
    save_tiny(tmp_path, kind="classification", targets=("Ames", "hERG"), class_names=names)
    assert describe_model(tmp_path)["predicts"] == ["probability that Ames is toxic", "probability that hERG is 1"]
    assert describe_model(save_tiny(tmp_path / "other"))["predicts"] is None


def test_every_featurizer_is_described():
    for name, featurizer in FEATURIZERS.items():
        assert "bond" in vocabulary_words(name) and "parent" not in vocabulary_words(name)
        assert ("removed" if featurizer.preparation else "as written") in salts_words(name)
    assert "neutral parent" in salts_words("mol-standardized")


def test_things_are_counted():
    assert [counted(number, "row") for number in (0, 1, 1117)] == ["0 rows", "1 row", "1,117 rows"]


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([0.612, 0.08146], 3), ([0.08146], 4), ([1.5, None, float("nan"), 0.0], 2), ([1234.5, 7.0], 0),
        ([0.612, 0.0004], 4), ([0.612, 1e-9], 3), ([99.96, -0.5], 1), ([0.0, None], 2), ([], 2),
    ],
)  # fmt: skip
def test_the_largest_number_has_three_digits_and_none_becomes_zero(values, decimals):
    assert decimals_for(values) == decimals


def test_numbers_that_are_shown_together_have_the_same_decimals():
    assert shown_together([0.0815, 2.05], 0.0815) == ["0.0815", "2.0500"], "by the leading number"
    assert shown_together([0.08146, 0.612, None]) == ["0.081", "0.612", "not defined"]
    assert shown_interval([0.123456, 2]) == "0.12 to 2.00" and shown_interval(None) == "not defined"
    assert shown_interval([-0.00001, 0.5], 3) == "0.000 to 0.500"
    assert [shown(value) for value in (1.23456, 0.0, None, float("nan"))] == ["1.23", "0.00", *["not defined"] * 2]
    assert (percent(0.8147), percent(None)) == ("81 %", "not defined")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (9.0123, "9.01"), (9.0, "9.00"), (10.0, "10.0"), (100.04, "100"), (999.6, "1,000"), (1234.0, "1,230"),
        (463_700.0, "464,000"), (1_014_000.0, "1,010,000"), (-9_999_999.0, "-10,000,000"), (1e-5, "1.00e-05"),
        (0.012, "0.0120"), (2.5e7, "2.50e+07"),
    ],
)  # fmt: skip
def test_three_significant_digits_with_their_zeros(value, text):
    assert significant(value) == text


def test_a_roc_curve_by_hand():
    axis = Figure().subplots()
    draw_roc(axis, np.array([0, 1, 0, 1]), np.array([0.1, 0.4, 0.35, 0.3]))
    _, curve = axis.lines
    # by falling prediction: positive, negative, positive, negative
    assert curve.get_xydata().tolist() == [[0, 0], [0, 0.5], [0.5, 0.5], [0.5, 1], [1, 1]]


def test_bounds_are_arrows_at_their_ends(monkeypatch):
    """Of >2 the arrow points to the right, of <0 to the left; the exact label 1 is a point."""
    drawn: list[Figure] = []
    monkeypatch.setattr(plots, "save_png", lambda figure, picture: drawn.append(figure))
    inf, nan = np.inf, np.nan
    bounds = np.array([[2, inf], [-inf, 0], [-inf, inf]])[:, None]
    y, prediction = np.array([[nan], [nan], [1.0]]), np.array([[3.0], [4], [5]])
    plot_predictions(TaskConfig("regression", "mae", ("a",)), y, prediction, Path("a"), bounds)
    points, right, left = [each.get_offsets().filled(nan) for each in drawn[0].axes[0].collections]
    known = [each[np.isfinite(each).all(axis=1)].tolist() for each in (points, right, left)]
    assert known == [[[1, 5]], [[2, 3]], [[0, 4]]]


def test_bins_of_equally_many_by_hand():
    x, y = binned(np.array([9.0, *range(8), 10]), np.array([1.0, *[0] * 8, 3]))
    assert x.tolist() == [0.5, 2.5, 4, 5, 6, 7, 9, 10] and y.tolist() == [0, 0, 0, 0, 0, 0, 1, 3]
    assert binned(np.array([2.0]), np.array([5.0]))[1].tolist() == [5]
    x, y = binned(np.arange(5.0), np.array([0, 2.0, 4, 6, 11]), 2)
    assert x.tolist() == [1, 3.5] and y.tolist() == [2, 8.5], "bins of two or more"
    assert binned(np.arange(3.0), np.arange(3.0), 4)[1].tolist() == [1]


@pytest.mark.slow
def test_names_of_targets_are_no_formulas(tmp_path):
    """Matplotlib would take such a column name for an invalid formula."""
    names = ("$\\frac{x}$", "$b_{$")
    y, p = np.array([[0.0, 1], [1, 0], [1, np.nan]]), np.array([[0.1, 0.8], [0.7, 0.2], [0.6, 0.5]])
    plot_predictions(TaskConfig("classification", "rocauc", names), y, p, tmp_path)
    without = np.stack([y[:, 0], np.full(3, np.nan)], axis=1)
    plot_predictions(TaskConfig("regression", "mae", names), without, p, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"roc.png", "parity.png"}
