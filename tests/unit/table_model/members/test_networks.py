"""Networks of folds beyond the contract of members."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.pretrained import Graphormer
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.members.networks import NetworksMember

pytestmark = pytest.mark.slow


def test_each_is_a_run_of_its_last_epoch_and_all_are_averaged(molecules, folds, others, to_fit, tmp_path):
    found = NetworksMember.fit(replace(to_fit, folder=tmp_path))
    runs = RunFolder(tmp_path).members()
    networks = [Graphormer.from_pretrained(run.path) for run in runs]
    assert [network.facts["epoch"] for network in networks] == [to_fit.config.train.epochs] * 3
    assert [network.run_config.train.seed for network in networks] == [0, 1, 2]
    predictions = np.stack([network.predict(others.molecules) for network in networks])
    np.testing.assert_allclose(found.member.predict(others), predictions.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.member.by_network(others).swapaxes(0, 1), predictions, rtol=1e-5)
    held_back = np.flatnonzero(folds.numbers == 2)
    unseen = networks[2].predict([molecules.molecules[row] for row in held_back])
    np.testing.assert_allclose(found.out_of_fold[held_back], unseen, rtol=1e-4, atol=1e-4)


def test_training_goes_on_where_it_was_stopped(to_fit, tmp_path):
    whole = NetworksMember.fit(replace(to_fit, folder=tmp_path / "whole"))
    part = RunFolder(tmp_path / "part")
    NetworksMember.fit(replace(to_fit, folder=part.path))
    for path in part.member(2).path.iterdir():
        path.unlink()
    kept = part.member(1).weights.stat().st_mtime_ns
    again = NetworksMember.fit(replace(to_fit, folder=part.path, resume=True))
    np.testing.assert_array_equal(again.out_of_fold, whole.out_of_fold)
    assert part.member(1).weights.stat().st_mtime_ns == kept


def test_a_folder_that_holds_networks_is_not_written_over(to_fit, tmp_path):
    table = replace(to_fit, folder=tmp_path)
    NetworksMember.fit(table)
    with pytest.raises(InputError, match="already holds a run"):
        NetworksMember.fit(table)


def test_a_fold_without_exact_labels_keeps_its_network(labels, folds, to_fit):
    y, bounds = labels.y.copy(), np.tile([-np.inf, np.inf], (*labels.y.shape, 1))
    censored = folds.numbers == 1
    bounds[censored, :, 0], y[censored] = y[censored], np.nan
    found = NetworksMember.fit(replace(to_fit, labels=replace(labels, y=y, bounds=bounds)))
    assert np.isfinite(found.out_of_fold).all()
