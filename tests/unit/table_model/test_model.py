"""The table model as a whole."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import load_arrays, save_arrays
from graphormer_sepnorm.table_model.members import MEMBERS, kernel
from graphormer_sepnorm.table_model.model import STACK, FittedTable, TableModel, combined, fit_table


@pytest.fixture(scope="module")
def fitted(molecules, labels, folds, setting) -> FittedTable:
    return fit_table(molecules, labels, folds, setting)


def test_it_is_the_weighted_mean_of_its_members(fitted, molecules, labels, folds, others, setting):
    model = fitted.model
    assert list(model.members) == list(MEMBERS) and fitted.left_out == {}
    assert model.weights.shape == (len(MEMBERS), 2)
    by_member = np.stack([member.predict(others) for member in model.members.values()])
    np.testing.assert_allclose(model.values(others), (by_member * model.weights[:, None]).sum(axis=0))
    kernel_only = MEMBERS["kernel"].fit(molecules, labels, folds, setting).out_of_fold
    np.testing.assert_array_equal(fitted.out_of_fold[list(MEMBERS).index("kernel")], kernel_only)


def test_its_error_is_at_most_the_weighted_mean_of_those_of_its_members(fitted, labels):
    def errors(prediction: np.ndarray) -> np.ndarray:
        return np.nanmean((prediction - labels.y) ** 2, axis=0)

    stacked = errors(combined(labels.task, fitted.out_of_fold, fitted.model.weights))
    assert (
        stacked <= (fitted.model.weights * np.stack([errors(each) for each in fitted.out_of_fold])).sum(axis=0)
    ).all()


def test_a_kept_model_predicts_the_same(fitted, others, tmp_path):
    fitted.model.save(tmp_path)
    loaded = TableModel.load(tmp_path)
    np.testing.assert_array_equal(loaded.values(others), fitted.model.values(others))
    assert (loaded.task, loaded.featurizer) == (fitted.model.task, "mol")


def test_a_member_that_cannot_learn_is_left_out_and_named(molecules, labels, folds, monkeypatch, setting):
    monkeypatch.setattr(kernel, "MOST_ROWS", 10)
    found = fit_table(molecules, labels, folds, setting, members=["kernel", "forest"])
    assert list(found.model.members) == ["forest"] and "10 at most" in found.left_out["kernel"]
    with pytest.raises(InputError, match=r"kernel: .* 10 at most"):
        fit_table(molecules, labels, folds, setting, members=["kernel"])


def test_probabilities_of_classes_add_up_to_one(molecules, classes, folds, others, setting):
    kinds = np.eye(3)[np.random.default_rng(0).integers(0, 3, len(molecules))]
    task = replace(classes.task, kind="multiclass", metric="rocauc", targets=("a", "b", "c"))
    found = fit_table(molecules, replace(classes, task=task, y=kinds), folds, setting, members=["kernel"])
    np.testing.assert_allclose(found.model.values(others).sum(axis=1), 1)


@pytest.mark.parametrize(
    "facts",
    [
        {"format": 2},
        {"members": ["oracle"]},
        {"members": []},
        {"members": ["kernel"]},
        {"featurizer": "none"},
        {"task": None},
        {"task": {"kind": "guess"}},
    ],
)
def test_facts_that_do_not_fit_are_refused(fitted, tmp_path, facts):
    fitted.model.save(tmp_path)
    arrays, known = load_arrays(tmp_path / STACK)
    save_arrays(tmp_path / STACK, arrays, {**known, **facts})
    with pytest.raises(InputError):
        TableModel.load(tmp_path)


def test_weights_that_are_none_are_refused(fitted, tmp_path):
    fitted.model.save(tmp_path)
    arrays, known = load_arrays(tmp_path / STACK)
    for wrong in (np.full_like(arrays["weights"], np.nan), -arrays["weights"], arrays["weights"][:, :1].copy()):
        save_arrays(tmp_path / STACK, {"weights": wrong}, known)
        with pytest.raises(InputError, match="weights"):
            TableModel.load(tmp_path)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        TableModel.load(tmp_path)
