"""Fitting a table model: which members take part, and how far to trust the whole."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.table_model import fit, reference
from graphormer_sepnorm.table_model.fit import fit_members, fit_table, foundation_config, put_together
from graphormer_sepnorm.table_model.labels import CannotLearn, Labels
from graphormer_sepnorm.table_model.members.kernel import KernelMember
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.reference import Encoder

pytestmark = pytest.mark.slow


def test_a_member_that_cannot_learn_is_left_out_and_named(labels, monkeypatch, to_fit):
    def refuse(*arguments):
        raise CannotLearn("not this table")

    monkeypatch.setattr(KernelMember, "fit", refuse)
    found = fit_table(to_fit, ["kernel", "networks"])
    assert list(found.model.members) == ["networks"] and found.left_out["kernel"] == "not this table"
    assert found.out_of_fold.spread.shape == labels.y.shape and (found.out_of_fold.spread > 0).all()
    with pytest.raises(InputError, match="kernel: not this table"):
        fit_table(to_fit, ["kernel", "forest"])


def test_probabilities_are_calibrated_by_what_was_predicted_out_of_fold(classes, to_fit):
    found = fit_table(replace(to_fit, labels=classes), ["kernel"])
    trust = found.model.trust
    assert trust.intervals is None and trust.calibration is not None and found.model.difficulty is None
    assert trust.class_sets is not None and trust.class_sets.fits(2)
    held = trust.class_sets.holds(trust.calibration(found.out_of_fold.values), 0.8)
    known = ~np.isnan(classes.y[:, 1])
    assert held[known, 1, classes.y[known, 1].astype(int)].mean() >= 0.8
    calibrated = trust.calibration(found.out_of_fold.values)
    shares = np.nanmean(classes.y, axis=0)
    np.testing.assert_allclose([column.mean() for column in calibrated.T], shares, atol=0.03)


def test_networks_and_kernel_share_the_trunk_of_the_foundation(labels, to_fit, tmp_path):
    """Frozen weights stay bit-identical through training, averaging of weights and files."""
    config = foundation_config(labels.task)
    config = replace(config, train=replace(config.train, epochs=2, min_updates=0))
    found = fit_table(replace(to_fit, config=config), ["kernel", "networks"]).model
    found.save(tmp_path)
    for model in (found, TableModel.load(tmp_path)):
        (body, _), *networks = model.models
        assert len(networks) == 3 and {network.local_blocks for network, _ in networks} == {body.local_blocks}
        assert len({network.blocks for network, _ in networks}) == 3


def test_intervals_know_landmarks(molecules, others, to_fit, monkeypatch):
    monkeypatch.setattr(reference, "MOST_ROWS", 50)
    monkeypatch.setattr(reference, "LANDMARKS", 40)
    found = fit_table(replace(to_fit, molecules=molecules.take(np.arange(60))), ["kernel"])
    assert found.model.difficulty.errors.shape == (40, 2) and found.out_of_fold.spread.shape == (60, 2)
    assert list(found.remarks) == ["kernel"]
    assert np.isfinite(found.model.stacked(others).spread).all()


def bounded(labels: Labels, limit: float) -> Labels:
    """The labels, of which those of the first target above a limit are bounds."""
    hidden = np.nan_to_num(labels.y[:, 0], nan=-np.inf) > limit
    y, bounds = labels.y.copy(), np.tile([-np.inf, np.inf], (*labels.y.shape, 1))
    y[hidden, 0], bounds[hidden, 0, 0] = np.nan, limit
    return replace(labels, y=y, bounds=bounds)


def test_every_member_learns_bounds_that_the_kernel_completed(labels, folds, to_fit):
    """The forest learns other values than without bounds, from the other folds, and intervals know them, too."""
    known = bounded(labels, float(np.nanmedian(labels.y[:, 0])))
    hidden = known.bounded[:, 0]
    other = replace(known, y=known.y.copy(), bounds=known.bounds.copy())
    inside = folds.numbers == 1
    other.y[inside], other.bounds[inside] = 50, (-np.inf, np.inf)
    fitted, without, changed = (
        fit_members(replace(to_fit, labels=each), ["kernel", "forest"])[0]
        for each in (known, replace(known, bounds=None), other)
    )
    for name in fitted:
        gain = fitted[name].out_of_fold[hidden, 0] - without[name].out_of_fold[hidden, 0]
        assert gain.mean() > 0.1, name
    completed = fitted["kernel"].completed
    assert len(completed) == len(folds) + 1 and (completed[-1].y[hidden, 0] >= np.nanmedian(labels.y[:, 0])).all()
    for name in fitted:
        np.testing.assert_array_equal(changed[name].out_of_fold[inside], fitted[name].out_of_fold[inside])
    model, out_of_fold = put_together(fitted, replace(to_fit, labels=known))
    errors = np.abs(labels.y - out_of_fold.values)
    np.testing.assert_array_equal(model.difficulty.errors[~hidden], errors[~hidden])
    assert np.isfinite(model.difficulty.errors[hidden, 0]).all()
    assert model.trust.intervals.counts.tolist() == (~np.isnan(labels.y)).sum(axis=0).tolist()


NORMAL = np.random.default_rng(0).normal


def gains(y: np.ndarray, first: np.ndarray, second: np.ndarray, **more) -> list[float]:
    labels = Labels(TaskConfig("regression", "rmse", tuple("ab"[: y.shape[1]])), y, **more)
    return fit.gains(labels, {"kernel": first}, {"networks": second})[0].tolist()


def test_a_member_gains_by_errors_of_its_own():
    """The mean of two equal independent errors has half their variance; a worse copy of a member has no gain."""
    y = NORMAL(size=(20_000, 1))
    error = NORMAL(size=y.shape)
    assert gains(y, y + error, y + NORMAL(size=y.shape)) == pytest.approx([0.25], abs=0.01)  # of the squares, halved
    assert gains(y, y + error, y + 2 * error) == pytest.approx([0], abs=0.001)
    assert gains(y[:40], NORMAL(size=(40, 1)), 3 * NORMAL(size=(40, 1)))[0] < 0, "chance is not rewarded"


@pytest.mark.parametrize("kind", ["labels", "classes", "bounds"])
def test_useless_networks_are_refused_and_good_ones_are_not(kind, request, molecules, to_fit):
    labels = request.getfixturevalue("classes" if kind == "classes" else "labels")
    if kind == "bounds":
        bounds = np.tile([-np.inf, np.inf], (*labels.y.shape, 1))
        bounds[::4, 0, 0], labels = labels.y[::4, 0], replace(labels, y=labels.y.copy(), bounds=bounds)
        labels.y[::4, 0] = np.nan
    table = replace(to_fit, labels=labels)
    known = replace(table, fitted=fit_members(table, ["kernel", "forest"])[0])
    embeddings = molecules.of(Encoder(known.members["kernel"].reference.body.embedder))
    truth = np.nan_to_num(labels.y, nan=np.nanmean(labels.y))
    for predicted, is_refused in ((truth[::-1], True), (truth, False)):
        output = np.concatenate([embeddings, predicted], axis=1, dtype=np.float32)
        assert bool(fit.reason_to_stop(known, output)) == is_refused
    assert fit.reason_to_stop(table, output) == "", "nothing to compare with"


def test_a_look_that_goes_on_changes_nothing_and_one_that_stops_can_be_continued(to_fit, tmp_path):
    whole = NetworksMember.fit(replace(to_fit, folder=tmp_path / "whole"))
    found = NetworksMember.fit(replace(to_fit, folder=tmp_path / "looked", look=lambda *arguments: ""))
    np.testing.assert_array_equal(found.out_of_fold, whole.out_of_fold)
    stopped = replace(to_fit, folder=tmp_path / "stopped", look=lambda *arguments: "no use")
    for resume in (False, True):
        with pytest.raises(CannotLearn, match=r"^no use; .* --ensemble 3 trains them$"):
            NetworksMember.fit(replace(stopped, resume=resume))
        assert [path.name for path in (tmp_path / "stopped").glob("model-*")] == ["model-0"]
    again = NetworksMember.fit(replace(stopped, look=None, resume=True))
    np.testing.assert_array_equal(again.out_of_fold, whole.out_of_fold)
