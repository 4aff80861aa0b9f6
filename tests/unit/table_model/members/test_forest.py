"""The forest beyond the contract of members."""

import numpy as np

from graphormer_sepnorm.chem.fast_descriptors import fast_descriptors
from graphormer_sepnorm.chem.fingerprints import SIZE, morgan_counts
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import Folds, Labels
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
