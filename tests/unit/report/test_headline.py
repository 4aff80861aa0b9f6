"""The cards and warnings at the top of a report, by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from graphormer_sepnorm.report.headline import (
    QUICK,
    cards,
    notes,
    of_probabilities,
    summary,
    without_networks,
)
from graphormer_sepnorm.table_model.labels import Folds
from graphormer_sepnorm.table_model.model import Stacked
from graphormer_sepnorm.tables.structures import Structures
from tests.unit.report.conftest import reported, table

NAN = float("nan")


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
    structures = Structures(["C"] * whole, [""] * whole, list(map(str, range(whole))))
    return table(*[("train", "C", [0.0])] * count, *[("test", "CC", [0.0])] * tested, structures=structures)


def warned(page_result: dict, y: np.ndarray, by_member: np.ndarray, values: np.ndarray, **parts) -> tuple[str, ...]:
    """The notes of a report on one target with these out-of-fold predictions."""
    fitted = model(**parts.pop("model", {}), out_of_fold=Stacked(by_member, values, values))
    whole = {"labelled": many(), "looked": looked(), "fitted": fitted, "folds": Folds(np.arange(len(y)) % 2)}
    return notes(reported(page_result, targets=("a",), y=y, **whole | parts))


def fine(y: np.ndarray) -> np.ndarray:
    return y + 0.01


def test_the_first_paragraph_counts_molecules():
    targets, words = {"a": facts(), "b": facts()}, "fitted to 1,004 molecules and tested on 60 other molecules."
    y = np.full((61, 2), np.nan)
    y[:60, 0] = 1
    page = reported(result(targets), labelled=many(1004, 61), fitted=model(), test={"y": y})
    assert summary(page) == f"A regression model of a, b, {words}"
    repeated = replace(many(3, 2), structures=Structures(["C"] * 5, [""] * 5, list("aabbc")))
    assert "fitted to 3 rows and tested on 60 other rows." in summary(replace(page, labelled=repeated))


def test_a_model_without_a_forest_is_said_outside_the_warnings():
    page = reported(result({"a": facts()}), labelled=many(), fitted=model(("kernel",)))
    assert summary(page).endswith(" other molecules. There is no comparison with a forest, because --quick was used.")
    without = reported(result({"a": facts()}), labelled=many(), fitted=model(("kernel", "networks")))
    assert summary(without).endswith("because --no-baseline was used.")
    failed = model(("kernel",))
    failed.left_out["forest"] = "no memory"
    assert "forest" not in summary(reported(result({"a": facts()}), labelled=many(), fitted=failed)), (
        "a warning says it"
    )


def test_a_card_has_the_score_and_its_worth():
    better = facts(
        against_forest={"difference": -0.25, "interval": [-0.3, -0.1]},
        against_mean={"difference": -1.5, "interval": [-2.0, 0.1]},
    )
    (card,) = cards(reported(result({"a": better}), targets=("a",)))
    assert (card.title, card.value, card.unit) == ("a", "0.500", "mean absolute error (MAE)")
    assert card.lines == (
        "95 % interval 0.400 to 0.612, on 60 test labels.",
        "Forest: 0.750. The model is better by 0.250 (95 % interval 0.100 to 0.300).",
        "Mean training label: 2.000. The model is better by 1.500, but this may be chance (95 % interval -0.100 to "
        "2.000).",
    )


def test_the_error_of_a_logarithm_is_also_a_factor():
    """10 ** 0.5 is 3.16; of two targets, only the logarithm."""
    page = reported(result({"a": facts(), "b": facts()}))
    page.test.task = replace(page.task, scales=("", "log10"))
    words = "An error of 0.500 in the logarithm is a factor of 3.2."
    assert [words in card.lines for card in cards(page)] == [False, False, True]


def test_a_logarithm_without_exact_test_labels_has_no_error():
    page = reported(result({"a": facts(), "b": facts(value=None, interval={"stack": None})}))
    page.test.task = replace(page.task, scales=("", "log10"))
    assert [card.value for card in cards(page)][-1] == "not defined"


def test_the_width_of_the_intervals_of_a_logarithm_is_also_a_factor():
    """10 ** (2.6 / 2) is 19.95."""
    trust = {"coverage": {"0.9": {"a": 0.96}}, "mean_width": {"0.9": {"a": 2.6}}}
    page = reported(result({"a": facts()}, trust=trust), targets=("a",))
    for scales, words in (
        ((), "2.60 wide on average."),
        (("log10",), "2.60 wide on average, about a factor of 20 up or down."),
    ):
        page.test.task = replace(page.task, scales=scales)
        assert cards(page)[-1].lines[-1] == f"The intervals are {words}"


@pytest.mark.parametrize(
    ("folds", "words"),
    [
        ([0, 1, 0, 1], "Out of fold, on 3 training labels: 0.250."),
        ([-1, 0, 0, 0], "On 2 validation labels: 0.375."),
    ],
)
def test_a_card_of_few_test_labels_has_the_score_out_of_fold(folds, words):
    """The errors are 0, 0.25 and 0.5; one label is missing."""
    y, values = np.array([[1.0], [2], [3], [NAN]]), np.array([[1.0], [2.25], [3.5], [NAN]])
    found = model(out_of_fold=Stacked(values[None], values, values))
    parts = {"y": y, "fitted": found, "folds": Folds(np.array(folds))}
    for n, last in ((49, words), (50, "95 % interval 0.400 to 0.612, on 50 test labels.")):
        (card,) = cards(reported(result({"a": facts() | {"n": n}}), targets=("a",), **parts))
        assert card.lines[-1] == last


@pytest.mark.parametrize(
    ("metric", "kind", "found", "words"),
    [
        (
            "mae",
            "regression",
            {"difference": 0.25, "interval": [0.1, 0.3]},
            "worse by 0.250 (95 % interval 0.100 to 0.3",
        ),
        ("rocauc", "classification", {"difference": 0.25, "interval": [0.1, 0.3]}, "better by 0.25"),
        (
            "rocauc",
            "classification",
            {"difference": -0.2, "interval": [-0.3, -0.1]},
            "worse by 0.200 (95 % interval",
        ),
        (
            "rocauc",
            "classification",
            {"difference": -0.025, "interval": [-0.3, 0.1]},
            "worse by 0.025, but this may be chance (95 % interval -0.100 to 0.300).",
        ),
        (
            "mae",
            "regression",
            {"difference": 0.00001, "interval": [-0.3, 0.1]},
            "The model is equal (95 % interval -0.100 to 0.300).",
        ),
        ("rocauc", "classification", {"difference": None, "interval": None}, "The difference is not defined."),
    ],
)
def test_better_is_lower_or_higher(metric, kind, found, words):
    page = reported(
        result({"a": facts(metric, against_forest=found)}),
        kind,
        ("a",),
        metric,
        test={"y": np.array([[0.0], [1]]), "prediction": np.array([[0.1], [0.9]])},
        y=np.array([[0.0], [1]]),
    )
    assert words in cards(page)[0].lines[1]


def test_several_targets_have_a_card_for_their_mean():
    forest = {"random_forest": {"mae": 0.75}}
    mean, first, second = cards(reported(result({"a": facts(), "b": facts(value=0.7)}, baseline=forest)))
    assert (mean.title, mean.value) == ("Mean of 2 targets", "0.500")
    assert mean.lines == ("Forest: 0.750.",) and (first.value, second.value) == ("0.500", "0.700")


def test_a_card_has_the_coverage_of_the_intervals():
    trust = {"coverage": {"0.9": {"a": 0.823}}, "mean_width": {"0.9": {"a": 2.301}}}
    _, card = cards(reported(result({"a": facts()}, trust=trust), targets=("a",)))
    assert (card.title, card.value) == ("Intervals", "82 %")
    assert card.lines == (
        "of the test values are inside their 90 % interval.",
        "The intervals are 2.30 wide on average.",
    )


def test_a_card_has_the_coverage_of_the_sets_of_classes():
    """Of two targets with labels, the mean."""
    shares = {
        "set_coverage": {"0.9": {"a": 0.9, "b": 0.96, "c": None}},
        "one_class": {"0.9": {"a": 0.3, "b": 0.5, "c": None}},
    }
    *_, card = cards(reported(result({"a": facts("rocauc"), "b": facts("rocauc")}, trust=shares), "classification"))
    assert (card.title, card.value) == ("Sets", "93 %")
    assert card.lines == (
        "of the test molecules have their class in their 90 % set: the classes that cannot be ruled out at this "
        "confidence.",
        "40 % of the sets have one class.",
    )


def test_a_card_has_the_share_of_correct_classes():
    test = {"y": np.array([[0.0], [0], [0], [1], [NAN]]), "prediction": np.array([[0.1], [0.2], [0.7], [0.6], [0.9]])}
    known = {"y": np.array([[1.0], [1], [0]]), "class_names": (("inactive", "active"),)}
    _, card = cards(reported(result({"a": facts("rocauc")}), "classification", ("a",), test=test, **known))
    assert (card.value, card.lines) == (
        "75 %",
        ("of the test molecules; the constant prediction, always active, would have 25 %.",),
    )


def test_probabilities_that_are_worse_than_a_constant_are_said():
    """Half of the training labels are 1, so the constant 0.5 has a Brier score of 0.25 on any labels."""
    test = {"y": np.array([[0.0], [1]]), "prediction": np.array([[0.9], [0.1]])}

    def said(brier: float) -> list[str]:
        told = result({"a": facts("rocauc")}, trust={"brier": {"after": {"a": brier}}})
        page = reported(told, "classification", ("a",), test=test, y=np.array([[0.0], [1]]))
        return list(of_probabilities(page))

    assert said(0.81) == [
        "a: on the test molecules, the probabilities are worse than the constant prediction (Brier score 0.810 instead "
        "of 0.250): use them only to rank molecules."
    ]
    assert said(0.25) == []


def test_few_molecules_are_said():
    few, nothing = {**facts(), "n": 20, "warning": "a warning"}, np.zeros((0, 1))
    page = reported(
        result({"a": few}),
        targets=("a",),
        y=nothing,
        labelled=many(40, 20),
        looked=looked(),
        fitted=model(out_of_fold=Stacked(np.zeros((2, 0, 1)), nothing, nothing)),
        folds=Folds(np.zeros(0)),
    )
    assert notes(page) == (
        "a: a warning.",
        "The test set is small (20 labels), so the score is uncertain. Train once more with --folds 5 --out OTHER to "
        "test every molecule.",
        "There are only 40 training molecules: more measurements are likely to help more than another model.",
    )


def test_intervals_that_contain_too_few_labels_are_said():
    y = np.linspace(-2, 2, 50)[:, None]
    trust = {"coverage": {"0.9": {"a": 0.7}}, "needed_width": {"0.9": {"a": 2}}}
    (note,) = warned(result({"a": facts()}, trust=trust), y, np.stack([y, y]), fine(y))
    assert (
        note.startswith("Only 70 % of the 60 test labels of a are inside their 90 % intervals, which are too narrow")
        and note[-1] == "."
    )


def test_salts_with_larger_errors_are_said():
    y = np.linspace(-2, 2, 50)[:, None]
    found = looked(["C.Cl"] * 5 + ["CC"] * 5, [2.0] * 5 + [0.5] * 4 + [NAN])
    (note,) = warned(result({"a": facts()}), y, np.stack([y, y]), fine(y), looked=found)
    assert note.startswith(
        "5 test molecules are salts or mixtures: their mean error is 2.00, that of the others is 0.50."
    )
    for errors in ([0.5] * 10, [0.5] * 5 + [2.0] * 5):
        found = looked(["C.Cl"] * 5 + ["CC"] * 5, errors)
        assert warned(result({"a": facts()}), y, np.stack([y, y]), fine(y), looked=found) == ()
    assert warned(result({"a": facts()}), y, np.stack([y, y]), fine(y), looked=looked(["C.Cl"] * 4, [2.0] * 4)) == ()


MEMBERS = ("kernel", "forest", "networks")


def test_networks_that_add_nothing_are_said():
    """The kernel and the networks err alike: without the networks, the score is the same."""
    y = np.linspace(-2, 2, 50)[:, None]
    noise = 0.3 * np.random.default_rng(0).normal(size=y.shape)
    same = np.stack([y + noise, y + noise, y + noise])
    found = warned(
        result({"a": facts()}), y, same, y + noise, model={"members": MEMBERS, "weights": [[0.3], [0.3], [0.4]]}
    )
    assert len(found) == 1 and found[0].startswith(
        "a: the networks show no clear gain. Out of fold, the MAE is the same with and without them (95 % interval "
    )
    found = warned(
        result({"a": facts()}), y, same, y + noise, model={"members": MEMBERS, "weights": [[0.5], [0.5], [0.0]]}
    )
    assert found[0].startswith("a: the networks have the weight 0.") and found[0].endswith(QUICK)


def test_networks_that_make_the_score_worse_are_said():
    """The model has twice the error of its members without networks."""
    y = np.linspace(-2, 2, 50)[:, None]
    parts = {"members": MEMBERS, "weights": [[0.3], [0.3], [0.4]]}
    (note,) = warned(result({"a": facts()}), y, np.stack([y + 0.25, y + 0.25, y + 1]), y + 0.5, model=parts)
    assert "Out of fold, the MAE is worse by 0.250 with them than without (95 % interval 0.250 to 0.250)." in note


def test_the_kernel_is_recommended_only_if_it_scores_as_well_as_the_model():
    """The forest is much better than the kernel, and the model predicts the same as without the networks."""
    y = np.linspace(-2, 2, 50)[:, None]
    noise, other = np.random.default_rng(0).normal(size=(2, *y.shape))
    by_member, parts = np.stack([y + noise, y + 0.1 * other, y + noise]), {"members": MEMBERS, "weights": [[0.3]] * 3}
    fitted = model(**parts, out_of_fold=Stacked(by_member, y, y))
    values = without_networks(reported(targets=("a",), y=y, fitted=fitted))
    assert warned(result({"a": facts()}), y, by_member, values, model=parts) == ()


def test_networks_that_improve_the_score_are_not_warned_of():
    y = np.linspace(-2, 2, 50)[:, None]
    noise = np.random.default_rng(0).normal(size=y.shape)
    better = np.stack([y + noise, y + noise, y + 0.1 * noise])
    weights = [[0.1], [0.1], [0.8]]
    assert (
        warned(result({"a": facts()}), y, better, y + 0.2 * noise, model={"members": MEMBERS, "weights": weights}) == ()
    )


def test_members_without_networks_get_weights_of_their_own():
    """The kernel is right and the forest is not: without the networks, nearly all of the weight is the kernel's."""
    y = np.linspace(-2, 2, 400)[:, None]
    found = model(MEMBERS, ((0,), (0,), (1,)), Stacked(np.stack([y, -y, y]), y, y))
    page = reported(targets=("a",), y=y, fitted=found)
    assert np.abs(without_networks(page) - y).max() < 0.3
    for members in (("networks",), ("kernel", "forest")):
        assert without_networks(reported(fitted=model(members))) is None


def test_members_that_were_left_out_and_remarks_are_said():
    y = np.linspace(-2, 2, 50)[:, None]
    told = result({"a": facts()}, left_out_members={"networks": "no time"}, remarks={"kernel": "the kernel is odd"})
    found = warned(told, y, y[None], fine(y), model={"members": ("kernel",), "weights": [[1.0]]})
    assert found == (
        "The member networks was left out: no time.",
        "The kernel is odd.",
    )
