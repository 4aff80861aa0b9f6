"""What is shown of a table and of one molecule, and what a pasted text is, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from graphormer_sepnorm.interfaces.web import pages, schemas
from graphormer_sepnorm.interfaces.web.api import kind_of_text
from graphormer_sepnorm.interfaces.web.jobs import Job
from graphormer_sepnorm.interfaces.web.service import load_service
from tests.page import ADDED, PretendedService
from tests.several import save_panel

NAMED = {"a": "CCC", "b": "X", "c": "CXe", "d": "C", "e": "OOOO"}
ROWS = [schemas.TableRow([text, name], text, "") for name, text in NAMED.items()]
JOB = Job(number="0" * 32, columns=["smiles", "name"], rows=ROWS, added=ADDED)
JOB.answers = PretendedService().predict(ROWS, schemas.Options())
JOB.answers[2].predictions["length"].high = 3  # a width of 1, of the others 2


@pytest.mark.parametrize(
    ("view", "rows"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"sort": "length"}, [3, 0, 2, 4, 1]),
        ({"sort": "length_low", "order": "descending"}, [4, 0, 2, 3, 1]),
        ({"sort": "warning"}, [2, 0, 1, 3, 4]),
        ({"sort": "interval width of length"}, [2, 0, 3, 4, 1]),
        ({"sort": "no column"}, [0, 1, 2, 3, 4]),
        ({"find": " c "}, [0, 2, 3]),
        ({"find": "E"}, [2, 4]),
        ({"only": "unreadable"}, [1]),
        ({"only": "warned"}, [2]),
        ({"only": "predicted", "find": "C", "sort": "length"}, [3, 0, 2]),
    ],
)
def test_rows_by_hand(view, rows):
    assert pages.shown_rows(JOB, pages.View(**view)) == rows


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ([], ["Nearest training molecule", "length"]),
        (["name", "length", "name", "not there"], ["name", "length"]),
        (["not there"], ["Nearest training molecule", "length"]),
        ([pages.NO_COLUMNS], []),
        (["name", pages.NO_COLUMNS], ["name"]),
    ],
)
def test_columns_are_those_that_are_chosen(asked, shown):
    job = Job(["smiles", "name"], ROWS, "smiles", ADDED, number="0" * 32, options=schemas.Options(domain=True))
    offered = pages.offered_columns(PretendedService().facts(), job)
    assert list(offered) == ["Nearest training molecule", "length", "SMILES", "name"]
    assert pages.chosen_columns(offered, pages.View(columns=asked)) == shown
    assert pages.View(columns=["a b", "c"]).address(page=2) == "page=2&columns=a+b&columns=c"


def test_columns_keep_their_place_when_their_tick_changes():
    offered = ["a", "b", "c", "d"]
    for order in (offered, ["b", "a", "c", "d"], ["d", "a", "b", "c"]):
        assert pages.listed_columns(offered, order) == order
    for chosen in (["b", "d"], ["c"], []):
        assert pages.listed_columns(offered, chosen) == offered
    assert pages.listed_columns(offered, ["d", "b"]) == ["a", "d", "b", "c"]


ENDPOINTS = {
    "hERG": schemas.EndpointFacts(group="Toxicity", direction="lower"),
    "logD": schemas.EndpointFacts(),
    "Ames": schemas.EndpointFacts(group="Toxicity"),
    "Sol": schemas.EndpointFacts(group="Absorption", direction="higher"),
}
FACTS = PretendedService().facts()
FACTS = FACTS.model_copy(update={"targets": list(ENDPOINTS), "endpoints": ENDPOINTS, "classes": {"hERG": ("0", "1")}})
ANSWER = schemas.MoleculePrediction(
    predictions={
        "hERG": schemas.TargetPrediction(value=0.25, drugs=99),
        "logD": schemas.TargetPrediction(value=2, drugs=10),
        "Ames": schemas.TargetPrediction(value=7),
        "Sol": schemas.TargetPrediction(value=-2, low=-3, high=-1, drugs=30, drugs_low=5, drugs_high=60),
    }
)


def test_bars_stand_by_group_at_their_place():
    assert pages.grouped_bars(FACTS, ANSWER) == {
        "Toxicity": [pages.Bar("hERG", 99.0, None, "worse", "drugs"), pages.Bar("Ames")],
        pages.OTHERS: [pages.Bar("logD", 10.0, among="drugs")],
        "Absorption": [pages.Bar("Sol", 30.0, (5.0, 60.0), "worse", "drugs")],
    }
    assert pages.grouped(FACTS, ["Sol", "hERG", "a field"]) == {"Toxicity": ["hERG"], "Absorption": ["Sol"]}
    one = schemas.TargetPrediction(value=-2, low=-3, high=-1, percentile=40)
    ungrouped = FACTS.model_copy(update={"endpoints": {}})
    bars = pages.grouped_bars(ungrouped, schemas.MoleculePrediction(predictions={"Sol": one}))
    assert bars == {"": [pages.Bar("Sol", 40.0, among="training values")]}
    assert pages.grouped_bars(FACTS, schemas.MoleculePrediction(error="it cannot be read")) == {}


@pytest.mark.parametrize(
    ("one", "is_same", "standing"),
    [
        ({"drugs": 30}, False, "better"),
        ({"drugs": 34}, False, "middle"),
        ({"drugs": 66}, False, "middle"),
        ({"drugs": 70}, False, "worse"),
        ({}, False, ""),
        ({"drugs": 89, "nearest": 0}, False, "worse"),
        ({"drugs": 89, "nearest": 0}, True, "better"),
        ({"drugs": 9, "nearest": 1}, True, "worse"),
        ({"drugs": 9, "nearest": "toxic"}, True, "worse"),
        ({"drugs": 70, "limit": "read as at most -2"}, False, ""),
    ],
)
def test_the_standing_is_that_among_drugs_or_of_the_measured_class(one, is_same, standing):
    predictions = {"hERG": schemas.TargetPrediction(value=0.2, **one)}
    facts = FACTS.model_copy(update={"classes": {"hERG": ("safe", "toxic")}})
    answer = schemas.MoleculePrediction(predictions=predictions, in_training=is_same)
    bar = pages.bar_of(facts, answer, "hERG")
    assert (bar.standing, bar.is_measured) == (standing, is_same)


@pytest.mark.parametrize(
    ("bound", "near", "standing"), [(None, True, "better"), ("<9", True, "worse"), (None, False, "worse")]
)
def test_the_standing_is_that_of_the_measured_value_where_it_is_known(bound, near, standing):
    one = schemas.TargetPrediction(value=-2, drugs=30, nearest=9, nearest_bound=bound, drugs_nearest=90)
    models = {"A": {"in_training": near}, "B": {"in_training": True}}
    facts = FACTS.model_copy(update={"compared_by": {"Sol": "A"}})
    bar = pages.bar_of(facts, schemas.MoleculePrediction(predictions={"Sol": one}, models=models), "Sol")
    assert (bar.place, bar.standing, bar.is_measured) == (30, standing, standing == "better")


def test_a_warning_marks_the_endpoints_that_it_names_or_all():
    def warned(text: str, **others) -> list[str]:
        one = schemas.MoleculePrediction(warning=text, **others)
        return [target for target in ENDPOINTS if pages.warning_of(FACTS, one, target)]

    assert warned("No training molecule is similar.") == list(ENDPOINTS)
    assert warned("Read as CC: the text after it was ignored. Ames, Sol: It has Xe.") == [
        "Ames",
        "Sol",
    ]
    assert warned("hERG, logD and 1 other: It has Xe. logD: It is large.") == ["hERG", "logD", "Ames", "Sol"]
    assert pages.warning_of(FACTS, schemas.MoleculePrediction(warning="logD, Sol: A b. Sol: C."), "Sol") == "A b. C."
    assert warned("", models={"A": {"warning": "It is large."}}) == []


@pytest.mark.parametrize(
    ("ones", "is_different"),
    [
        ([{"low": 1, "high": 2}, {"low": 2, "high": 3}], False),
        ([{"low": 1, "high": 2}, {"low": 0, "high": 3}, {"low": 2.5, "high": 3}], True),
        ([{"class_name": 0}, {"class_name": 0}], False),
        ([{"class_name": "safe"}, {"class_name": "toxic"}], True),
        ([{}, {}], False),
    ],
)
def test_molecules_differ_if_their_intervals_or_classes_do(ones, is_different):
    found = [{"hERG": schemas.TargetPrediction(value=1, **one)} for one in ones]
    assert pages.differ([schemas.MoleculePrediction(predictions=each) for each in found], "hERG") == is_different


def test_a_panel_says_where_its_intervals_are_among_drugs(tmp_path):
    models = load_service([str(save_panel(tmp_path / "panel"))], 0.8, "cpu", "auto")
    (answer,) = models.predict([schemas.TableRow(["CCO"], "CCO", "")], schemas.Options(interval=0.8, domain=True))
    bars = {bar.target: bar for found in pages.grouped_bars(models.facts(), answer).values() for bar in found}
    one = answer.predictions["hERG"]
    below = [sum(drug < value for drug in (0, 1, 2, 3)) for value in (one.value, one.low, one.high)]
    assert [bars["hERG"].place, *bars["hERG"].ends] == [25.0 * count for count in below]
    assert (one.nearest, one.drugs_nearest, bars["hERG"].standing) == (0, 12.5, "better")  # as it was learnt
    toxic = answer.predictions["toxic"].value
    assert bars["toxic"].place == 25.0 * sum(drug < np.float32(toxic) for drug in np.float32([0.1, 0.2, 0.3, 0.5]))
    assert bars["Papp"].among == "training values"  # whose drugs are not known
    assert list(pages.grouped_bars(models.facts(), answer)) == ["Toxicity", "Absorption", pages.OTHERS]


LISTS = [
    "CCO", "CCO ethanol\nCC", "smiles name\nCC a", "smiles\nCC", "C(C,C)", "name;foo\nA CCO", "name;foo", "",
    "CCO\tethanol\nC[C\tbroken\nN\tammonia", "C[C\tbroken\nCCO\tethanol", "CC(C)O |w:1|\nC[C@H](N)O |a:1|",
    "InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3\nInChI=1S/C3H8O/c1-2-3-4/h4H,2-3H2,1H3",
]  # fmt: skip
TABLES = [
    "Canonical_SMILES\nCC\nC", "SMILES\tname\nCC\ta", '\ufeffid,"smiles"\n1,CC', "id;smiles\n1;CC",
    "name;foo\nA;CCO\nB;CCC", "name\tfoo\nA\tCCO\nB\tCCC", "name , foo\nB , CCC", "A;CCO\nB;CCC",
]  # fmt: skip


@pytest.mark.parametrize("text", [*LISTS, *TABLES])
def test_what_a_pasted_text_is(text):
    assert kind_of_text(text) == (".csv" if text in TABLES else ".smi")


def test_a_footnote_on_equal_labels_is_of_a_target_that_is_shown():
    known = {name: schemas.EndpointFacts(frequent=(2.0, 0.3)) for name in ("alpha", "beta")}
    facts = PretendedService().facts().model_copy(update={"endpoints": known})
    values = {"options": schemas.Options(), "confidences": [], "shown": {"beta": 1}}
    text = pages.make_pages(SimpleNamespace(facts=facts, limits=None))("bars_hint.html", **values).body.decode()
    assert "30 % of the training values of beta equal 2" in text and "alpha" not in text
