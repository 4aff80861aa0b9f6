"""The kernel machine beyond the contract of members."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.chem.fingerprints import KINDS, UNRECORDED
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import load_arrays, save_arrays
from graphormer_sepnorm.table_model import reference
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import fit_members
from graphormer_sepnorm.table_model.labels import CannotLearn, Folds, Labels
from graphormer_sepnorm.table_model.members.kernel import KERNEL, TUNED, KernelMember, Space, TunedKernelMember
from tests.unit.table_model.members.test_base import fit


@pytest.fixture(scope="module")
def member(to_fit) -> KernelMember:
    return KernelMember.fit(to_fit).member


@pytest.mark.slow
def test_bounds_are_learnt_from(molecules, labels, to_fit):
    """Labels of which only the bound is known pull the prediction as far as the bound."""
    y, bounds = labels.y.copy(), np.tile([-np.inf, np.inf], (*labels.y.shape, 1))
    hidden = np.argsort(np.nan_to_num(y[:, 0], nan=-np.inf))[-20:]
    bounds[hidden, 0, 0] = y[hidden, 0].min()
    y[hidden, 0] = np.nan
    tables = (replace(to_fit, labels=replace(labels, y=y, bounds=each)) for each in (None, bounds))
    without, known = (KernelMember.fit(table).member.predict(molecules) for table in tables)
    assert known[hidden, 0].mean() > without[hidden, 0].mean() + 0.1
    np.testing.assert_allclose(known[:, 1], without[:, 1])


def test_a_target_whose_labels_are_all_in_one_fold_is_predicted_as_their_mean(labels, folds, to_fit):
    y, (_, rows) = labels.y + 100, folds.parts()[0]
    y[np.setdiff1d(np.arange(len(y)), rows), 1] = np.nan
    found = KernelMember.fit(replace(to_fit, labels=replace(labels, y=y)))
    np.testing.assert_allclose(found.out_of_fold[rows, 1], np.nanmean(y[rows, 1]))
    assert found.remark.startswith("all exact labels of TPSA are in one fold, which the kernel predicts as their mean")


@pytest.mark.slow
def test_classes_of_weight_0_do_not_calibrate(molecules, classes, to_fit):
    weight = np.where(np.arange(len(classes)) % 3 == 0, 0.0, 1.0)
    y = np.where(weight[:, None] == 0, 1 - classes.y, classes.y)
    tables = (replace(to_fit, labels=replace(classes, y=each, weight=weight)) for each in (classes.y, y))
    known, wrong = (fit_members(table, ["kernel"])[0]["kernel"].member for table in tables)
    np.testing.assert_allclose(wrong.predict(molecules), known.predict(molecules))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_many_molecules_are_compared_with_landmarks(labels, classes, others, monkeypatch, to_fit, tmp_path, kind):
    monkeypatch.setattr(reference, "MOST_ROWS", 50)
    monkeypatch.setattr(reference, "LANDMARKS", 40)
    known = {"numbers": labels, "classes": classes}[kind]
    found = KernelMember.fit(replace(to_fit, labels=known))
    assert found.remark == "the kernel compares molecules with 40 of its 60 training molecules"
    assert found.member.reference.counts.shape[0] == 40
    error = np.nanmean((found.out_of_fold - known.y) ** 2, axis=0)
    assert (error < 0.8 * np.nanvar(known.y, axis=0)).all()
    found.member.save(tmp_path)
    np.testing.assert_array_equal(KernelMember.load(tmp_path, {}).predict(others), found.member.predict(others))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("place", lambda array: array + 60_000), ("start", lambda array: array[::-1].copy()),
        ("count", lambda array: array[:-1]), ("coefficients", lambda array: array[:-1]),
        ("intercept", lambda array: array[:1]), ("embeddings", lambda array: array[:, :-1].copy()),
        ("mean", lambda array: array[:-1]), ("described", lambda array: array[:, :-1].copy()),
        ("columns", lambda array: array + 60), ("quantiles", lambda array: -array),
        ("weights", lambda array: array[:2].copy()), ("widths", lambda array: 0 * array),
        ("widths", lambda array: array[:1]),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_together_are_refused(member, tmp_path, name, change):
    member.save(tmp_path)
    arrays, facts = load_arrays(tmp_path / KERNEL)
    save_arrays(tmp_path / KERNEL, {**arrays, name: change(arrays[name])}, facts)
    with pytest.raises(InputError, match=r"damaged|not what it should be"):
        KernelMember.load(tmp_path, {})


@pytest.mark.slow
def test_fingerprints_are_those_of_the_file(member, molecules, tmp_path):
    """A file without their names has those of the first releases; one with a name of the future is refused."""
    member.save(tmp_path)
    arrays, facts = load_arrays(tmp_path / KERNEL)
    assert facts.pop("kinds") == [*KINDS] and KernelMember.load(tmp_path, {}).reference.kinds == KINDS
    known = MoleculeFeatures(["CC1CO1"]).of(member.reference.similarities)
    save_arrays(tmp_path / KERNEL, arrays, facts)
    unnamed = KernelMember.load(tmp_path, {}).reference
    assert unnamed.kinds == UNRECORDED
    assert (MoleculeFeatures(["CC1CO1"]).of(unnamed.similarities)[:, 0] != known[:, 0]).any()
    for unknown in ({"kinds": [*KINDS, "morgan 9"]}, {"descriptors": ["morgan 9"]}):
        save_arrays(tmp_path / KERNEL, arrays, {**facts, **unknown})
        with pytest.raises(InputError, match="needs 'morgan 9'"):
            KernelMember.load(tmp_path, {})


@pytest.mark.slow
def test_a_tiny_table_is_learnt(smiles, logp, to_fit):
    """Twenty molecules, of which one has no label and one only a bound."""
    y, bounds = logp[:20, :1].copy(), np.tile([-np.inf, np.inf], (20, 1, 1))
    y[[3, 4]] = np.nan
    bounds[4, 0, 1] = np.nanmin(y)
    labels = Labels(TaskConfig("regression", "mae", ("y",)), y, bounds)
    table = replace(to_fit, molecules=MoleculeFeatures(smiles[:20]), labels=labels, folds=Folds(np.arange(20) % 5))
    found = KernelMember.fit(table)
    assert np.isfinite(found.out_of_fold).all()
    known = found.member.predict(MoleculeFeatures(smiles[:20]))
    assert np.nanmean(np.abs(known - y)) < 0.5 * np.nanstd(y)


@pytest.fixture(scope="session")
def tuned(to_fit) -> TunedKernelMember:
    return fit("tuned kernel", to_fit).member


def test_similarities_in_a_space_by_the_formula():
    space = Space.of(np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]], np.float32))
    assert space.mean.tolist() == [2.0, 2.0]
    points = (np.array([[1.0, 0.0]]) - space.mean) / space.scale
    squares = ((points[:, None] - space.embeddings[None]) ** 2).sum(axis=2)
    found = space.similarities(np.array([[1.0, 0.0]], np.float32))
    np.testing.assert_allclose(found, np.exp(-squares / (2 * space.width**2)), rtol=1e-5)


@pytest.mark.slow
def test_it_predicts_the_mean_of_the_machines_of_all_folds(tuned, others):
    similarities = others.of(tuned.kernel.reference.similarities)
    embeddings = others.of(tuned.networks.embeddings)
    each = []
    for number in range(3):
        near = tuned.spaces[number].similarities(embeddings[:, number])
        each.append(tuned.machines[number](np.stack([similarities[:, 0], similarities[:, 1], near], axis=1)))
    np.testing.assert_allclose(tuned.predict(others), np.mean(each, axis=0), rtol=1e-6)


@pytest.mark.slow
def test_machines_of_a_fold_learn_nothing_from_its_molecules(tuned, folds):
    for number, (_, predicted) in enumerate(folds.parts()):
        assert not tuned.machines[number].coefficients[predicted].any()
        assert tuned.machines[number].coefficients.any()


def test_it_needs_the_kernel_and_the_networks(to_fit):
    with pytest.raises(CannotLearn, match="it needs the kernel and the networks"):
        TunedKernelMember.fit(to_fit)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["embeddings", "mean", "widths", "weights", "coefficients", "intercept"])
def test_arrays_that_do_not_fit_the_other_members_are_refused(tuned, name, tmp_path):
    tuned.save(tmp_path)
    arrays, facts = load_arrays(tmp_path / TUNED)
    save_arrays(tmp_path / TUNED, arrays | {name: arrays[name][1:]}, facts)
    with pytest.raises(InputError, match="its arrays do not fit together"):
        TunedKernelMember.load(tmp_path, {"kernel": tuned.kernel, "networks": tuned.networks})
