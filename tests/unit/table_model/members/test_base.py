"""The contract of members: what each of them must do."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import Folds
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.base import Fitted, Member, ToFit
from graphormer_sepnorm.table_model.members.kernel import TunedKernelMember
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from tests.table_models import LEARNT

pytestmark = pytest.mark.slow

READ_BY = {"tuned kernel": ("kernel", "networks")}
NAMES = {kind: name for name, kind in MEMBERS.items()}
EACH = [
    pytest.param(name, marks=pytest.mark.slow if name in ("networks", "tuned kernel") else ()) for name in MEMBERS
]  # the slow ones train networks


def fit(name: str, to_fit: ToFit) -> Fitted:
    """Fits a member, after those that it reads."""
    read = {other: MEMBERS[other].fit(to_fit) for other in READ_BY.get(name, ())}
    return MEMBERS[name].fit(replace(to_fit, fitted=read))


def load(member: Member, folder: Path) -> Member:
    """What was saved of a member, with the members that it reads as they are."""
    read = {other: getattr(member, other) for other in READ_BY.get(NAMES[type(member)], ())}
    return type(member).load(folder, read)


@pytest.fixture(scope="session", params=EACH)
def fitted(request, to_fit) -> Fitted:
    return fit(request.param, to_fit)


@pytest.fixture(scope="session", params=EACH)
def classifier(request, classes, to_fit) -> Fitted:
    return fit(request.param, replace(to_fit, labels=classes))


def test_it_learns_and_does_not_see_what_it_predicts_out_of_fold(fitted, labels, others, logp):
    deviation = np.nanstd(labels.y, axis=0)
    unseen = fitted.out_of_fold - labels.y
    assert fitted.out_of_fold.shape == labels.y.shape and np.isfinite(fitted.out_of_fold).all()
    assert (np.sqrt(np.nanmean(unseen**2, axis=0)) < 0.9 * deviation).all()
    known = fitted.member.predict(MoleculeFeatures(list(others.molecules)))
    assert known.dtype == np.float64 and known.shape == (len(others), 2)
    assert (np.sqrt(np.mean((known - logp[LEARNT : LEARNT + len(others)]) ** 2, axis=0)) < 0.9 * deviation).all()


def test_labels_of_a_fold_do_not_change_its_predictions(fitted, labels, folds, to_fit):
    changed = labels.y.copy()
    changed[folds.numbers == 1] += 100
    again = fit(NAMES[type(fitted.member)], replace(to_fit, labels=replace(labels, y=changed)))
    np.testing.assert_array_equal(again.out_of_fold[folds.numbers == 1], fitted.out_of_fold[folds.numbers == 1])
    assert (again.out_of_fold[folds.numbers == 0] != fitted.out_of_fold[folds.numbers == 0]).all()


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_what_is_kept_predicts_the_same(fitted, others, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    fitted.member.save(tmp_path / "a")
    loaded = load(fitted.member, tmp_path / "a")
    loaded.save(tmp_path / "b")
    np.testing.assert_array_equal(loaded.predict(others), fitted.member.predict(others))
    files = [path.relative_to(tmp_path / "a") for path in files_in(tmp_path / "a")]
    assert files and all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)


def test_a_damaged_file_is_refused(fitted, tmp_path):
    fitted.member.save(tmp_path)
    for path in files_in(tmp_path):
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(InputError):
            load(fitted.member, tmp_path)
        path.write_bytes(whole)


def test_spelling_and_order_do_not_matter(fitted):
    found = fitted.member.predict(MoleculeFeatures(["CCO", "c1ccccc1O", "OCC", "Oc1ccccc1"]))
    np.testing.assert_allclose(found[:2], found[2:], rtol=1e-4)


def test_a_molecule_does_not_change_the_prediction_of_another(fitted, others):
    together = fitted.member.predict(others)
    np.testing.assert_allclose(fitted.member.predict(others.take(np.array([3]))), together[3:4], rtol=1e-4)
    assert fitted.member.predict(MoleculeFeatures([])).shape == (0, 2)


def test_probabilities_tell_the_classes_apart(classifier, classes, others):
    for predicted in (classifier.out_of_fold, classifier.member.predict(others)):
        assert predicted.min() >= 0 and predicted.max() <= 1
    for place in range(2):
        one, zero = (classifier.out_of_fold[classes.y[:, place] == label, place] for label in (1, 0))
        assert one.mean() > zero.mean() + 0.1


def test_a_target_without_labels_outside_a_fold_costs_that_fold_or_is_refused(fitted, labels, to_fit):
    y = labels.y.copy()
    y[1:, 1] = np.nan
    folds = Folds((np.arange(LEARNT) > 0).astype(np.int64))
    table = replace(to_fit, labels=replace(labels, y=y), folds=folds)
    if type(fitted.member) in (NetworksMember, TunedKernelMember):
        with pytest.raises(InputError, match="TPSA has no labels"):
            NetworksMember.fit(table)
        return
    found = fit(NAMES[type(fitted.member)], table)
    assert np.isfinite(found.out_of_fold[:, 0]).all()


def test_molecules_of_little_weight_count_little(fitted, molecules, labels, others, to_fit):
    doubled = MoleculeFeatures([*molecules.molecules, *molecules.molecules])
    y = np.concatenate([labels.y, labels.y + 50])
    weight = np.repeat([1.0, 1e-6], LEARNT)
    folds = Folds(np.tile(np.arange(LEARNT) % 3, 2))
    if type(fitted.member) is NetworksMember:  # trained too short to tell; the weights of their loss have a test
        return
    table = replace(to_fit, molecules=doubled, labels=replace(labels, y=y, weight=weight), folds=folds)
    found = fit(NAMES[type(fitted.member)], table)
    deviation = np.nanstd(labels.y, axis=0)
    assert (np.abs(found.member.predict(others) - fitted.member.predict(others)).mean(axis=0) < 0.5 * deviation).all()
