import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import load_arrays, save_arrays
from graphormer_sepnorm.table_model.labels import CannotLearn
from graphormer_sepnorm.table_model.members.tuned_kernel import TUNED, Space, TunedKernelMember
from tests.unit.table_model.members.test_base import fit


@pytest.fixture(scope="session")
def member(molecules, labels, folds, setting) -> TunedKernelMember:
    return fit("tuned kernel", molecules, labels, folds, setting).member


def test_similarities_in_a_space_by_the_formula():
    space = Space.of(np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]], np.float32))
    assert space.mean.tolist() == [2.0, 2.0]
    points = (np.array([[1.0, 0.0]]) - space.mean) / space.scale
    squares = ((points[:, None] - space.embeddings[None]) ** 2).sum(axis=2)
    found = space.similarities(np.array([[1.0, 0.0]], np.float32))
    np.testing.assert_allclose(found, np.exp(-squares / (2 * space.width**2)), rtol=1e-5)


def test_it_predicts_the_mean_of_the_machines_of_all_folds(member, others):
    similarities = others.of(member.kernel.reference.similarities)
    embeddings = others.of(member.networks.embeddings)
    each = []
    for number in range(3):
        near = member.spaces[number].similarities(embeddings[:, number])
        each.append(member.machines[number](np.stack([similarities[:, 0], similarities[:, 1], near], axis=1)))
    np.testing.assert_allclose(member.predict(others), np.mean(each, axis=0), rtol=1e-6)


def test_machines_of_a_fold_learn_nothing_from_its_molecules(member, folds):
    for number, (_, predicted) in enumerate(folds.parts()):
        assert not member.machines[number].coefficients[predicted].any()
        assert member.machines[number].coefficients.any()


def test_it_needs_the_kernel_and_the_networks(molecules, labels, folds, setting):
    with pytest.raises(CannotLearn, match="it needs the kernel and the networks"):
        TunedKernelMember.fit(molecules, labels, folds, setting)


@pytest.mark.parametrize("name", ["embeddings", "mean", "widths", "weights", "coefficients", "intercept"])
def test_arrays_that_do_not_fit_the_other_members_are_refused(member, name, tmp_path):
    member.save(tmp_path)
    arrays, facts = load_arrays(tmp_path / TUNED)
    save_arrays(tmp_path / TUNED, arrays | {name: arrays[name][1:]}, facts)
    with pytest.raises(InputError, match="its arrays do not fit together"):
        TunedKernelMember.load(tmp_path, {"kernel": member.kernel, "networks": member.networks})
