"""Features of molecules are computed once."""

import numpy as np

from graphormer_sepnorm.table_model.features import MoleculeFeatures


def test_what_is_known_is_not_computed_again():
    calls = []

    def lengths(molecules):
        calls.append(list(molecules.molecules))
        return np.array([[len(text)] for text in molecules.molecules])

    molecules = MoleculeFeatures(["C", "CC", "CCC"])
    assert molecules.of(lengths).tolist() == [[1], [2], [3]]
    part = molecules.take(np.array([2, 0]))
    assert part.molecules == ["CCC", "C"] and len(part) == 2
    assert part.of(lengths).tolist() == [[3], [1]] and molecules.of(lengths) is molecules.of(lengths)
    assert calls == [["C", "CC", "CCC"]]
