"""The verdicts, cards and warnings at the top of a report, biased predictions and missed extremes, by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.report import headline
from graphormer_sepnorm.report.headline import (
    LEAST_DRAWN,
    Estimate,
    cards,
    gain_of,
    notes,
    of_bias,
    of_extremes,
    of_probabilities,
    resampled_slope,
    slope_of,
    strength,
    summary,
    verdict_of,
)
from graphormer_sepnorm.runs.folder import Parts, RunFolder
from graphormer_sepnorm.table_model.labels import Folds
from graphormer_sepnorm.table_model.model import Stacked
from graphormer_sepnorm.tables.splits import MoleculeStructure, Structures
from tests.unit.report.conftest import reported, table

NAN = float("nan")
MEMBERS = ("kernel", "forest", "networks")
Y = np.linspace(-2, 2, 50)[:, None]


def facts(metric: str = "mae", value: float = 0.5, **others) -> dict:
    scores = {"stack": {metric: value}, "forest": {metric: 0.75}, "mean": {metric: 2.0}}
    return {"n": 60, "scores": scores, "interval": {"stack": [0.4, 0.6123456]}, **others}


def result(targets: dict, **others) -> dict:
    return {"n": 60, "value": 0.5, "targets": targets, "members": {"forest": {}}, "trust": {}, **others}


def model(members=("kernel", "forest"), weights=((0.5,), (0.5,)), out_of_fold=None) -> SimpleNamespace:
    shared = {name: SimpleNamespace(share=1.0) for name in members}
    return SimpleNamespace(
        model=SimpleNamespace(members=shared, weights=np.array(weights)), out_of_fold=out_of_fold, left_out={}
    )


def looked(smiles=(), errors=()) -> SimpleNamespace:
    return SimpleNamespace(smiles=list(smiles), errors=np.array(errors, float))


def many(count: int = 200, tested: int = 60):
    whole = count + tested
    structures = Structures(MoleculeStructure("C", "", str(row)) for row in range(whole))
    return table(*[("train", "C", [0.0])] * count, *[("test", "CC", [0.0])] * tested, structures=structures)


def warned(page_result: dict, y: np.ndarray, by_member: np.ndarray, values: np.ndarray, **parts) -> tuple[str, ...]:
    """The notes of a report on one target with these out-of-fold predictions."""
    fitted = model(**parts.pop("model", {}), out_of_fold=Stacked(by_member, values, values))
    whole = {"labelled": many(), "looked": looked(), "fitted": fitted, "folds": Folds(np.arange(len(y)) % 2)}
    return notes(reported(page_result, targets=("a",), y=y, **whole | parts))


def test_the_first_paragraph_counts_molecules_or_rows():
    y = np.full((61, 2), np.nan)
    y[:60, 0] = 1
    page = reported(result({"a": facts(), "b": facts()}), labelled=many(1004, 61), fitted=model(), test={"y": y})
    assert "1,004 molecules" in summary(page) and "60 other molecules" in summary(page)
    repeated = replace(many(3, 2), structures=Structures(MoleculeStructure("C", "", key) for key in "aabbc"))
    assert "3 rows" in summary(replace(page, labelled=repeated))


def test_a_card_has_the_score_and_its_worth():
    better = facts(
        against_forest={"difference": -0.25, "interval": [-0.3, -0.1]},
        against_mean={"difference": -1.5, "interval": [-2.0, 0.1]},
    )
    page = reported(result({"a": better}), targets=("a",))
    (card,) = cards(page)
    assert (card.title, card.value, len(card.lines)) == ("a", "0.500", 3)
    numbers = (("0.400 to 0.612", "60"), ("0.750", "0.250", "0.100 to 0.300"), ("2.000", "1.500"))
    for sentence, known in zip(card.lines, numbers, strict=True):
        assert all(number in sentence for number in known)
    assert ["chance" in sentence for sentence in card.lines] == [False, False, True]


def test_better_is_lower_or_higher():
    found = {"difference": 0.25, "interval": [0.1, 0.3]}
    assert gain_of(found, "mae") == Estimate(-0.25, -0.3, -0.1) and gain_of(found, "rocauc") == Estimate(0.25, 0.1, 0.3)
    assert gain_of({"difference": None, "interval": None}, "rocauc") is None


def test_the_width_of_the_intervals_of_a_logarithm_is_also_a_factor():
    """10 ** (4 / 2) is 100."""
    trust = {"coverage": {"0.9": {"a": 0.96}}, "mean_width": {"0.9": {"a": 4.0}}}
    page = reported(result({"a": facts()}, trust=trust), targets=("a",))
    assert (cards(page)[-1].title, cards(page)[-1].value) == ("Intervals", "96 %")
    assert "90 % interval" in cards(page)[-1].lines[0]
    for scales, factor in (((), False), (("log10",), True)):
        page.test.task = replace(page.task, scales=scales)
        said = cards(page)[-1].lines[-1]
        assert "4.00 wide" in said and ("a factor of 100 " in said) == ("factor" in said) == factor


@pytest.mark.parametrize(
    ("folds", "words"),
    [([0, 1, 0, 1], "Out of fold, on 3 training labels: 0.250."), ([-1, 0, 0, 0], "On 2 validation labels: 0.375.")],
)
def test_a_card_of_few_test_labels_has_the_score_out_of_fold(folds, words):
    """The errors are 0, 0.25 and 0.5; one label is missing."""
    y, values = np.array([[1.0], [2], [3], [NAN]]), np.array([[1.0], [2.25], [3.5], [NAN]])
    found = model(out_of_fold=Stacked(values[None], values, values))
    parts = {"y": y, "fitted": found, "folds": Folds(np.array(folds))}
    inside = "95 % interval 0.200 to 0.600, on 50 test labels."
    for n, ends, last in ((49, [0.2, 0.6], words), (50, [0.2, 0.6], inside), (50, [0.4, 0.6], words)):
        told = facts() | {"n": n, "interval": {"stack": ends}}
        (card,) = cards(reported(result({"a": told}), targets=("a",), **parts))
        assert card.lines[-1] == last


def test_several_targets_have_a_card_for_their_mean():
    forest = {"random_forest": {"mae": 0.75}}
    mean, first, second = cards(reported(result({"a": facts(), "b": facts(value=0.7)}, baseline=forest)))
    assert (mean.title, mean.value) == ("Mean of 2 targets", "0.500")
    assert mean.lines == ("Forest: 0.750.",) and (first.value, second.value) == ("0.500", "0.700")
    mean, *_ = cards(reported(result({"a": facts(), "b": facts()}, left_out={"b": "too few"})))
    assert mean.title == "Mean of 1 target" and "b" in mean.lines[0].split()[1]


def test_a_card_has_the_coverage_of_the_sets_of_classes():
    """Of two targets with labels, the mean over their labels: 40 and 80."""
    shares = {
        "set_coverage": {"0.9": {"a": 0.9, "b": 0.96, "c": None}},
        "one_class": {"0.9": {"a": 0.3, "b": 0.5, "c": None}},
    }
    told = {"a": facts("rocauc") | {"n": 40}, "b": facts("rocauc") | {"n": 80}}
    *_, card = cards(reported(result(told, trust=shares), "classification"))
    assert (card.title, card.value) == ("Sets of classes", "94 %")
    assert "90 % set" in card.lines[0] and card.lines[1].startswith("43 %")


def test_a_card_has_the_share_of_correct_classes():
    test = {"y": np.array([[0.0], [0], [0], [1], [NAN]]), "prediction": np.array([[0.1], [0.2], [0.7], [0.6], [0.9]])}
    known = {"y": np.array([[1.0], [1], [0]]), "class_names": (("inactive", "active"),)}
    _, card = cards(
        reported(result({"a": facts("accuracy", 0.75)}), "classification", ("a",), "accuracy", test, **known)
    )
    assert (card.value, card.lines) == ("75 %", ("of the test molecules; always to predict active would give 25 %.",))


def test_probabilities_that_are_worse_than_a_constant_are_said():
    """Half of the training labels are 1, so the constant 0.5 has a Brier score of 0.25 on any labels."""
    test = {"y": np.array([[0.0], [1]]), "prediction": np.array([[0.9], [0.1]])}

    def said(brier: float) -> list[str]:
        told = result({"a": facts("rocauc")}, trust={"brier": {"after": {"a": brier}}})
        page = reported(told, "classification", ("a",), test=test, y=np.array([[0.0], [1]]))
        return list(of_probabilities(page))

    (sentence,) = said(0.81)
    assert "0.810" in sentence and "0.250" in sentence
    assert said(0.25) == said(0.2501) == [], "the same digits"


def test_few_molecules_are_said():
    few, nothing = {**facts(), "n": 20, "warning": "a warning"}, np.zeros((0, 1))
    tested, learnt = warned(result({"a": few}), nothing, np.zeros((2, 0, 1)), nothing, labelled=many(40, 20))
    assert "20 test labels" in tested and "--folds 5" in tested and "40" in learnt
    rare = {**facts(), "n": 90, "rarer": {"class": "yes", "n": 24}}
    tested, _ = warned(result({"a": rare}), nothing, np.zeros((2, 0, 1)), nothing, labelled=many(40, 20))
    assert "90 test labels, 24 of them yes" in tested
    assert "a: a warning." in said(verdict(few))


def test_salts_with_larger_errors_are_said():
    found = looked(["C.Cl"] * 5 + ["CC"] * 5, [2.0] * 5 + [0.5] * 4 + [NAN])
    (note,) = warned(result({"a": facts()}), Y, np.stack([Y, Y]), Y + 0.01, looked=found)
    assert note.startswith("5 test molecules") and "2.00" in note and "0.50" in note
    for errors in ([0.5] * 10, [0.5] * 5 + [2.0] * 5):
        found = looked(["C.Cl"] * 5 + ["CC"] * 5, errors)
        assert warned(result({"a": facts()}), Y, np.stack([Y, Y]), Y + 0.01, looked=found) == ()
    assert warned(result({"a": facts()}), Y, np.stack([Y, Y]), Y + 0.01, looked=looked(["C.Cl"] * 4, [2.0] * 4)) == ()


def test_members_without_weight_are_named_with_the_minutes_that_they_took(tmp_path):
    """Two networks of 100 and 80 seconds: 3 minutes. A weight for one of two targets is one."""
    run = RunFolder(tmp_path)
    (tmp_path / "stack.safetensors").touch()
    for number, seconds in enumerate(([60, 40], [80])):
        folder = tmp_path / f"model-{number}"
        folder.mkdir()
        (folder / "metrics.jsonl").write_text("".join(f'{{"epoch": 1, "seconds": {each}}}\n' for each in seconds))
    run.begin_parts(Parts("model", 2))
    told = result({"a": facts()}, members={"networks": {}})
    parts = {"run": run, "model": {"members": MEMBERS, "weights": ((0.5, 0.0), (0.5, 1.0), (0.0, 0.0))}}
    (said,) = warned(told, Y, np.stack([Y] * 3), Y + 0.01, **parts)
    assert "networks" in said and "3 minutes" in said and "forest" not in said
    parts["model"]["weights"] = ((0.5,), (0.4,), (0.1,))
    assert warned(told, Y, np.stack([Y] * 3), Y + 0.01, **parts) == ()


TASK = TaskConfig("regression", "mae", ("a", "pIC50"), scales=("-log10 nM", ""))
FACTS = {
    "n": 60,
    "scores": {"stack": {"mae": 0.4, "rmse": 0.5}, "mean": {"mae": 0.9, "rmse": 1.0}},
    "ranking": {"metric": "spearman", "value": 0.71, "interval": [0.62, 0.79]},
    "against_mean": {"difference": -0.5, "interval": [-0.7, -0.3]},
}
TRUST = {"coverage": {"0.9": {"a": 0.91, "pIC50": 0.88}}}


def verdict(facts=FACTS, trust=TRUST, task=TASK, target="a", out_of_fold=({}, ""), pairs=()) -> dict:
    """That on a target of several with the labels 8.1, 8.3 and 9.9, and perhaps pairs of a classification."""
    parts = {"task": task, "shares": lambda name: trust.get(name, {}).get("0.9", {}), "options": None}
    parts |= {"labels": SimpleNamespace(y=np.array([[8.1], [8.3], [9.9]]).repeat(2, axis=1)), "labelled": table()}
    parts |= {"out_of_fold": lambda target: out_of_fold, "most_labelled": lambda place: (*pairs, "")}
    parts |= {"few": reported({}).few, "confidence": "0.9" if "coverage" in trust else None}
    return verdict_of(SimpleNamespace(**parts), target, facts)


def said(verdict: dict) -> str:
    return reported(result({"a": facts(), "b": facts()})).line("headline.verdict", verdict=verdict)


def test_the_facts_of_a_series(monkeypatch):
    """10 ** 0.5 is 3.16; a median of 8.3 is 5 nM."""
    monkeypatch.setattr(headline, "repeatability", lambda *_: {"a": 0.25})
    found = verdict()
    assert [found[name] for name in ("ranks", "repeats", "held", "is_no_better")] == ["well", 0.25, 0.91, False]
    assert found["factor"] == pytest.approx(3.162, abs=1e-3) and found["example"] == ("5", "16", "nM")


def test_only_logarithms_of_concentrations_are_factors():
    assert verdict(target="pIC50")["factor"] and not verdict(target="pIC50")["example"]
    other = replace(TASK, targets=("log_solubility", "pH"), scales=("", ""))
    assert [verdict(task=other, target=name)["factor"] for name in other.targets] == [None, None]


def test_a_model_that_is_no_better_than_the_mean_is_said():
    """For exact labels, as with many bounds, an error above that of the mean is said by itself."""
    facts = FACTS | {"against_mean": {"difference": -0.1, "interval": [-0.3, 0.1]}}
    worse = FACTS | {"against_mean": {"difference": 0.02, "interval": [-0.1, 0.1]}}
    assert [verdict(each)["is_worse"] for each in (worse, FACTS)] == [True, False]
    found = said(verdict(facts))
    assert found.startswith("a: ranks well") and "use the order, not the values" in found
    weak = facts | {"ranking": FACTS["ranking"] | {"value": 0.3, "interval": [0.1, 0.5]}}
    assert "do not rely" in said(verdict(weak))


@pytest.mark.parametrize(("bounds", "is_no_better"), [(30, False), (5, True)])
def test_where_many_labels_are_bounds_their_likelihood_decides(bounds, is_no_better):
    """30 of 90 labels are many, 5 of 65 are not."""
    scores = {"bounds": bounds, "right_side": 0.7, "concordance": 0.8}
    of_all = {"stack": scores | {"log_likelihood": -0.84}, "mean": scores | {"log_likelihood": -1.5}}
    facts = FACTS | {"against_mean": {"difference": -0.1, "interval": [-0.3, 0.1]}, "bounds": of_all}
    assert verdict(facts)["is_no_better"] == is_no_better


def test_classes_have_a_verdict_of_their_own():
    task = TaskConfig("classification", "rocauc", ("a",))
    trust = {"set_coverage": {"0.9": {"a": 0.92}}}
    scores = {"stack": {"rocauc": 0.85}, "mean": {"rocauc": 0.5}}
    facts = {"n": 60, "scores": scores, "ranking": {"metric": "rocauc", "value": 0.85, "interval": [0.75, 0.9]}}
    found = verdict(facts, trust, task, pairs=(np.zeros(100), np.full(100, 0.5)))
    assert (found["ranks"], found["calibration"][0], found["held"], found["rmse"]) == ("fairly", 0.5, 0.92, None)


@pytest.mark.parametrize(
    ("interval", "ranks"), [([0.61, 0.9], "well"), ([0.4, 0.9], "fairly"), ([0.1, 0.5], "weakly"), ([-0.1, 0.5], "")]
)
def test_the_lower_end_tells_how_well_it_ranks(interval, ranks):
    assert strength({"metric": "spearman", "interval": interval}) == ranks
    assert strength({"metric": "rocauc", "interval": [(1 + end) / 2 for end in interval]}) == ranks


def test_no_interval_is_no_verdict_on_the_order():
    facts = {"n": 1, "scores": {"stack": {"mae": 0.5, "rmse": 0.5}}}
    found = verdict(facts, {})
    assert found["ranks"] is None and "1 test label" in said(found)


@pytest.mark.parametrize(
    ("known", "scores", "more"),
    [
        ({}, {"rmse": 0.8}, {}),  # 60 labels are enough
        ({"n": 14}, {"mae": 0.6, "rmse": 0.8}, {"RMSE": "0.800"}),
        ({"interval": {"stack": [0.3, 0.5]}}, {"mae": 0.4, "rmse": 0.9, "spearman": 0.5}, {"Spearman": "0.50"}),
        ({"interval": {"stack": [0.3, 0.5]}}, {"mae": 0.6, "rmse": 0.9, "spearman": 0.7}, {"MAE": "0.600"}),
    ],
)
def test_scores_out_of_fold_are_told_for_few_labels_and_outside_the_interval(known, scores, more):
    """The interval of the order is 0.62 to 0.79."""
    assert verdict(FACTS | known, out_of_fold=(scores, "out of fold"))["more"] == more


def calibrated(noise: float, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Labels with a slope of exactly 1 against predictions of variance 1, and of 1 / (1 + noise^2) the other way."""
    columns = np.random.default_rng(1).normal(size=(count, 2))
    predicted, rest = np.linalg.qr(columns - columns.mean(axis=0))[0].T * count**0.5
    return predicted + noise * rest, predicted


def told(y: np.ndarray, predicted: np.ndarray, kind: str = "regression", words=of_bias, tested=None) -> list[str]:
    """The sentences on labels and out-of-fold predictions of one target, and on test molecules."""
    found = SimpleNamespace(out_of_fold=SimpleNamespace(values=predicted[:, None]))
    parts = {"fitted": found, "folds": Folds(np.arange(len(y)) % 2)}
    test = None if tested is None else dict(zip(("y", "prediction"), (each[:, None] for each in tested), strict=True))
    return list(words(reported(kind=kind, targets=("a",), y=y[:, None], test=test, **parts)))


def test_a_slope_by_hand():
    assert slope_of(np.array([0.0, 1]), np.array([0.0, 0.5])) == pytest.approx(0.5)
    assert np.isnan(slope_of(np.ones(3), np.arange(3.0))) and np.isnan(slope_of(np.empty(0), np.empty(0)))
    few = np.arange(LEAST_DRAWN - 1.0)
    assert resampled_slope(few, few) is None and resampled_slope(np.ones(20), np.arange(20.0)) is None
    assert resampled_slope(np.arange(20.0), 3 * np.arange(20.0)) == pytest.approx((3, 3, 3))


def test_a_slope_that_may_be_noise_is_no_bias():
    """With 15 molecules, the interval of a slope of 0.67 contains 1."""
    y, predicted = calibrated(1.0, 15)
    slope = resampled_slope(1.5 * predicted, y)
    assert slope.value < 0.8 < 1 < slope.high and not slope.is_biased
    assert resampled_slope(1.5 * np.tile(predicted, 40), np.tile(y, 40)).is_biased, "the same of 600 molecules"


def test_accurate_predictions_need_no_sentence():
    y, predicted = calibrated(0.3)
    assert told(y, predicted) == told(y, predicted, words=of_extremes) == []
    assert told(y, 0.4 * predicted, "classification") == []


def test_a_calibrated_model_of_low_r2_misses_extremes_but_its_values_may_be_used():
    """R2, and the slope of predicted against measured values, is 1 / (1 + 1.5) = 0.4."""
    y, predicted = calibrated(1.5**0.5)
    assert told(y, predicted) == [], "nothing to act on"
    (sentence,) = told(y, predicted, words=of_extremes)
    assert "is predicted 0.40 above it" in sentence and "is measured 1.00 above it" in sentence
    missing = np.append(y, [NAN, 100.0]), np.append(predicted, [100.0, NAN])
    assert told(*missing, words=of_extremes) == [sentence], "missing labels do not count"


@pytest.mark.parametrize(("factor", "words", "slope"), [(0.5, "close to", "2.00"), (2, "far from", "0.50")])
def test_biased_values_are_good_for_ranking_only(factor, words, slope):
    y, predicted = calibrated(0.3)
    (sentence,) = told(y, factor * predicted)
    assert f"out of fold, predictions are too {words} the mean" in sentence and f"measured {slope} above" in sentence
    assert "rank molecules, not as values" in sentence
    (of_test,) = told(y, predicted, tested=(np.append(y, NAN), np.append(factor * predicted, 100.0)))
    assert f"on the test molecules, predictions are too {words}" in of_test and slope in of_test
    assert told(y, predicted, tested=(y[:9], factor * predicted[:9])) == [], "too few molecules to say"


def test_predictions_without_skill_are_not_reliable():
    generator = np.random.default_rng(0)
    (sentence,) = told(generator.normal(size=400), generator.normal(size=400))
    assert sentence.endswith("Rely neither on the values nor on their order.")
    (sentence,) = told(np.arange(20.0), np.zeros(20), words=of_extremes)
    assert sentence.endswith("is predicted 0.00 above it on average.")
    assert told(np.ones(20), np.ones(20)) == []
