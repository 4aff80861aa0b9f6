"""The forest beyond the contract of members."""

import numpy as np

from graphormer_sepnorm.chem.fast_descriptors import fast_descriptors
from graphormer_sepnorm.chem.fingerprints import SIZE, morgan_counts
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.members.forest import FEATURES, forest_features


def test_features_are_counts_and_descriptors():
    found = forest_features(MoleculeFeatures(["CCO", "C[Pt]C"]))
    assert found.shape == (2, FEATURES) and found.dtype == np.float32 and np.isfinite(found).all()
    np.testing.assert_array_equal(found[0, :SIZE], morgan_counts(read_smiles("CCO")))
    np.testing.assert_array_equal(found[0, SIZE:], fast_descriptors(["CCO"])[0])
