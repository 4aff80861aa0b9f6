"""The network of the first fold decides whether the others are trained, and what becomes of a run without them."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model import look
from graphormer_sepnorm.table_model.fit import after, fit_members
from graphormer_sepnorm.table_model.labels import CannotLearn, Labels
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from graphormer_sepnorm.table_model.reference import Encoder

NORMAL = np.random.default_rng(0).normal


def gains(y: np.ndarray, first: np.ndarray, second: np.ndarray, **more) -> list[float]:
    labels = Labels(TaskConfig("regression", "rmse", tuple("ab"[: y.shape[1]])), y, **more)
    return look.gains(labels, {"kernel": first}, {"networks": second})[0].tolist()


def test_a_member_gains_by_errors_of_its_own():
    """The mean of two equal independent errors has half their variance; a worse copy of a member has no gain."""
    y = NORMAL(size=(20_000, 1))
    error = NORMAL(size=y.shape)
    assert gains(y, y + error, y + NORMAL(size=y.shape)) == pytest.approx([0.25], abs=0.01)  # of the squares, halved
    assert gains(y, y + error, y + 2 * error) == pytest.approx([0], abs=0.001)
    assert gains(y[:40], NORMAL(size=(40, 1)), 3 * NORMAL(size=(40, 1)))[0] < 0, "chance is not rewarded"


@pytest.mark.parametrize("kind", ["labels", "classes", "bounds"])
def test_useless_networks_are_refused_and_good_ones_are_not(kind, request, molecules, folds, setting):
    labels = request.getfixturevalue("classes" if kind == "classes" else "labels")
    if kind == "bounds":
        bounds = np.tile([-np.inf, np.inf], (*labels.y.shape, 1))
        bounds[::4, 0, 0], labels = labels.y[::4, 0], replace(labels, y=labels.y.copy(), bounds=bounds)
        labels.y[::4, 0] = np.nan
    fitted, _ = fit_members(molecules, labels, folds, setting, ["kernel", "forest"])
    known = after(fitted, setting)
    embeddings = molecules.of(Encoder(fitted["kernel"].member.reference.body.embedder))
    truth = np.nan_to_num(labels.y, nan=np.nanmean(labels.y))
    for predicted, is_refused in ((truth[::-1], True), (truth, False)):
        output = np.concatenate([embeddings, predicted], axis=1, dtype=np.float32)
        assert bool(look.reason_to_stop(molecules, labels, folds, known, output)) == is_refused
    assert look.reason_to_stop(molecules, labels, folds, setting, output) == "", "nothing to compare with"


@pytest.mark.slow
def test_a_look_that_goes_on_changes_nothing_and_one_that_stops_can_be_continued(
    molecules, labels, folds, setting, tmp_path
):
    whole = NetworksMember.fit(molecules, labels, folds, replace(setting, folder=tmp_path / "whole"))
    looked = replace(setting, folder=tmp_path / "looked", look=lambda *arguments: "")
    found = NetworksMember.fit(molecules, labels, folds, looked)
    np.testing.assert_array_equal(found.out_of_fold, whole.out_of_fold)
    stopped = replace(setting, folder=tmp_path / "stopped", look=lambda *arguments: "no use")
    for resume in (False, True):
        with pytest.raises(CannotLearn, match=r"^no use; .* --ensemble 3 trains them$"):
            NetworksMember.fit(molecules, labels, folds, replace(stopped, resume=resume))
        assert [path.name for path in (tmp_path / "stopped").glob("model-*")] == ["model-0"]
    again = NetworksMember.fit(molecules, labels, folds, replace(stopped, look=None, resume=True))
    np.testing.assert_array_equal(again.out_of_fold, whole.out_of_fold)
