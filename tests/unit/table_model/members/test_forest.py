"""The forest beyond the contract of members."""

from dataclasses import replace

import numpy as np

from graphormer_sepnorm.chem.fast_descriptors import fast_descriptors
from graphormer_sepnorm.chem.fingerprints import SIZE, morgan_counts
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import foundation_config
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members.base import Setting
from graphormer_sepnorm.table_model.members.forest import FEATURES, ForestMember, forest_features


def test_a_fold_that_leaves_only_bounds_has_no_forest(setting):
    labels = Labels(TaskConfig("regression", "rmse", ("a",)), np.array([[1.0], [2], [np.nan], [np.nan]]))
    found = ForestMember.fit(
        MoleculeFeatures(["CCO", "CCN", "CCC", "CCCC"]), labels, Folds(np.array([0, 0, 1, 1])), setting
    )
    assert np.isnan(found.out_of_fold[:, 0]).tolist() == [True, True, False, False]


def test_features_are_counts_and_descriptors():
    found = forest_features(MoleculeFeatures(["CCO", "C[Pt]C"]))
    assert found.shape == (2, FEATURES) and found.dtype == np.float32 and np.isfinite(found).all()
    np.testing.assert_array_equal(found[0, :SIZE], morgan_counts(read_smiles("CCO")))
    np.testing.assert_array_equal(found[0, SIZE:], fast_descriptors(["CCO"])[0])


def test_completed_labels_are_learnt():
    """A fold learns the values that the kernel gave to its bounds, and all rows those of all rows."""
    smiles = ["C" * count for count in range(1, 13)]
    y = np.arange(12.0)[:, None]
    labels = Labels(TaskConfig("regression", "rmse", ("a",)), np.where(y > 5, np.nan, y))
    known = replace(labels, y=y)
    setting = Setting(foundation_config(labels.task), completed=(known, known, known))
    folds = Folds(np.arange(12) % 2)
    found, exact, without = (
        ForestMember.fit(MoleculeFeatures(smiles), each, folds, other)
        for each, other in (
            (labels, setting),
            (known, replace(setting, completed=())),
            (labels, replace(setting, completed=())),
        )
    )
    np.testing.assert_array_equal(found.out_of_fold, exact.out_of_fold)
    molecules = MoleculeFeatures(smiles)
    np.testing.assert_array_equal(found.member.predict(molecules), exact.member.predict(molecules))
    assert found.member.predict(molecules).max() > 10 > 5 >= without.member.predict(molecules).max()
