"""Predictions of test molecules in charts and tables, by hand."""

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np

from graphormer_sepnorm.predict.intervals import Intervals
from graphormer_sepnorm.report import predictions
from graphormer_sepnorm.report.page import UNIT, Axis, Chart
from graphormer_sepnorm.report.predictions import (
    counts_grid,
    curve_charts,
    dots_of_target,
    hero,
    predictions_section,
    structures,
    thresholds_grid,
)
from graphormer_sepnorm.table_model.labels import Folds
from tests.unit.report.conftest import fitted, reported, table

NAN = float("nan")
ROWS = [("train", "C", [0.5, 1]), ("test", "CC", [1, NAN]), ("test", "CCC", [2.5, 3]), ("test", "CCO", [NAN, 4])]


def page(confidence: str | None = "0.5"):
    """Three test molecules, each without a label of a target; intervals of 2 on either side."""
    coverage = {} if confidence is None else {confidence: {"a": 0.5, "b": 0.5}}
    intervals = Intervals(np.tile([[1.0], [2], [9]], 2), np.zeros(2))
    test = {
        "y": np.array([[1, NAN], [2.5, 3], [NAN, 4]]),
        "prediction": np.array([[1.25, 0], [2, 3], [0, 5]]),
        "spread": np.zeros((3, 2)),
    }
    return reported(
        {"n": 3, "trust": {"coverage": coverage}},
        y=np.array([[0.5, 1]]),
        test=test,
        labelled=table(*ROWS, names={2: "CHEMBL2"}),
        fitted=fitted(
            [[0.5, 1], [0.5, 1]],
            trust={"intervals": intervals},
            out_of_fold=SimpleNamespace(values=np.array([[0.5, 1]])),
        ),
        folds=Folds(np.zeros(1, int)),
    )


def texts(chart: Chart) -> list[str]:
    return [title.text for title in ElementTree.fromstring(chart.svg).iter("title")]


def test_a_point_says_which_molecule_it_is_and_its_interval():
    dots = dots_of_target(page(), 0, None)
    assert [dot.words for dot in dots] == [
        "CHEMBL2\nCC\nmeasured 1.0\npredicted 1.2\n50 % interval -0.8 to 3.2",
        "row 3\nCCC\nmeasured 2.5\npredicted 2.0\n50 % interval 0.0 to 4.0",
    ]
    np.testing.assert_array_equal([dot.ends for dot in dots], [[-0.75, 3.25], [0, 4]])
    without = dots_of_target(page(None), 0, None)[0]
    assert np.isnan(without.ends).all() and "interval" not in without.words


def test_bounds_are_arrows_to_the_values_that_are_possible():
    """The first label is 1; the second is above 2.5, and the third below 0."""
    whole, nan, inf = page(), NAN, np.inf
    whole.test.y = np.array([[1, NAN], [nan, 3], [nan, 4]])
    whole.test.bounds = np.array([[-inf, inf], [2.5, inf], [-inf, 0]])[:, None].repeat(2, axis=1)
    dots = dots_of_target(whole, 0, whole.test.bounds)
    assert [(dot.x, dot.arrow) for dot in dots] == [(1, 0), (2.5, 1), (0, -1)]
    assert len(dots_of_target(whole, 0, None)) == 1
    chart, _ = hero(whole)
    drawn = [[float(corner.split(",")[0]) for corner in each.get("points").split()] for each in polygons(chart)]
    assert [tip > tail for tip, tail, _ in drawn] == [True, False]


def polygons(chart: Chart) -> list[ElementTree.Element]:
    return [each for each in ElementTree.fromstring(chart.svg).iter() if each.tag.endswith("polygon")]


def test_each_target_of_a_regression_has_three_charts():
    found = predictions_section(page()).charts
    first, second = hero(page())
    assert [len(texts(chart)) for chart in (first, second, found[0])] == [2, 2, 2] and len(found) == 4
    assert first.words.endswith("Lines: 50 % intervals of the predictions.")
    assert found[1].words == "1 training label (blue) and 2 test labels (orange)."


def test_a_confusion_table_by_hand():
    grid = counts_grid("a", ("inactive", "active"), np.array([0, 0, 0, 1, 1]), np.array([0, 1, 1, 1, 0]))
    assert grid.header == ("measured", "predicted inactive", "predicted active")
    assert grid.rows == (("inactive", "1", "2"), ("active", "1", "1"))
    one = counts_grid("a", ("0", "1"), np.ones(1_210), np.ones(1_210))
    assert one.rows == (("0", "0", "0"), ("1", "0", "1,210")), "no molecule is of the other class"


def test_thresholds_by_hand():
    y, probability = np.array([0.0, 0, 1, 1]), np.array([0.05, 0.4, 0.6, 0.8])
    rows = {row[0]: row[1:] for row in thresholds_grid("a", ("0", "1"), y, probability).rows}
    assert rows["0.3"] == ("3 (75%)", "1.00", "0.50", "0.67") and rows["0.7"] == ("1 (25%)", "0.50", "1.00", "1.00")
    assert rows["0.9"] == ("0 (0%)", "0.00", "1.00", "not defined"), "nothing is predicted as class 1"


def test_the_threshold_that_finds_most_positives():
    """Of the positives with 0.9, 0.8, ..., 0.1 and 0.05, the ninth has 0.1; a negative with 0.3 is predicted, too."""
    probability = np.array([*np.arange(9, 0, -1) / 10, 0.05, 0.3, 0.01])
    rows = {row[0]: row[1:] for row in thresholds_grid("a", ("0", "1"), np.r_[np.ones(10), 0, 0], probability).rows}
    assert rows["0.1 (finds 90%)"] == ("10 (83%)", "0.90", "0.50", "0.90")
    assert rows["0.2 (finds 80%)"][1] == "0.80" and rows["0.05 (finds 95%)"][1] == "1.00"


def test_a_classification_has_tables_probabilities_and_curves():
    told = {"n": 2, "trust": {}}
    test = {"y": np.array([[0.0], [1]]), "prediction": np.array([[0.2], [0.5]])}
    rows = [("test", "CC", [0]), ("test", "CCC", [1])]
    known = {"labelled": table(*rows), "fitted": fitted([[1]], trust={"intervals": None})}
    names = (("no", "yes"),)
    page = reported(told, "classification", ("a",), test=test, **known, class_names=names)
    section, (chart,) = predictions_section(page), hero(page)
    assert section.grids[0].rows == (("no", "1", "0"), ("yes", "0", "1")), "0.5 is class 1, as in predict"
    assert texts(chart)[1] == "row 2\nCCC\nmeasured yes\npredicted yes (probability of yes: 0.500)"
    names = [ElementTree.fromstring(chart.svg).get("aria-label") for chart in section.charts]
    assert names == ["a: ROC curve", "a: precision and recall"]


def test_several_classes_have_one_confusion_table_of_the_most_probable():
    y = np.array([[1.0, 0, 0], [0, 1, 0], [0, 1, 0], [NAN] * 3])
    test = {"y": y, "prediction": np.array([[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6], [1, 0, 0]])}
    page = reported({"trust": {}}, "multiclass", ("low", "mid", "high"), test=test, labelled=SimpleNamespace())
    section = predictions_section(page)
    assert section.grids[0].rows == (("low", "1", "0", "0"), ("mid", "0", "1", "1"), ("high", "0", "0", "0"))
    assert len(section.charts) == 2, "no molecule is of the third class"


def test_structures_are_of_the_worst_and_of_evenly_chosen_others(monkeypatch):
    """Of ten molecules, four: the two with the largest errors, and two of the others."""
    monkeypatch.setattr(predictions, "MOST_STRUCTURES", 4)
    smiles = ["C" * count for count in range(1, 11)]
    found = structures(smiles, np.array([0.5, 2, 0.5, 0.5, 3, 0.5, NAN, 0.5, 0.5, 0.5]))
    assert {"CC", "CCCCC"} < set(found) and len(found) == 4
    assert all("<svg" in svg and "class=" not in svg for svg in found.values())
    assert structures(["not a molecule"], np.ones(1)) == {}


def points_of_lines(chart: Chart) -> list[list[list[float]]]:
    """The points of the blue line and of the dashed one, in units of the axes from 0 to 1."""
    drawing = Chart("", Axis("", UNIT), Axis("", UNIT))
    (left, right), (bottom, top) = (drawing.across(0), drawing.across(1)), (drawing.up(0), drawing.up(1))
    found = []
    for kind in ("trend", "guide"):
        (line,) = ElementTree.fromstring(chart.svg).findall(f"polyline[@class='{kind}']")
        pixels = np.array([list(map(float, pair.split(","))) for pair in line.get("points").split()])
        found.append(((pixels - [left, bottom]) / [right - left, top - bottom]).round(2).tolist())
    return found


def test_a_roc_curve_and_precision_and_recall_by_hand():
    test = {"y": np.array([[0.0], [1], [1], [0], [NAN]]), "prediction": np.array([[0.1], [0.9], [0.2], [0.3], [1]])}
    page = reported(kind="classification", targets=("a",), test=test)
    roc, precision = curve_charts(page, with_precision=True)
    # by falling probability: positive, negative, positive, negative
    assert points_of_lines(roc) == [[[0, 0], [0, 0.5], [0.5, 0.5], [0.5, 1], [1, 1]], [[0, 0], [1, 1]]]
    assert points_of_lines(precision) == [[[1, 0.5], [1, 0.67], [0.5, 0.5], [0.5, 1], [0, 1]], [[0, 0.5], [1, 0.5]]]
    single = reported(kind="classification", targets=("a",), test=test | {"y": np.ones((5, 1))})
    assert not list(curve_charts(single, with_precision=True)), "undefined without both classes"
