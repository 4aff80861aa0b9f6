from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.runs import plots
from graphormer_sepnorm.runs.plots import binned, draw_parity, draw_roc, plot_predictions


def test_the_diagonal_of_a_parity_plot_spans_labels_and_predictions():
    axis = Figure().subplots()
    draw_parity(axis, np.array([0.0, 2.0]), np.array([-1.0, 1.0]))
    (diagonal,) = axis.lines
    assert diagonal.get_xydata().tolist() == [[-1, -1], [2, 2]]
    assert axis.collections[0].get_offsets().tolist() == [[0, -1], [2, 1]]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("measured", "predicted")


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
    plot_predictions(TaskConfig("regression", "mae", ("a",)), y, prediction, Path("a.png"), bounds)
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


def test_names_of_targets_are_no_formulas(tmp_path):
    """Matplotlib would take such a column name for an invalid formula."""
    names = ("$\\frac{x}$", "$b_{$")
    y, p = np.array([[0.0, 1], [1, 0], [1, np.nan]]), np.array([[0.1, 0.8], [0.7, 0.2], [0.6, 0.5]])
    plot_predictions(TaskConfig("classification", "rocauc", names), y, p, tmp_path / "a.png")
    without = np.stack([y[:, 0], np.full(3, np.nan)], axis=1)
    plot_predictions(TaskConfig("regression", "mae", names), without, p, tmp_path / "e.png")
    assert len(list(tmp_path.iterdir())) == 2
