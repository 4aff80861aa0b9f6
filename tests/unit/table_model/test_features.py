"""Features of molecules are computed once."""

import numpy as np

from graphormer_sepnorm.table_model import features
from graphormer_sepnorm.table_model.features import Counts, GraphsOf, MoleculeFeatures, descriptors, looks


def test_a_table_is_read_alike_in_one_process_and_in_several(smiles, monkeypatch):
    whole = MoleculeFeatures(smiles[:40])
    whole.read("mol-without-salts")
    monkeypatch.setattr(features, "CHUNK", 10)
    parts = MoleculeFeatures(smiles[:40])
    parts.read("mol")
    graphs = GraphsOf("mol")
    for found in (parts, MoleculeFeatures(smiles[:40])):
        np.testing.assert_array_equal(found.of(Counts()).toarray(), whole.of(Counts()).toarray())
        np.testing.assert_array_equal(found.of(descriptors), whole.of(descriptors))
        np.testing.assert_array_equal(found.of(graphs).x, whole.of(graphs).x)
        np.testing.assert_array_equal(found.of(graphs).edge_index, whole.of(graphs).edge_index)
        assert [look.kinds for look in found.of(looks)] == [look.kinds for look in whole.of(looks)]
    some = whole.take(np.array([3, 1]))
    assert len(some.of(graphs)) == 2 and some.of(looks)[1].atoms == whole.of(looks)[1].atoms
