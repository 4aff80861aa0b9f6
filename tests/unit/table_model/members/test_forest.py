"""The forest beyond the contract of members."""

import numpy as np

from graphormer_sepnorm.table_model.forest import forest_features
from graphormer_sepnorm.table_model.growing import fit_forest
from graphormer_sepnorm.table_model.members import forest
from graphormer_sepnorm.table_model.members.forest import ForestMember


def test_it_is_the_forest_that_tables_are_measured_against(molecules, labels, folds, others, setting):
    found = ForestMember.fit(molecules, labels, folds, setting).member.predict(others)
    expected = fit_forest(forest_features(molecules.molecules), labels.y, "regression", 0, forest.TREES)
    np.testing.assert_array_equal(found, expected.predict(forest_features(others.molecules)))
