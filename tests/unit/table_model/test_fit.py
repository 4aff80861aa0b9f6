"""Fitting a table model: which members take part, and how far to trust the whole."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.table_model.fit import fit_table, foundation_config
from graphormer_sepnorm.table_model.members import kernel
from graphormer_sepnorm.table_model.reference import BODY


def test_a_member_that_cannot_learn_is_left_out_and_named(molecules, labels, folds, monkeypatch, setting):
    monkeypatch.setattr(kernel, "MOST_ROWS", 10)
    found = fit_table(molecules, labels, folds, setting, members=["kernel", "networks"])
    assert list(found.model.members) == ["networks"] and "10 at most" in found.left_out["kernel"]
    assert found.out_of_fold.spread.shape == labels.y.shape and (found.out_of_fold.spread > 0).all()
    with pytest.raises(InputError, match="neither the kernel nor networks can learn"):
        fit_table(molecules, labels, folds, setting, members=["kernel", "forest"])


def test_intervals_hold_what_was_predicted_out_of_fold(molecules, labels, folds, setting):
    found = fit_table(molecules, labels, folds, setting, members=["kernel"])
    half_widths = found.model.trust.intervals.half_widths(0.8, found.out_of_fold.spread)
    inside = np.abs(labels.y - found.out_of_fold.values) <= half_widths
    np.testing.assert_allclose(inside.sum(axis=0), 0.8 * 59, atol=1.5)
    assert half_widths.std(axis=0).min() > 0, "harder molecules have wider intervals"
    assert found.model.trust.domain.smiles == list(molecules.molecules)


def test_probabilities_are_calibrated_by_what_was_predicted_out_of_fold(molecules, classes, folds, setting):
    found = fit_table(molecules, classes, folds, setting, members=["kernel"])
    trust = found.model.trust
    assert trust.intervals is None and trust.calibration is not None and found.model.difficulty is None
    calibrated = trust.calibration(found.out_of_fold.values)
    shares = np.nanmean(classes.y, axis=0)
    np.testing.assert_allclose([column.mean() for column in calibrated.T], shares, atol=0.03)


def test_networks_start_from_the_foundation(labels):
    config = foundation_config(labels.task, 7)
    assert (config.train.start_from, config.train.seed, config.featurizer) == (BODY, 7, "mol")
    assert config.task == labels.task and config.model.num_tasks == 2


def test_a_target_without_labels_has_no_intervals(molecules, labels, folds, setting):
    y = labels.y.copy()
    y[:, 1] = np.nan
    found = fit_table(molecules, replace(labels, y=y), folds, setting, members=["kernel"])
    assert found.model.trust.intervals is None
