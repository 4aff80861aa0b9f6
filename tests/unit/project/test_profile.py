"""Profiles of two tiny models and of a table model: limits, units, refusals, and the same numbers everywhere."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphormer_sepnorm.chem.properties import PROPERTIES
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.library.part_writer import PartOptions, Processes, Selection
from graphormer_sepnorm.library.run import predict_library
from graphormer_sepnorm.library.suggest import SuggestRequest, suggest
from graphormer_sepnorm.output import resumable_writer
from graphormer_sepnorm.output.predict_table import predict_table
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.predict.predictors import Predictor
from graphormer_sepnorm.predict.side_by_side import Part, SideBySide
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.project.judge import PROBABILITY, Hypervolume
from graphormer_sepnorm.project.profile import RAMPS, Profile
from graphormer_sepnorm.system.device import choose
from graphormer_sepnorm.table_model.load import LoadedModel
from tests.tables import records
from tests.tiny import Trusting, tiny_model

SMILES = ["CCO", "c1ccccc1O", "C[C", "CC(=O)Oc1ccccc1C(=O)O", "CCN", "O=[N+]([O-])c1ccccc1"]
TRAINED = TrainingRows.of(np.array([[6.0, 1, 0], [8, 3, 0]])).named(["a", "b"])  # standard deviations 1, 1 and 0
INF = math.inf


def model_of(scales=(), limits=(), descriptions=None, targets=("p", "log", "constant"), rows=TRAINED) -> Predictor:
    """Predictions of targets, whose errors are correlated."""
    random = np.random.default_rng(0)
    errors = random.normal(size=(40, 3)) @ np.array([[1, 0.8, 0], [0, 0.6, 0], [0, 0, 1]])
    errors = errors[:, : len(targets)]
    trust = Trust(fit_domain(["CCCl", "CCBr"]), fit_intervals(errors, 0 * errors, 0 * errors + 1), rows=rows)
    models = [tiny_model(targets=targets, seed=seed) for seed in range(2)]
    models = [(net, replace(config, task=replace(config.task, scales=scales, limits=limits))) for net, config in models]
    found = Trusting(models, trust=trust)
    found.descriptions = descriptions or {}
    return found


def goals(lines, model=None) -> list:
    return Profile.of(lines).judge(model or model_of()).goals


def ends(goal) -> list[float]:
    return [goal.low, goal.high, goal.zero_low, goal.zero_high]


def test_ramps_end_a_standard_deviation_of_the_labels_outside_the_limits():
    lines = {"p": {"at_least": 8, "weight": 2}, "log": {"between": [1, 3], "zero": [0, 7]}, "logP": {"at_most": 3}}
    first, second, third = goals(lines)
    assert ends(first) == [8, INF, 7, INF] and first.weight == 2
    assert ends(second) == [1, 3, 0, 7]
    assert ends(third) == [-math.inf, 3, -math.inf, 4]
    assert (third.of, list(PROPERTIES)[third.place]) == ("property", "MolLogP")
    assert RAMPS.keys() == {*PROPERTIES, "alerts"}
    with pytest.raises(InputError, match="add zero"):
        goals({"constant": {"at_least": 1}})


SCALES = ("-log10 nM", "log10", "log10")
CARD = {"log": "clearance, \N{MICRO SIGN}L/min", "constant": "efflux ratio"}


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("p", {"at_least": 8}, [8, INF, 7, INF]),
        ("p", {"at_most": 10, "unit": "nM"}, [8, INF, 7, INF]),
        ("p", {"at_most": 0.01, "zero": 1, "unit": "uM"}, [8, INF, 6, INF]),
        ("p", {"between": [1, 10], "zero": [0.1, 100], "unit": "nM"}, [8, 9, 7, 10]),
        ("log", {"at_most": 100, "unit": "uL/min"}, [-INF, 2, -INF, 3]),
        ("log", {"at_most": 2, "unit": "log10"}, [-INF, 2, -INF, 3]),
        ("constant", {"at_least": 10, "zero": 1, "unit": ""}, [1, INF, 0, INF]),
    ],
)
def test_limits_in_units_come_to_the_scale_of_the_predictions(name, line, expected):
    (goal,) = goals({name: line}, model_of(SCALES, descriptions=CARD))
    assert ends(goal) == pytest.approx(expected)


def test_the_name_of_the_measured_column_means_measured_values():
    model = model_of(("-log10 nM", "log10"), targets=("pIC50", "log10(HLM)"), rows=None)
    lines = {"IC50_nM": {"at_most": 10, "zero": 100}, "HLM": {"at_most": 100, "zero": 1000}}
    assert [ends(goal)[:2] for goal in goals(lines, model)] == [[8, math.inf], [-math.inf, 2]]
    with pytest.raises(InputError, match="did you mean 'HLM'"):
        goals({"HLN": {"at_most": 100}}, model)
    (goal,) = goals({"log10(HLM)": {"at_most": 2, "zero": 3}}, model)
    assert ends(goal) == [-math.inf, 2, -math.inf, 3]


def test_limits_of_a_target_that_all_labels_are_within_always_hold():
    model = model_of(limits=((0.0, 100.0), (None, None), (None, None)))
    (goal,) = goals({"p": {"between": [0, 50]}}, model)
    assert (goal.low, goal.high) == (-math.inf, 50)
    with pytest.raises(InputError, match="no molecule can be inside"):
        goals({"p": {"at_least": 101}}, model)


def test_classes_and_probabilities():
    names = (("inactive", "active"), ("0", "1"))
    model = Predictor([tiny_model(targets=("a", "b"), kind="classification", class_names=names)])
    lines = {"a": {"class": "active"}, "b": {"class": "0"}}
    judge = Profile.of(lines).judge(model)
    values = model.predict(["CCO"])
    (first, second), chance = values.values[0], judge.probability(values)[0]
    assert chance == pytest.approx(first * (1 - second)) and judge.desirability(values)[0] == pytest.approx(chance**0.5)
    (goal,) = goals({"a": {"at_least": 0.5}}, model)
    assert goal.probability(values).tolist() == [float(first >= 0.5)]
    wrong = {"did you mean 'active'": {"class": "activ"}, "20 is no probability": {"at_least": 20}}
    for message, line in (wrong | {"has no unit": {"at_least": 0.5, "unit": "nM"}}).items():
        with pytest.raises(InputError, match=message):
            goals({"a": line}, model)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no criteria"),
        ("p = ", "not a profile in TOML"),
        ("p = {at_most = 10,0, unit = 'nM'}", r"write decimals as 10\.0"),
        ("p = 8", "give limits in braces"),
        ("p = {at_leats = 3}", "did you mean 'at_least'"),
        ("p = {}", "give at_least, at_most, between or class"),
        ("p = {between = [8, 7]}", "contradict"),
        ("p = {between = [1, 2], at_most = 3}", "without at_least and at_most"),
        ("p = {at_least = nan}", "finite"),
        ("p = {at_least = '8'}", "at_least should be a valid number"),
        ("p = {between = [1, 2], zero = 0}", "two numbers"),
        ("p = {at_least = 8, zero = 9}", "outside the limits"),
        ("p = {at_least = 8, class = 'active'}", "a class has no limits"),
        ("p = {class = 'active'}", "a number, which has no classes"),
        ("konstant = {at_least = 8}", "did you mean 'constant'"),
        ("TPSA = {at_most = 90, unit = 'A'}", "no unit"),
    ],
)
def test_a_profile_that_says_nothing_sure_is_refused(text, message, tmp_path):
    path = tmp_path / "profile.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        Profile.read(path).judge(model_of())
    assert "profile.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("p", {"at_most": 10, "unit": "mg"}, "no unit of a concentration"),
        ("log", {"at_most": 10}, "add unit"),
        ("log", {"at_most": 10, "unit": "mL/min"}, "not mL/min"),
        ("log", {"at_most": -1, "unit": "uL/min"}, "no logarithm"),
        ("constant", {"at_most": 10, "unit": "%"}, "it has no unit, not %"),
    ],
)
def test_a_unit_that_a_target_does_not_have_is_refused(name, line, message):
    with pytest.raises(InputError, match=message):
        goals({name: line}, model_of(SCALES, descriptions=CARD))
    with pytest.raises(InputError, match="unit is unknown"):
        goals({"p": {"at_most": 10, "unit": "nM"}})


def test_a_model_that_does_not_know_its_errors_is_refused():
    with pytest.raises(InputError, match="no information on its training molecules"):
        goals({"p": {"at_least": 1, "zero": 0}}, Predictor([tiny_model(targets=("p",))]))


def test_errors_correlate_as_they_do_out_of_fold():
    """Pearson's correlation of the errors is 0.8; a model of an earlier release does not know it."""
    lines, model = {"log": {"at_most": 1}, "TPSA": {"at_most": 90}, "p": {"at_least": 7}}, model_of()
    judge = Profile.of(lines).judge(model)
    assert judge.correlation[0, 2] == judge.correlation[2, 0] == pytest.approx(0.8, abs=0.15)
    assert judge.correlation[1].tolist() == [0, 1, 0] and judge.independent == ()
    model.trust = replace(model.trust, intervals=replace(model.trust.intervals, correlation=np.empty((0, 0))))
    judge = Profile.of(lines).judge(model)
    assert (judge.correlation == np.eye(3)).all() and judge.independent == (("log", "p"),)


OF_TARGETS = {"p": {"at_least": 0, "weight": 2}, "log": {"at_most": 0.1}}
ONE = Processes(workers=1)
LINES = {**OF_TARGETS, "logP": {"between": [0, 2]}, "alerts": {"at_most": 0}}


@pytest.fixture
def table(tmp_path) -> Path:
    (tmp_path / "in.csv").write_text("\n".join(["smiles", *SMILES]))
    return tmp_path / "in.csv"


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [2, 100])
def test_the_command_and_python_give_the_same_numbers(table, tmp_path, monkeypatch, at_once):
    """Also where the table is read in several chunks: the Pareto rank is that among all of its molecules."""
    monkeypatch.setattr(resumable_writer, "molecules_at_once", lambda device: at_once)
    model, profile = model_of(), Profile.of(LINES)
    predict_table(model, str(table), tmp_path / "out.csv", profile=profile)
    frame = profile.score(LoadedModel(model, choose("cpu")), SMILES)
    rows = records(tmp_path / "out.csv")
    names = ["desirability", PROBABILITY, "pareto_rank", "weakest"]
    assert [name for name in rows[0] if name in names] == [name for name in frame if name in names] == names
    for name in names[:3]:
        found = [float(row[name] or "nan") for row in rows]
        assert found == pytest.approx(frame[name].tolist(), rel=1e-5, nan_ok=True) and math.isnan(found[2])
    assert [row["weakest"] for row in rows] == frame.weakest.tolist() and frame.weakest[5] == "alerts"
    assert set(frame.pareto_rank.dropna()) >= {1, 2}


@pytest.mark.slow
def test_the_criteria_are_on_targets_of_several_models(table, tmp_path):
    """The errors of two models are independent, those of one model are not; limits are each model's own."""
    first, second = model_of(), model_of(SCALES, descriptions=CARD)
    model = SideBySide((Part("a", first), Part("b", second)))
    of_b = {"b_p": {"at_most": 10, "unit": "nM"}, "b_log": {"at_most": 10, "unit": "uL/min"}}
    lines = {"a_p": {"at_least": 0}, **of_b, "MolWt": {"at_most": 150}}
    judge = Profile.of(lines).judge(model)
    assert [goal.place for goal in judge.goals] == [0, 3, 4, 0] and judge.goals[1].low == 8
    assert judge.correlation[1, 2] > 0.5 and not judge.correlation[0, 1:].any()
    assert judge.independent == (("a_p", "b_p"), ("a_p", "b_log"))
    predict_table(model, str(table), tmp_path / "out.csv", profile=Profile.of(lines))
    own = Profile.of({"p": lines["a_p"]}), Profile.of({"p": lines["b_p"], "log": lines["b_log"]})
    loaded = (LoadedModel(part, choose("cpu")) for part in (first, second))
    one, other = (each.score(part, SMILES)[PROBABILITY] for each, part in zip(own, loaded, strict=True))
    expected = (one * other).where([text not in (SMILES[3],) for text in SMILES], 0)  # of aspirin the weight is 180
    found = [float(row[PROBABILITY] or "nan") for row in records(tmp_path / "out.csv")]
    assert found == pytest.approx(expected.tolist(), rel=1e-5, nan_ok=True)


@pytest.mark.slow
def test_a_library_has_no_pareto_rank_and_is_searched_by_the_probability(table, tmp_path):
    model, profile = model_of(), Profile.of(LINES)
    pandas = pytest.importorskip("pandas")
    predict_library(model, str(table), tmp_path / "parts", PartOptions(Selection("p"), profile=profile), where=ONE)
    part = pandas.read_parquet(tmp_path / "parts/parts/in.csv.parquet")
    expected = profile.score(LoadedModel(model, choose("cpu")), SMILES)
    assert "pareto_rank" not in part
    assert part[PROBABILITY].tolist() == pytest.approx(expected[PROBABILITY].tolist(), nan_ok=True)
    suggest(model, str(table), tmp_path / "next.csv", SuggestRequest(3, distance=0, profile=profile), where=ONE)
    best = expected.sort_values(PROBABILITY, ascending=False, kind="stable").smiles[:3].tolist()
    assert [row["smiles"] for row in records(tmp_path / "next.csv")] == best
    both, lines = SideBySide((Part("a", model), Part("b", model_of()))), {"a_p": {"at_least": 0}, "b_p": {"at_most": 1}}
    profile = Profile.of(lines)
    suggest(both, str(table), tmp_path / "next.csv", SuggestRequest(3, distance=0, profile=profile), where=ONE)
    found = [float(row[PROBABILITY]) for row in records(tmp_path / "next.csv")]
    whole = profile.score(LoadedModel(both, choose("cpu")), SMILES)[PROBABILITY].dropna()
    assert found == pytest.approx(sorted(whole, reverse=True)[:3], rel=1e-5)
    with pytest.raises(InputError, match="--profile ranks by all its criteria"):
        SuggestRequest(3, target="p", profile=profile)


@pytest.mark.slow
def test_a_library_is_searched_by_the_hypervolume_of_two_criteria(table, tmp_path):
    lines = {"p": {"at_least": 9, "zero": -5}, "log": {"at_most": 0.5, "zero": 5}}
    model, profile = model_of(), Profile.of(lines)
    request = SuggestRequest(3, by="hypervolume", distance=0, profile=profile)
    suggest(model, str(table), tmp_path / "next.csv", request, where=ONE)
    found = [float(row["hypervolume_improvement"]) for row in records(tmp_path / "next.csv")]
    volume = Hypervolume.of(profile.judge(model).goals)
    expected = volume.improvement(model.predict(SMILES))
    expected = sorted(expected[~np.isnan(expected)], reverse=True)
    assert found == pytest.approx(expected[:3], rel=1e-5) and found[2] > 0
    for lines in ({"p": {"at_least": 9}}, {"p": {"at_least": 9}, "log": {"between": [0, 1]}}):
        with pytest.raises(InputError, match="2 or 3 criteria with one limit"):
            Hypervolume.of(Profile.of(lines).judge(model).goals)
    with pytest.raises(InputError, match="--by hypervolume is for"):
        SuggestRequest(3, by="hypervolume")
