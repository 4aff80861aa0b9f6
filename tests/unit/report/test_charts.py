"""Charts by their marks, with positions by hand."""

from xml.etree import ElementTree

import numpy as np
import pytest

from graphormer_sepnorm.report.page import BOTTOM, LARGE, LEFT, RIGHT, SMALL, TOP, Axis, Chart
from graphormer_sepnorm.report.predictions import dots_of, histogram_chart, parity_chart, residual_chart, strip_chart
from graphormer_sepnorm.report.scores import coverage_chart, learning_chart
from graphormer_sepnorm.table_model.reliability import CURVE

ENDS = np.array([[0.0, 2], [5, 9]])
TWO = dots_of(np.array([0.0, 10]), None, np.array([1.0, 7]), ["one", "two"].__getitem__, ENDS)
UNIT = Axis("", (0, 1))


def parsed(chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(chart.svg)


def marks(chart: Chart) -> list[ElementTree.Element]:
    return parsed(chart).findall("g[@class='mark']")


def titles(chart: Chart) -> list[str]:
    return [mark.find("title").text for mark in marks(chart)]


def test_an_axis_has_round_ticks_around_all_values():
    axis = Axis.around("x", np.array([0.1, np.nan, 9.7]), np.array([np.inf]))
    assert axis.ticks == (0, 2, 4, 6, 8, 10) and [text for _, text in axis.named] == ["0", "2", "4", "6", "8", "10"]
    assert [axis.share(value) for value in (0, 5, 10)] == [0, 0.5, 1]
    assert [text for _, text in Axis.around("x", np.array([1e6, 1e6 + 1])).named[1:3]] == ["1000000.2", "1000000.4"]
    for values in ([3.0], [], [np.nan]):
        ticks = Axis.around("x", np.array(values)).ticks
        assert ticks[0] < ticks[-1] and all(ticks[0] <= value <= ticks[-1] for value in values if value == value)


def test_values_lie_on_the_chart_where_the_axes_say():
    axis = Axis("x", (0.0, 5, 10))
    drawing = Chart("", axis, axis)
    assert (drawing.across(0), drawing.across(10)) == (LEFT, SMALL[0] - RIGHT)
    assert (drawing.up(0), drawing.up(10)) == (SMALL[1] - BOTTOM, TOP)


def test_parity_has_a_point_and_an_interval_for_each_molecule():
    chart = parity_chart("a", TWO)
    drawing = Chart("", *[Axis("", tuple(range(0, 11, 2)))] * 2, size=LARGE)
    first, second = marks(chart)
    assert titles(chart) == ["one", "two"]
    assert first.find("circle").get("cx") == f"{drawing.across(0):.1f}"
    assert second.find("circle").get("cy") == f"{drawing.up(7):.1f}"
    ends = second.find("polyline").get("points").split()
    assert ends == [f"{drawing.across(10):.1f},{drawing.up(y):.1f}" for y in (5, 9)]
    without = parity_chart("a", [dot._replace(ends=(np.nan, np.nan)) for dot in TWO])
    assert marks(without)[0].find("polyline") is None


def test_residuals_are_measured_minus_predicted():
    chart = residual_chart("a", TWO)
    heights = [float(mark.find("circle").get("cy")) for mark in marks(chart)]
    drawing = Chart("", UNIT, Axis("", (-1, 0, 1, 2, 3)))
    assert heights == pytest.approx([drawing.up(-1), drawing.up(3)], abs=0.1)


def test_coverage_has_a_point_where_it_is_defined():
    chart = coverage_chart("a", np.where(np.array(CURVE) == 0.5, 0.4, np.nan))
    assert titles(chart) == ["50 % intervals\n40 % of the test values are inside"]
    drawing = Chart("", UNIT, UNIT)
    circle = marks(chart)[0].find("circle")
    assert (circle.get("cx"), circle.get("cy")) == (f"{drawing.across(0.5):.1f}", f"{drawing.up(0.4):.1f}")


def test_a_histogram_has_the_share_of_labels_in_each_bin():
    chart = histogram_chart("a", np.array([0.0, 0, 0, 1]), np.array([1.0]))
    assert titles(chart) == [
        "0 to 0.5: 3 of 4 training labels",
        "0.5 to 1: 1 of 4 training labels",
        "0 to 0.5: 0 of 1 test labels",
        "0.5 to 1: 1 of 1 test labels",
    ]
    heights = [float(mark.find("rect").get("height")) for mark in marks(chart)]
    assert heights[0] == pytest.approx(3 * heights[1], abs=0.2) and heights[2] == 0
    assert heights[3] == pytest.approx(4 * heights[1], abs=0.3)
    assert len(marks(histogram_chart("a", np.ones(3), np.empty(0)))) == 2, "all labels are equal"
    far = histogram_chart("a", np.array([1e6, 1e6 + 1]), np.empty(0))
    assert titles(far)[0] == "1000000 to 1000000.5: 1 of 2 training labels"


def test_probabilities_are_in_the_row_of_their_class():
    points = dots_of(np.array([0.0, 1]), None, np.array([0.2, 0.9]), ["one", "two"].__getitem__)
    chart = strip_chart("a", points, ("inactive", "active"))
    drawing = Chart("", UNIT, Axis("", (-0.5, 1.5)), size=LARGE)
    for mark, x, y in zip(marks(chart), (0.2, 0.9), (0, 1), strict=True):
        circle = mark.find("circle")
        assert float(circle.get("cx")) == pytest.approx(drawing.across(x), abs=0.1)
        assert drawing.up(y + 0.31) < float(circle.get("cy")) < drawing.up(y - 0.31)
    assert "inactive" in chart.svg and "predicted probability of active" in chart.svg


def test_a_learning_curve_has_the_scores_that_are_defined():
    facts = {"values": [None, 0.5, 0.25], "interval": [None, [0.4, 0.6], [0.2, 0.3]]}
    facts["last_doubling"] = {"difference": -0.25, "interval": [-0.3, -0.2]}
    chart = learning_chart("a", "mae", [25, 50, 1000], facts)
    assert titles(chart) == [
        "50 training molecules\nMAE 0.500\n95 % interval 0.400 to 0.600",
        "1,000 training molecules\nMAE 0.250\n95 % interval 0.200 to 0.300",
    ]
    (trend,) = parsed(chart).findall("polyline[@class='trend']")
    assert len(trend.get("points").split()) == 2
