"""The table model as a whole."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.runs.arrays import load_arrays, save_arrays
from graphormer_sepnorm.runs.checkpoint import recorded_checksum
from graphormer_sepnorm.runs.folder import STACK, WEIGHTS
from graphormer_sepnorm.runs.zoo import AssayLimit
from graphormer_sepnorm.table_model.fit import FittedTable, fit_table
from graphormer_sepnorm.table_model.load import load_predicting_model
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.kernel import BODY_FILE, KERNEL, TUNED
from graphormer_sepnorm.table_model.model import TableModel, strongest_bounds


@pytest.fixture(scope="module")
def fitted(to_fit) -> FittedTable:
    return fit_table(to_fit)


@pytest.mark.slow
def test_it_is_the_weighted_mean_of_its_members(fitted, others, to_fit):
    model = fitted.model
    assert list(model.members) == list(MEMBERS) and fitted.left_out == {}
    assert model.weights.shape == (len(MEMBERS), 2)
    by_member = np.stack([member.predict(others) for member in model.members.values()])
    np.testing.assert_allclose(model.stacked(others).values, (by_member * model.weights[:, None]).sum(axis=0))
    kernel_only = MEMBERS["kernel"].fit(to_fit).out_of_fold
    np.testing.assert_array_equal(fitted.out_of_fold.by_member[list(MEMBERS).index("kernel")], kernel_only)


def test_probabilities_of_classes_add_up_to_one(molecules, classes, others, to_fit):
    kinds = np.eye(3)[np.random.default_rng(0).integers(0, 3, len(molecules))]
    task = replace(classes.task, kind="multiclass", metric="rocauc", targets=("a", "b", "c"))
    found = fit_table(replace(to_fit, labels=replace(classes, task=task, y=kinds)), ["kernel"])
    np.testing.assert_allclose(found.model.stacked(others).values.sum(axis=1), 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "facts",
    [
        {"format": 1}, {"members": ["oracle"]}, {"members": []}, {"members": ["kernel"]}, {"featurizer": "none"},
        {"task": None}, {"task": {"kind": "guess"}}, {"domain": ["morgan-bits 9"]},
    ],
)  # fmt: skip
def test_facts_that_do_not_fit_are_refused(fitted, tmp_path, facts):
    fitted.model.save(tmp_path)
    arrays, known = load_arrays(tmp_path / STACK)
    save_arrays(tmp_path / STACK, arrays, {**known, **facts})
    with pytest.raises(InputError):
        TableModel.load(tmp_path)


@pytest.mark.slow
def test_it_reads_molecules_as_predictors_do(fitted, others):
    smiles = [*others.molecules[:3], "C[C", None]
    found = fitted.model.predict(smiles)
    stacked = fitted.model.stacked(others.take(np.arange(3)))
    np.testing.assert_allclose(found.values[:3], stacked.values, rtol=1e-4)
    np.testing.assert_allclose(found.spread[:3], stacked.spread, rtol=1e-3)
    assert np.isnan(found.values[3:]).all() and np.isnan(found.spread[3:]).all()
    assert found.errors[:3] == ["", "", ""] and "not a valid SMILES" in found.errors[3]
    assert found.values.dtype == np.float32 and fitted.model.gives_spread and fitted.model.kind == "regression"


def test_its_digest_changes_with_what_it_predicts(fitted):
    other = replace(fitted.model, weights=fitted.model.weights[::-1].copy())
    assert fitted.model.digest == replace(fitted.model).digest != other.digest


def test_a_kept_model_predicts_the_same_and_keeps_what_it_is_trusted_by(fitted, others, tmp_path):
    fitted.model.save(tmp_path)
    loaded = TableModel.load(tmp_path)
    np.testing.assert_array_equal(loaded.stacked(others).values, fitted.model.stacked(others).values)
    assert (loaded.task, loaded.featurizer) == (fitted.model.task, "mol")
    expected, found = (model.trust.intervals.half_widths(0.8, np.ones((1, 2))) for model in (fitted.model, loaded))
    np.testing.assert_array_equal(expected, found)
    np.testing.assert_array_equal(loaded.difficulty.errors, fitted.model.difficulty.errors)
    np.testing.assert_array_equal(loaded.difficulty.limits, fitted.model.difficulty.limits)
    assert loaded.digest == fitted.model.digest


def exchange(one: Path, other: Path) -> None:
    before = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(before)


DAMAGE = {
    "no stack": lambda run, other: (run / STACK).unlink(),
    "stack of another run": lambda run, other: shutil.copy(other / STACK, run / STACK),
    "kernel of another run": lambda run, other: shutil.copy(other / KERNEL, run / KERNEL),
    "no kernel": lambda run, other: (run / KERNEL).unlink(),
    "no body": lambda run, other: (run / BODY_FILE).unlink(),
    "no tuned kernel": lambda run, other: (run / TUNED).unlink(),
    "a network missing": lambda run, other: (run / "model-1" / WEIGHTS).unlink(),
    "networks exchanged": lambda run, other: exchange(run / "model-0" / WEIGHTS, run / "model-1" / WEIGHTS),
    "a network copied": lambda run, other: shutil.copy(run / "model-0" / WEIGHTS, run / "model-1" / WEIGHTS),
    "fewer networks": lambda run, other: (run / "parts.json").write_text('{"kind": "model", "count": 1}'),
    "no record": lambda run, other: (run / "parts.json").unlink(),
}


@pytest.fixture(scope="module")
def two_runs(fitted, labels, to_fit, tmp_path_factory) -> Path:
    """Two models with the same members and shapes."""
    root = tmp_path_factory.mktemp("two")
    fitted.model.save(root / "run")
    other = fit_table(replace(to_fit, labels=replace(labels, y=labels.y[::-1].copy())), ["kernel"])
    kernel = other.model.members["kernel"]
    weights = fitted.model.weights[::-1].copy()
    replace(fitted.model, members={**fitted.model.members, "kernel": kernel}, weights=weights).save(root / "other")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_folder_is_one_model_or_refused(two_runs, tmp_path, damage):
    shutil.copytree(two_runs, tmp_path, dirs_exist_ok=True)
    assert load_predicting_model([str(tmp_path / "run")]).targets == ("logP", "TPSA")
    DAMAGE[damage](tmp_path / "run", tmp_path / "other")
    with pytest.raises(InputError) as refusal:
        load_predicting_model([str(tmp_path / "run")])
    assert str(tmp_path / "run") in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.slow
@pytest.mark.parametrize("file", [KERNEL, TUNED])
def test_numbers_that_are_none_are_refused_in_every_array(two_runs, tmp_path, file):
    shutil.copytree(two_runs / "run", tmp_path, dirs_exist_ok=True)
    arrays, facts = load_arrays(tmp_path / file)
    stack = load_arrays(tmp_path / STACK)
    for name in (name for name, array in arrays.items() if array.dtype.kind == "f"):
        save_arrays(tmp_path / file, {**arrays, name: np.full_like(arrays[name], np.nan)}, facts)
        files = {**stack[1]["files"], file: recorded_checksum(tmp_path / file)}
        save_arrays(tmp_path / STACK, stack[0], {**stack[1], "files": files})
        with pytest.raises(InputError, match=f"its array {name} has values that are not finite"):
            TableModel.load(tmp_path)


def test_the_strongest_bound_with_few_exact_labels_beyond_it_is_a_limit():
    """Lower bounds 8 and 8.3 with one label above; upper bounds 4 and 5 with three below; one bound, none and none."""
    nan, inf = np.nan, np.inf
    labels = np.array([[nan, nan, 1], [nan, nan, 2], [9, 1, 3], [5, 2, nan], [6, 3, 4]])
    bounds = np.tile([-inf, inf], (5, 3, 1))
    bounds[:2, 0, 0], bounds[:2, 1, 1], bounds[3, 2] = [8, 8.3], [4, 5], [-inf, 0.5]
    found = strongest_bounds(("a", "b", "c"), TrainingRows.of(labels, bounds))
    assert found == {"a": AssayLimit(8.3, "more"), "c": AssayLimit(0.5, "less")}
    assert strongest_bounds(("a", "b", "c"), TrainingRows.of(labels)) == strongest_bounds(("a",), None) == {}
