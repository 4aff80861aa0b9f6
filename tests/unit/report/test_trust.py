"""Reliability in words, by hand."""

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from graphormer_sepnorm.report.page import Axis, Chart
from graphormer_sepnorm.report.scores import distance_charts, of_sets, reliability_charts, trust_section
from tests.unit.report.conftest import reported


def told_of_sets(**shares: tuple[float | None, float | None]) -> dict:
    both = ({"0.9": {name: each[place] for name, each in shares.items()}} for place in (0, 1))
    return dict(zip(("set_coverage", "one_class"), both, strict=True))


def test_sets_of_classes_are_judged_for_each_target():
    several = reported(
        {"trust": {"calibrated_by": "validation molecules", **told_of_sets(x=(0.934, 0.41))}}, "multiclass"
    )
    _, found, reason = trust_section(several).words
    assert found == "90 % sets contain the class of 93 % of the test molecules; 41 % of the sets have one class."
    assert reason.startswith("Sets can contain the class less often than promised: a scaffold split puts the common")
    pair = reported(
        {"trust": told_of_sets(a=(0.93, 0.41), b=(0.8, 1.0), c=(None, None))},
        "classification",
        options={"split": "random"},
    )
    assert list(of_sets(pair)) == [
        "a: 90 % sets contain the class of 93 % of the test molecules; 41 % of the sets have one class.",
        "b: 90 % sets contain the class of 80 % of the test molecules; 100 % of the sets have one class.",
    ]
    assert list(of_sets(reported({"trust": {}}, "classification"))) == []


@pytest.mark.parametrize(("known", "line"), [(50, True), (49, False)])
def test_errors_are_drawn_against_both_distances_where_they_are_known(known, line):
    """With a running mean if there are enough; one similarity and all distances of embeddings are unknown."""
    similarity, errors = np.append(np.linspace(0.2, 0.4, known), np.nan), np.ones(known + 1)
    near = SimpleNamespace(similarity=similarity, distance=np.full(known + 1, np.nan))
    looked = SimpleNamespace(nearness=near, errors=errors, smiles=["C"] * (known + 1))
    (chart,) = distance_charts(reported(targets=("a",), looked=looked))
    assert chart.svg.count("<circle") == known and "C\nabsolute error 1.00" in chart.svg
    assert ('class="mean"' in chart.svg, "The line joins the means of 2 groups" in chart.words) == (line, line)


def test_calibration_is_drawn_before_and_after_for_targets_with_labels():
    y, after = np.array([[0.0, np.nan], [1, np.nan]]), np.array([[0.1, 0.5], [0.8, 0.5]])
    page = reported(kind="classification", test={"y": y, "prediction": after}, plain=after / 2)
    (chart,) = reliability_charts(page)
    assert "a: calibration" in chart.svg and chart.svg.count("<circle") == 2
    assert "mean predicted probability 0.100\n0 % are positive" in chart.svg
    before, calibrated = (
        [float(pair.split(",")[0]) for pair in line.get("points").split()]
        for kind in ("mean", "trend")
        for line in ElementTree.fromstring(chart.svg).findall(f"polyline[@class='{kind}']")
    )
    zero = Chart("", Axis("", (0, 1)), Axis("", (0, 1))).across(0)
    for small, large in zip(before, calibrated, strict=True):
        assert abs(2 * (small - zero) - (large - zero)) < 0.2
