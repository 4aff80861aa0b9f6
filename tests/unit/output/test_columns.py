"""The columns that predictions add, of two tiny models."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import Answers
from graphormer_sepnorm.output.columns import PredictionColumns, chosen_endpoints
from graphormer_sepnorm.predict.acquisition import Acquisition
from graphormer_sepnorm.predict.classes import fit_class_sets
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.predict.predictors import Embedder, Predictor
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.runs.zoo import AssayLimit
from graphormer_sepnorm.table_model.explain import stack_of
from graphormer_sepnorm.table_model.features import Conditions
from tests.tiny import Trusting, tiny_model


def two_models(trust: Trust | None = None) -> Predictor:
    return Trusting([tiny_model(targets=("a", "b"), seed=seed) for seed in range(2)], trust=trust)


@pytest.fixture(scope="module")
def trusting() -> Predictor:
    """With intervals of known widths: the spread plus one tenth, times 4.5 at confidence 0.9."""
    errors, zeros = np.tile(np.arange(1, 10)[:, None] / 20, 2), np.zeros((9, 2))
    return two_models(Trust(fit_domain(["CCO", "CCN"]), fit_intervals(errors, zeros, zeros + 0.1)))


def names(columns: PredictionColumns) -> list[str]:
    return [column.name for column in columns.all]


def cells_of(columns: PredictionColumns, smiles: list[str], errors: list[str] | None = None) -> dict:
    """The predictions of molecules by the names of their columns."""
    found = columns.reader.compute(read_molecules("ogb", smiles))
    cells = columns.cells(found, found.errors if errors is None else errors)
    return dict(zip(names(columns), cells, strict=True))


def test_conditions_of_all_molecules_are_columns():
    conditions = Conditions.of(("T", "assay"), [("25.0", "a"), ("37.0", "b")]).under({"T": "37", "assay": "b"})
    columns = PredictionColumns(replace(stack_of(two_models()), conditions=conditions))
    assert names(columns)[:3] == ["T", "assay", "a"]
    found = columns.model.predict(["CC", "C[C"])
    temperature, assay, *_ = columns.cells(found, found.errors)
    assert (temperature.tolist(), assay) == ([37.0, 37.0], ["b", "b"])


def test_what_belongs_to_a_target_stands_together_then_the_domain_then_the_error(trusting):
    assert names(PredictionColumns(Predictor([tiny_model(targets=("a", "b"))]))) == ["a", "b", "error"]
    assert names(PredictionColumns(two_models())) == ["a", "a_std", "b", "b_std", "error"]
    whole = PredictionColumns(trusting, Answers(0.9, True))
    of_targets = ["a", "a_low", "a_high", "a_std", "b", "b_low", "b_high", "b_std"]
    assert names(whole) == [*of_targets, "nearest", "similarity", "warning", "error"]


def test_an_interval_of_a_logarithm_is_also_given_in_the_unit_that_was_measured(trusting):
    """A low pIC50 is a high concentration, so its bounds change places."""
    model, config = trusting.models[0]
    task = replace(config.task, targets=("pIC50", "logD"), scales=("-log10 nM", "log10"))
    columns = PredictionColumns(Trusting([(model, replace(config, task=task))], trust=trusting.trust), Answers(0.9))
    found = dict(zip(names(columns), columns.cells(columns.reader.predict(["OCC"]), [""]), strict=True))
    assert list(found)[:-1] == [
        f"{target}{column}"
        for target, unit in (("pIC50", "_in_nM"), ("logD", "_unlogged"))
        for column in ("", unit, "_low", "_high", f"{unit}_low", f"{unit}_high")
    ]
    assert found["pIC50_in_nM"][0] == pytest.approx(10 ** (9 - found["pIC50"][0]), rel=1e-5)
    assert found["pIC50_in_nM_low"][0] == pytest.approx(10 ** (9 - found["pIC50_high"][0]))
    assert found["pIC50_in_nM_high"][0] == pytest.approx(10 ** (9 - found["pIC50_low"][0]))
    assert found["logD_unlogged_low"][0] == pytest.approx(10 ** found["logD_low"][0])
    about = dict(columns.about)
    assert about["logD"].startswith("log10 ") and "-log10 " in about["pIC50"] and "in nM" in about["pIC50_in_nM"]
    assert "logD without the logarithm" in about["logD_unlogged"] and "in the unit" in about["logD_unlogged"]


def test_a_target_whose_assay_has_a_limit_has_a_column_on_it():
    model, config = tiny_model(targets=("a", "b"))
    limited = Predictor([(model, replace(config, task=replace(config.task, scales=("log10", ""))))])
    limited.assay_limits = {"a": AssayLimit(99, "less"), "b": AssayLimit(99, "more"), "other": AssayLimit(1, "less")}
    for answers in (Answers(), Answers(alerts=True)):
        columns = PredictionColumns(limited, answers)
        cells = cells_of(columns, ["OCC", "C[C"])
        assert list(cells)[:5] == ["a", "a_unlogged", "a_limit", "b", "b_limit"] and "other_limit" not in cells
        assert cells["a_limit"] == ["near the lower limit of the assay: read as at most", ""]
        assert cells["b_limit"] == ["", ""]
    assert ("predictions", "b", "limit") in [column.place for column in columns.all]


def test_predictions_and_intervals_stay_within_the_limits_of_their_target(trusting):
    free = trusting.predict(["OCC", "C[C"]).values[0]
    limits = ((None, float(free[0]) - 1), (float(free[1]) + 1, None))
    config = replace(trusting.models[0][1], task=replace(trusting.models[0][1].task, limits=limits))
    limited = Trusting([(model, config) for model, _ in trusting.models], trust=trusting.trust)
    cells = cells_of(PredictionColumns(limited, Answers(0.9)), ["OCC", "C[C"])
    assert cells["a"][0] == cells["a_high"][0] == pytest.approx(free[0] - 1) and cells["a_low"][0] < cells["a"][0]
    assert cells["b"][0] == cells["b_low"][0] == pytest.approx(free[1] + 1) and cells["b_high"][0] > cells["b"][0]
    assert all(np.isnan(cells[name][1]) for name in ("a", "a_high", "b", "b_low"))


def test_cells_are_those_of_their_columns(trusting):
    columns = PredictionColumns(trusting, Answers(0.9, True))
    found = columns.reader.compute(read_molecules("ogb", ["OCC", "C[C"]))
    cells = dict(zip(names(columns), columns.cells(found, ["", "mine"]), strict=True))
    for place, target in enumerate("ab"):
        np.testing.assert_array_equal(cells[target], found.values[:, place])
        np.testing.assert_array_equal(cells[f"{target}_std"], found.spread[:, place])
        width = 2 * 4.5 / 2 * (found.spread[0, place] + 0.1)
        assert cells[f"{target}_high"][0] - cells[f"{target}_low"][0] == pytest.approx(2 * width / 2, rel=1e-5)
        assert (cells[f"{target}_high"][0] + cells[f"{target}_low"][0]) / 2 == pytest.approx(cells[target][0], rel=1e-5)
        assert np.isnan(cells[f"{target}_low"][1])
    assert cells["nearest"] == ["CCO", ""] and cells["similarity"][0] == 1 and np.isnan(cells["similarity"][1])
    assert cells["warning"] == ["", ""] and cells["error"] == ["", "mine"]


def test_the_censored_label_of_the_nearest_molecule_has_a_column_of_its_own(trusting):
    """Only for a target that has one; the labels stay numbers."""
    bounds = np.full((2, 2, 2), [-np.inf, np.inf])
    bounds[0, 1, 1] = -6.5
    rows = TrainingRows.of(np.array([[1.0, np.nan], [2, 3]]), bounds)
    columns = PredictionColumns(two_models(replace(trusting.trust, rows=rows)), Answers(domain=True))
    cells = cells_of(columns, ["OCC", "NCC", "C[C"])
    assert cells["nearest_b_bound"] == ["<-6.5", "", ""] and "nearest_a_bound" not in cells
    np.testing.assert_array_equal(cells["nearest_b"], [np.nan, 3, np.nan])


@pytest.mark.parametrize("target", ["error", "warning", "similarity"])
def test_a_target_or_a_condition_may_have_the_name_of_another_column(trusting, target):
    model = Trusting([tiny_model(targets=(target, "b"), seed=seed) for seed in range(2)], trusting.trust)
    columns = PredictionColumns(model, Answers(domain=True))
    found = dict(zip(names(columns), columns.all, strict=True))
    assert len(found) == len(columns.all)
    assert found[target].place == (target,) and found[f"{target}_predicted"].place == ("predictions", target, "value")
    given = {"error": "37", "T": "25"}
    conditions = Conditions.of(tuple(given), [("25.0", "25.0"), ("37.0", "37.0")]).under(given)
    columns = PredictionColumns(replace(stack_of(two_models()), conditions=conditions))
    assert names(columns)[:2] == ["error_condition", "T"] and names(columns)[-1] == "error"


def test_what_is_measured_far_from_zero_is_written_with_all_its_digits(trusting):
    bounds = np.full((2, 2, 2), [-np.inf, np.inf])
    bounds[0, 0, 1] = 1_000_000.25
    rows = TrainingRows.of(np.array([[np.nan, 1], [1_000_000.75, 3]]), bounds)
    model = two_models(replace(trusting.trust, rows=rows))
    model.offset = (1_000_000.0, 0.0)
    columns = PredictionColumns(model, Answers(domain=True), acquisition=Acquisition("confidence-bound", "a"))
    kinds = {column.name: column.kind for column in columns.all}
    assert {kinds[name] for name in ("a", "nearest_a", "confidence_bound")} == {"precise"} and kinds["b"] == "number"
    assert cells_of(columns, ["OCC"])["nearest_a_bound"] == ["<1000000.25"]


def test_what_the_model_cannot_give_is_refused():
    asked = ("regression", Answers(0.9)), ("classification", Answers(0.9)), ("regression", Answers(domain=True))
    for kind, answers in asked:
        with pytest.raises(InputError, match=r"^the model has no information on its training molecules"):
            PredictionColumns(Predictor([tiny_model(kind=kind)]), answers)


def test_of_classes_there_are_sets_in_place_of_intervals():
    y, probability = np.tile([[1.0], [0.0]], (20, 2)), np.tile([[0.9], [0.1]], (20, 2))
    trust = Trust(fit_domain(["CCO", "CCN"]), class_sets=fit_class_sets(y, probability, exclude_each_other=False))
    names_of_a = ("no", "yes"), ("0", "1")
    model = Trusting([tiny_model(targets=("a", "b"), kind="classification", class_names=names_of_a)], trust=trust)
    columns = PredictionColumns(model, Answers(0.8))
    assert names(columns) == ["a", "a_class", "a_set", "b", "b_class", "b_set", "error"]
    found = columns.reader.compute(read_molecules("ogb", ["OCC", "C", "CC", "CCC", "C[C"]))
    found.values[:4] = [[0.95, 0.05], [0.05, 0.99], [0.5, 0.4999], [0.4999, 0.5]]
    cells = dict(zip(names(columns), columns.cells(found, found.errors), strict=True))
    assert cells["a_set"][:2] == ["yes", "no"] and cells["b_set"][:2] == ["0", "1"]
    assert cells["a_set"][4] == cells["b_set"][4] == "" and cells["a_class"] == ["yes", "no", "yes", "no", ""]
    np.testing.assert_array_equal(cells["b_class"], [0, 1, 0, 1, np.nan])
    with pytest.raises(InputError, match="choose one between 0 and 1"):
        PredictionColumns(model, Answers(1.0))
    with pytest.raises(InputError, match="version without prediction sets"):
        PredictionColumns(Trusting(model.models, trust=replace(trust, class_sets=None)), Answers(0.9))


def test_of_several_classes_the_most_probable_one_is_named():
    model, config = tiny_model(targets=("y_low", "y_mid", "y_high"), kind="multiclass")
    task = replace(config.task, class_names=(("low", "mid", "high"),))
    columns = PredictionColumns(Predictor([(model, replace(config, task=task))]))
    assert names(columns) == ["y_low", "y_mid", "y_high", "class", "error"]
    found = columns.reader.compute(read_molecules("ogb", ["OCC", "C", "CC", "C[C"]))
    found.values[:3] = [[0.2, 0.2, 0.6], [0.4, 0.4, 0.2], [0.3, 0.4, 0.3]]
    assert columns.cells(found, found.errors)[3] == ["high", "low", "mid", ""]


def test_nearness_is_measured_from_the_first_model():
    tiny, known, asked = tiny_model(), ["CCO", "c1ccccc1C"], ["CCO", "C(", "CCCO"]
    embedded = Embedder(*tiny).compute(read_molecules("ogb", [*known, *asked])).values
    trusting = Trusting([tiny], Trust(fit_domain(known, embedded[:2])))
    found = PredictionColumns(trusting, Answers(domain=True)).reader.compute(read_molecules("ogb", asked))
    nearest = np.linalg.norm(embedded[4] - embedded[:2], axis=1).min()
    np.testing.assert_allclose(found.nearness.distance, [0, np.nan, nearest], atol=1e-2)
    assert found.nearness.similarity[0] == 1 and found.nearness.molecule == ["CCO", "", "CCO"]


def test_a_target_is_found_as_it_is_written_before_one_that_differs_in_case():
    names = [{"LogD"}, {"logD"}, {"Sol"}]
    assert chosen_endpoints(["logD"], names) == [False, True, False]
    assert chosen_endpoints(["LOGD", "sol"], names) == [True, True, True]


def test_a_group_chooses_its_targets_and_words_of_descriptions_are_a_hint():
    facts = [
        {"group": "Metabolism", "description": "clearance"},
        {"group": "", "description": "log10 of solubility, mol/L"},
    ]
    names = [{"HLM"}, {"Met"}]
    assert chosen_endpoints(["metabolism"], names, facts) == [True, False]
    assert chosen_endpoints(["M*"], names, facts) == [False, True]
    hints = {"solubility": "descriptions of Met", "HLM,Met": "HLM Met$", "hlmm": "mean 'HLM'", "bility": "are HLM, Met"}
    for asked, hint in {**hints, "": "no target fits"}.items():
        with pytest.raises(InputError, match=hint):
            chosen_endpoints([asked], names, facts)
