"""Predictions of test molecules in charts and tables, by hand: charts by the positions of their marks."""

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from graphormer_sepnorm.predict.intervals import Intervals
from graphormer_sepnorm.report import predictions
from graphormer_sepnorm.report.charts import BOTTOM, LARGE, LEFT, RIGHT, SMALL, TOP, Axis, Chart, Dot
from graphormer_sepnorm.report.predictions import dots_of_target, hero, predictions_section
from graphormer_sepnorm.report.scores import coverage_chart, learning_chart
from graphormer_sepnorm.table_model.labels import Folds
from graphormer_sepnorm.table_model.reliability import CURVE
from tests.unit.report.conftest import fitted, reported, table

NAN = float("nan")
ROWS = [("train", "C", [0.5, 1]), ("test", "CC", [1, NAN]), ("test", "CCC", [2.5, 3]), ("test", "CCO", [NAN, 4])]


def page(confidence: str | None = "0.5"):
    """Three test molecules, each without a label of a target; intervals of 2 on either side."""
    coverage = {} if confidence is None else {confidence: {"a": 0.5, "b": 0.5}}
    intervals = Intervals(np.tile([[1.0], [2], [9]], 2), np.zeros(2))
    y, values = np.array([[1, NAN], [2.5, 3], [NAN, 4]]), np.array([[0.5, 1]])
    known = SimpleNamespace(values=values)
    return reported(
        {"targets": {"a": {"n": 2}, "b": {"n": 2}}, "trust": {"coverage": coverage}},
        y=values,
        test={"y": y, "prediction": np.array([[1.25, 0], [2, 3], [0, 5]]), "spread": np.zeros((3, 2))},
        labelled=table(*ROWS, names={2: "CHEMBL2"}),
        fitted=fitted([[0.5, 1], [0.5, 1]], trust={"intervals": intervals}, out_of_fold=known),
        folds=Folds(np.zeros(1, int)),
    )


def marks(chart: Chart) -> list[ElementTree.Element]:
    return ElementTree.fromstring(chart.svg).findall("g[@class='mark']")


def titles(chart: Chart) -> list[str]:
    return [mark.find("title").text for mark in marks(chart)]


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
    corners = [each.get("points").split() for each in ElementTree.fromstring(chart.svg).iter("polygon")]
    drawn = [[float(corner.split(",")[0]) for corner in each] for each in corners]
    assert [tip > tail for tip, tail, _ in drawn] == [True, False]


def test_each_target_of_a_regression_has_three_charts():
    found = predictions_section(page()).charts
    first, second = hero(page())
    assert [len(titles(chart)) for chart in (first, second, found[0])] == [2, 2, 2] and len(found) == 4
    assert first.words.endswith("Lines: 50 % intervals of the predictions.")
    assert found[1].words == "1 training label (blue) and 2 test labels (orange)."


def test_a_confusion_table_by_hand():
    grid = predictions.counts_grid("a", ("inactive", "active"), np.array([0, 0, 0, 1, 1]), np.array([0, 1, 1, 1, 0]))
    assert grid.header == ("measured", "predicted inactive", "predicted active")
    assert grid.rows == (("inactive", "1", "2"), ("active", "1", "1"))
    one = predictions.counts_grid("a", ("0", "1"), np.ones(1_210), np.ones(1_210))
    assert one.rows == (("0", "0", "0"), ("1", "0", "1,210")), "no molecule is of the other class"


def test_thresholds_by_hand():
    y, probability = np.array([0.0, 0, 1, 1]), np.array([0.05, 0.4, 0.6, 0.8])
    rows = {row[0]: row[1:] for row in predictions.thresholds_grid("a", ("0", "1"), y, probability).rows}
    assert rows["0.3"] == ("3 (75%)", "1.00 (2 of 2)", "0.50 (1 of 2)", "0.67 (2 of 3)")
    assert rows["0.7"] == ("1 (25%)", "0.50 (1 of 2)", "1.00 (2 of 2)", "1.00 (1 of 1)")
    assert rows["0.9"][-1] == "not defined", "nothing is predicted as class 1"


def test_the_threshold_that_finds_most_positives():
    """Of the positives with 0.9, 0.8, ..., 0.1 and 0.05, the ninth has 0.1; a negative with 0.3 is predicted, too."""
    probability = np.array([*np.arange(9, 0, -1) / 10, 0.05, 0.3, 0.01])
    grid = predictions.thresholds_grid("a", ("0", "1"), np.r_[np.ones(10), 0, 0], probability)
    rows = {row[0]: row[1:] for row in grid.rows}
    assert rows["0.1 (finds 90%)"] == ("10 (83%)", "0.90 (9 of 10)", "0.50 (1 of 2)", "0.90 (9 of 10)")
    assert rows["0.2 (finds 80%)"][1] == "0.80 (8 of 10)" and rows["0.05 (finds 95%)"][1] == "1.00 (10 of 10)"
    (*_, last) = predictions.thresholds_grid("a", ("0", "1"), np.ones(1), np.array([0.063364])).rows
    assert last[:3] == ("0.0633 (finds 80%)", "1 (100%)", "1.00 (1 of 1)"), "rounded down"


def test_a_classification_has_tables_probabilities_and_curves():
    told = {"n": 2, "trust": {}}
    test = {"y": np.array([[0.0], [1]]), "prediction": np.array([[0.2], [0.5]])}
    rows = [("test", "CC", [0]), ("test", "CCC", [1])]
    known = {"labelled": table(*rows), "fitted": fitted([[1]], trust={"intervals": None})}
    names = (("no", "yes"),)
    page = reported(told, "classification", ("a",), test=test, **known, class_names=names)
    section, (chart,) = predictions_section(page), hero(page)
    assert section.grids[0].rows == (("no", "1", "0"), ("yes", "0", "1")), "0.5 is class 1, as in predict"
    assert titles(chart)[1] == "row 2\nCCC\nmeasured yes\npredicted yes (probability of yes: 0.500)"
    assert [chart.title for chart in section.charts] == ["a: ROC curve", "a: precision and recall"]


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
    found = predictions.structures(smiles, np.array([0.5, 2, 0.5, 0.5, 3, 0.5, NAN, 0.5, 0.5, 0.5]))
    assert {"CC", "CCCCC"} < set(found) and len(found) == 4
    assert all("<svg" in svg and "class=" not in svg for svg in found.values())
    assert predictions.structures(["not a molecule"], np.ones(1)) == {}


def test_a_roc_curve_and_precision_and_recall_by_hand():
    test = {"y": np.array([[0.0], [1], [1], [0], [NAN]]), "prediction": np.array([[0.1], [0.9], [0.2], [0.3], [1]])}
    page = reported(kind="classification", targets=("a",), test=test)
    roc, precision = predictions.curve_charts(page)
    # by falling probability: positive, negative, positive, negative
    blue = [list(zip(*np.round(chart.lines["trend"], 2).tolist(), strict=True)) for chart in (roc, precision)]
    assert blue[0] == [(0, 0), (0, 0.5), (0.5, 0.5), (0.5, 1), (1, 1)]
    assert blue[1] == [(1, 0.5), (1, 0.67), (0.5, 0.5), (0.5, 1), (0, 1)]
    assert [chart.lines["guide"] for chart in (roc, precision)] == [([0, 1], [0, 1]), ([0, 1], [0.5, 0.5])]
    single = reported(kind="classification", targets=("a",), test=test | {"y": np.ones((5, 1))})
    assert not list(predictions.curve_charts(single)), "undefined without both classes"


TWO = [Dot(0.0, 1.0, "one", (0, 2)), Dot(10.0, 7.0, "two", (5, 9))]


def test_an_axis_has_round_ticks_around_all_values():
    axis = Axis.around("x", np.array([0.1, np.nan, 9.7]), np.array([np.inf]))
    assert axis.ticks == (0, 2, 4, 6, 8, 10)
    assert [axis.share(value) for value in (0, 5, 10)] == [0, 0.5, 1]
    assert ">1000000.2<" in Chart("", Axis.around("x", np.array([1e6, 1e6 + 1])), axis).svg
    for values in ([3.0], [], [np.nan]):
        ticks = Axis.around("x", np.array(values)).ticks
        assert ticks[0] < ticks[-1] and all(ticks[0] <= value <= ticks[-1] for value in values if value == value)


def test_values_lie_on_the_chart_where_the_axes_say():
    axis = Axis("x", (0.0, 5, 10))
    drawing = Chart("", axis, axis)
    assert (drawing.across(0), drawing.across(10)) == (LEFT, SMALL[0] - RIGHT)
    assert (drawing.up(0), drawing.up(10)) == (SMALL[1] - BOTTOM, TOP)


def test_parity_has_a_point_and_an_interval_for_each_molecule():
    chart = predictions.parity_chart("a", TWO, 0.9)
    drawing = Chart("", *[Axis("", tuple(range(0, 11, 2)))] * 2, size=LARGE)
    first, second = marks(chart)
    assert titles(chart) == ["one", "two"]
    assert first.find("circle").get("cx") == f"{drawing.across(0):.1f}"
    assert second.find("circle").get("cy") == f"{drawing.up(7):.1f}"
    ends = second.find("polyline").get("points").split()
    assert ends == [f"{drawing.across(10):.1f},{drawing.up(y):.1f}" for y in (5, 9)]
    without = predictions.parity_chart("a", [dot._replace(ends=(np.nan, np.nan)) for dot in TWO], 0.9)
    assert marks(without)[0].find("polyline") is None


def test_residuals_are_measured_minus_predicted():
    assert [dot[:3] for dot in predictions.residual_chart("a", TWO).dots] == [(1, -1, "one"), (7, 3, "two")]


def test_coverage_has_a_point_where_it_is_defined():
    chart = coverage_chart("a", np.where(np.array(CURVE) == 0.5, 0.4, np.nan))
    assert [dot[:3] for dot in chart.dots] == [(0.5, 0.4, "50 % intervals\n40 % of the test values are inside")]


def test_a_histogram_has_the_share_of_labels_in_each_bin():
    chart = predictions.histogram_chart("a", np.array([0.0, 0, 0, 1]), np.array([1.0]))
    assert titles(chart) == [
        "0 to 0.5: 3 of 4 training labels",
        "0.5 to 1: 1 of 4 training labels",
        "0 to 0.5: 0 of 1 test labels",
        "0.5 to 1: 1 of 1 test labels",
    ]
    heights = [float(mark.find("rect").get("height")) for mark in marks(chart)]
    assert heights == pytest.approx([chart.up(0) - chart.up(share) for share in (75, 25, 0, 100)], abs=0.1)
    assert len(marks(predictions.histogram_chart("a", np.ones(3), np.empty(0)))) == 1, "all labels are equal"
    far = predictions.histogram_chart("a", np.array([1e6, 1e6 + 1]), np.empty(0))
    assert titles(far)[0] == "1000000 to 1000000.5: 1 of 2 training labels"


def test_probabilities_are_in_the_row_of_their_class():
    chart = predictions.strip_chart("a", [Dot(0, 0.2, "one"), Dot(1, 0.9, "two")], ("inactive", "active"))
    assert [(dot.x, round(dot.y)) for dot in chart.dots] == [(0.2, 0), (0.9, 1)]
    assert "inactive" in chart.svg and "predicted probability of active" in chart.svg


def test_a_learning_curve_has_the_scores_that_are_defined():
    facts = {"values": [None, 0.5, 0.25], "interval": [None, [0.4, 0.6], [0.2, 0.3]]}
    facts["last_doubling"] = {"difference": -0.25, "interval": [-0.3, -0.2]}
    chart = learning_chart("a", "mae", [25, 50, 1000], facts)
    assert titles(chart) == [
        "50 training molecules\nMAE 0.500\n95 % interval 0.400 to 0.600",
        "1,000 training molecules\nMAE 0.250\n95 % interval 0.200 to 0.300",
    ]
    assert [values.tolist() for values in chart.lines["trend"]] == [[50, 1000], [0.5, 0.25]]
