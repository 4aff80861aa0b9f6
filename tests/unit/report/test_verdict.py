"""The verdict on a target, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.report.headline import strength, verdict_of
from graphormer_sepnorm.report.page import line

TASK = TaskConfig("regression", "mae", ("a", "pIC50"), scales=("-log10 nM", ""))
FACTS = {
    "n": 60,
    "scores": {"stack": {"mae": 0.4, "rmse": 0.5}, "mean": {"mae": 0.9, "rmse": 1.0}},
    "ranking": {"metric": "spearman", "value": 0.71, "interval": [0.62, 0.79]},
    "against_mean": {"difference": -0.5, "interval": [-0.7, -0.3]},
}
TRUST = {"coverage": {"0.9": {"a": 0.91, "pIC50": 0.88}}}


def test_the_facts_of_a_series():
    """10 ** 0.5 is 3.16; a median of 8.3 is 5 nM."""
    found = verdict_of(TASK, "a", FACTS, TRUST, None, {"a": 0.25}, np.array([8.1, 8.3, 9.9]))
    assert (found["ranks"], found["ranking"]["value"], found["repeats"], found["level"], found["held"]) == (
        "well",
        0.71,
        0.25,
        0.9,
        0.91,
    )
    assert found["factor"] == pytest.approx(3.162, abs=1e-3) and found["example"] == ("5", "16", "nM")
    assert found["rival"] is None and all(
        text in line("headline.verdict", verdict=found) for text in ("0.62 to 0.79", "0.25", "91 %")
    )


def test_only_logarithms_of_concentrations_are_factors():
    assert verdict_of(TASK, "pIC50", FACTS, TRUST)["factor"] and not verdict_of(TASK, "pIC50", FACTS, TRUST)["example"]
    other = replace(TASK, targets=("log_solubility", "pH"), scales=("", ""))
    assert [verdict_of(other, name, FACTS, {})["factor"] for name in other.targets] == [None, None]


def test_a_model_that_is_no_better_than_the_mean_is_said():
    facts = FACTS | {"against_mean": {"difference": -0.1, "interval": [-0.3, 0.1]}}
    found = verdict_of(TASK, "a", facts, TRUST, "a")
    assert found["rival"] == "the mean label" and line("headline.verdict", verdict=found).startswith("a: ranks well")
    assert "use the order, not the values" in line("headline.verdict", verdict=found)
    weak = facts | {"ranking": FACTS["ranking"] | {"value": 0.3, "interval": [0.1, 0.5]}}
    assert "do not rely" in line("headline.verdict", verdict=verdict_of(TASK, "a", weak, TRUST, "a"))


@pytest.mark.parametrize(("bounds", "rival"), [(30, None), (5, "the mean label")])
def test_where_many_labels_are_bounds_their_likelihood_decides(bounds, rival):
    """30 of 90 labels are many, 5 of 65 are not."""
    scores = {"bounds": bounds, "right_side": 0.7, "concordance": 0.8}
    of_all = {"stack": scores | {"log_likelihood": -0.84}, "mean": scores | {"log_likelihood": -1.5}}
    facts = FACTS | {"against_mean": {"difference": -0.1, "interval": [-0.3, 0.1]}, "bounds": of_all}
    assert verdict_of(TASK, "a", facts, TRUST)["rival"] == rival


def test_classes_have_a_verdict_of_their_own():
    task = TaskConfig("classification", "rocauc", ("a",))
    trust = {"calibration_error": {"after": {"a": 0.07}}, "set_coverage": {"0.9": {"a": 0.92}}}
    scores = {"stack": {"rocauc": 0.85}, "mean": {"rocauc": 0.5}}
    facts = {"n": 60, "scores": scores, "ranking": {"metric": "rocauc", "value": 0.85, "interval": [0.75, 0.9]}}
    found = verdict_of(task, "a", facts, trust)
    assert (found["ranks"], found["calibration"], found["held"], found["rmse"]) == ("fairly", 0.07, 0.92, None)
    assert all(text in line("headline.verdict", verdict=found) for text in ("ROC-AUC 0.85", "7 %", "92 %"))


@pytest.mark.parametrize(
    ("interval", "ranks"), [([0.61, 0.9], "well"), ([0.4, 0.9], "fairly"), ([0.1, 0.5], "weakly"), ([-0.1, 0.5], "")]
)
def test_the_lower_end_tells_how_well_it_ranks(interval, ranks):
    assert strength({"metric": "spearman", "interval": interval}) == ranks
    assert strength({"metric": "rocauc", "interval": [(1 + end) / 2 for end in interval]}) == ranks


def test_no_interval_is_no_verdict_on_the_order():
    facts = {"n": 1, "scores": {"stack": {"mae": 0.5, "rmse": 0.5}}}
    found = verdict_of(TASK, "a", facts, {})
    assert found["ranks"] is None and "1 test label" in line("headline.verdict", verdict=found)


def test_few_test_labels_add_the_score_out_of_fold():
    assert verdict_of(TASK, "a", FACTS, TRUST, out_of_fold={"rmse": 0.8})["more"] is None, "60 test labels are enough"
    found = verdict_of(TASK, "a", FACTS | {"n": 14}, TRUST, out_of_fold={"mae": 0.6, "rmse": 0.8})
    assert found["more"] == ("RMSE", 0.8) and "0.8" in line("headline.verdict", verdict=found)


def test_errors_of_exact_labels_above_those_of_the_mean_are_said():
    """With many bounds, their likelihood says that the model is better; an error below the mean's is a gain."""
    worse = FACTS | {"against_mean": {"difference": 0.02, "interval": [-0.1, 0.1]}}
    assert verdict_of(TASK, "a", worse, TRUST)["is_worse"] and not verdict_of(TASK, "a", FACTS, TRUST)["is_worse"]
