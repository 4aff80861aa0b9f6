"""The bars of one molecule."""

import pytest

from graphormer_sepnorm.interfaces.web.schemas import (
    EndpointFacts,
    MoleculePrediction,
    Options,
    TableRow,
    TargetPrediction,
)
from graphormer_sepnorm.interfaces.web.service import load_service
from graphormer_sepnorm.interfaces.web.view import OTHERS, Bar, grouped_bars
from tests.page import PretendedService
from tests.several import save_panel

ENDPOINTS = {
    "hERG": EndpointFacts(group="Toxicity", direction="lower"),
    "logD": EndpointFacts(),
    "Ames": EndpointFacts(group="Toxicity"),
    "Sol": EndpointFacts(group="Absorption", direction="higher"),
}
FACTS = PretendedService().facts()
FACTS = FACTS.model_copy(update={"targets": list(ENDPOINTS), "endpoints": ENDPOINTS, "classes": {"hERG": ("0", "1")}})
ANSWER = MoleculePrediction(
    predictions={
        "hERG": TargetPrediction(value=0.25, drugs=99),
        "logD": TargetPrediction(value=2, drugs=10),
        "Ames": TargetPrediction(value=7),
        "Sol": TargetPrediction(value=-2, low=-3, high=-1, drugs=30, drugs_low=5, drugs_high=60),
    }
)


def test_bars_stand_by_group_at_their_place():
    assert grouped_bars(FACTS, ANSWER) == {
        "Toxicity": [Bar("hERG", 25.0, None, "better"), Bar("Ames")],
        OTHERS: [Bar("logD", 10.0, among="drugs")],
        "Absorption": [Bar("Sol", 30.0, (5.0, 60.0), "worse", "drugs")],
    }


@pytest.mark.parametrize(("value", "standing"), [(0.3, "better"), (0.34, "middle"), (0.66, "middle"), (0.7, "worse")])
def test_the_standing_depends_on_the_direction(value, standing):
    other = MoleculePrediction(predictions=ANSWER.predictions | {"hERG": TargetPrediction(value=value)})
    assert grouped_bars(FACTS, other)["Toxicity"][0].standing == standing


@pytest.mark.parametrize(("limit", "standing"), [(None, "worse"), ("", "worse"), ("read as at most -2", "")])
def test_a_prediction_at_a_limit_of_its_assay_has_no_standing(limit, standing):
    one = ANSWER.predictions["Sol"].model_copy(update={"limit": limit})
    (bar,) = grouped_bars(FACTS, MoleculePrediction(predictions={"Sol": one}))["Absorption"]
    assert (bar.place, bar.standing) == (30, standing)


def test_without_groups_the_bars_stand_among_the_training_values():
    answer = MoleculePrediction(predictions={"Sol": TargetPrediction(value=-2, low=-3, high=-1, percentile=40)})
    ungrouped = FACTS.model_copy(update={"endpoints": {}})
    assert grouped_bars(ungrouped, answer) == {"": [Bar("Sol", 40.0, among="training values")]}
    assert grouped_bars(FACTS, MoleculePrediction(error="it cannot be read")) == {}


def test_a_panel_says_where_its_intervals_are_among_drugs(tmp_path):
    models = load_service([str(save_panel(tmp_path / "panel"))], 0.8, "cpu", "auto")
    (answer,) = models.predict([TableRow(["CCO"], "CCO", "")], Options(interval=0.8))
    bars = {bar.target: bar for found in grouped_bars(models.facts(), answer).values() for bar in found}
    one = answer.predictions["hERG"]
    below = [sum(drug < value for drug in (0, 1, 2, 3)) for value in (one.value, one.low, one.high)]
    assert [bars["hERG"].place, *bars["hERG"].ends] == [25.0 * count for count in below]
    assert bars["toxic"].place == pytest.approx(100 * answer.predictions["toxic"].value)
    assert bars["Papp"].place is None  # whose drugs are not known
    assert list(grouped_bars(models.facts(), answer)) == ["Toxicity", "Absorption", OTHERS]
