"""Reliability in words, by hand."""

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from graphormer_sepnorm.report import trust
from graphormer_sepnorm.report.charts import Axis, Chart
from graphormer_sepnorm.report.trust import (
    distance_charts,
    distance_section,
    of_sets,
    reliability_charts,
    trust_section,
    unlike_words,
)
from graphormer_sepnorm.table_model.labels import Folds
from tests.unit.report.conftest import fitted, reported


def test_what_is_not_calibrated_is_said_for_its_own_reason():
    def words(kind: str) -> str:
        return trust_section(reported({"trust": {"calibrated_by": "validation molecules"}}, kind)).words[0]

    sets = "Instead of intervals there are sets of classes."
    assert words("multiclass") == f"Multiclass probabilities are not calibrated. {sets}"
    assert words("regression") == "No intervals: a target has no labels among the validation molecules."


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


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ("scaffold", "a scaffold split puts the common scaffolds into the training set"),
        ("butina", "a butina split puts the large clusters"),
        ("time", "a time split tests on the latest molecules"),
        ("random", None),
        ("column", None),
    ],
)
def test_a_split_whose_test_molecules_differ_is_a_reason_for_a_low_coverage(split, words):
    options = {"split": split, "split_column": "when" if split in ("time", "column") else None}
    found = list(unlike_words(reported({"trust": {}}, options=options), "Coverage can be below the confidence"))
    assert [text.startswith(f"Coverage can be below the confidence: {words}") for text in found] == [True] * bool(words)
    assert all(text.endswith("can be larger than on the molecules used for calibration.") for text in found)


@pytest.mark.parametrize("grow", [True, False])
def test_a_low_similarity_is_named_only_where_errors_grow(grow):
    found = list(unlike_words(reported({"trust": {"errors_grow": grow}}, options={"split": "random"}), ""))
    assert [text[:68] for text in found] == [
        "On these test molecules, errors grow as the similarity to the traini"
    ] * grow


@pytest.mark.parametrize("width", [None, 2.0])
def test_an_undefined_level_is_explained_where_there_is_one(monkeypatch, width):
    monkeypatch.setattr(trust, "coverage_curve", lambda intervals, test: np.zeros((0, 0)))
    told = {
        "calibrated_on": 1_210,
        "calibrated_by": "validation molecules",
        "coverage": {"0.5": {"a": 0.5}, "0.9": {"a": None if width is None else 0.8}},
        "mean_width": {"0.5": {"a": 1.0}, "0.9": {"a": width}},
    }
    y, folds = np.array([[1.0, 2.0], [2, np.nan], [3, 3]]), Folds(np.array([0, 0, -1]))
    known = fitted([[1.0]], trust={"intervals": ()})
    page = reported({"trust": told, "targets": {"a": {"n": 9}}}, targets=("a",), y=y, folds=folds, fitted=known)
    section = trust_section(page)
    assert "1 to 2 exact labels of the validation" in section.words[0]
    assert ("Not defined: this level needs more" in section.words[0]) == (width is None)


@pytest.mark.parametrize(("brier", "same"), [(0.2001, True), (0.25, False)])
def test_a_calibration_that_changes_nothing_is_named(monkeypatch, brier, same):
    monkeypatch.setattr(trust, "reliability_charts", lambda page: ())
    told = {
        "calibrated_on": 9,
        "calibrated_by": "validation molecules",
        "calibration_error": {"before": {"a": 0.1}, "after": {"a": 0.1}},
        "brier": {"before": {"a": 0.2}, "after": {"a": brier}},
    }
    targets = {"a": {"n": 50 if same else 49}}
    words = trust_section(reported({"trust": told, "targets": targets}, "classification", ("a",))).words[0]
    assert ("On 49 test labels, the calibration error is mostly noise." in words) != same
    assert words.endswith("Calibration changed no digit shown.") == same


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


@pytest.mark.parametrize("columns", [(), ("pH",)])
@pytest.mark.parametrize(
    ("count", "compared", "start"),
    [
        (0, 3, "No test molecule gets"),
        (1, 3, "1 test molecule gets"),
        (2, 3, "2 test molecules get"),
        (2, 2, "2 test molecules of the 2 that were compared get"),
    ],
)
def test_unfamiliar_molecules_are_counted(count, compared, start, columns):
    """Conditions are a reason for a warning if the model reads them."""
    model = SimpleNamespace(conditions=SimpleNamespace(columns=columns))
    told = {"trust": {"unfamiliar": count, "compared": compared, "error_by_similarity": []}}
    near = SimpleNamespace(similarity=np.zeros(0), distance=np.zeros(0))
    looked = SimpleNamespace(smiles=["C"] * 3, nearness=near, errors=np.zeros(0))
    (sentences,) = distance_section(reported(told, fitted=SimpleNamespace(model=model), looked=looked)).words
    assert f". {start} a warning from predict --domain" in sentences
    assert ("condition" in sentences) == bool(columns)
