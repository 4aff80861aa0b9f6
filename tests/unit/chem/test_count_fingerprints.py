"""Counts of what occurs in molecules."""

import numpy as np
import pytest

from graphormer_sepnorm.chem import count_fingerprints as count_fingerprints_module
from graphormer_sepnorm.chem.count_fingerprints import KINDS, count_fingerprints
from graphormer_sepnorm.chem.fingerprints import SIZE, morgan_counts
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError


def by_kind(smiles: str) -> np.ndarray:
    return count_fingerprints([smiles]).toarray().reshape(len(KINDS), SIZE)


def test_counts_by_hand():
    butanol = by_kind("CCCCO")
    assert KINDS == ("morgan", "feature-morgan", "atom-pairs", "torsions")
    assert butanol.dtype == np.uint16
    assert butanol[2].sum() == 5 * 4 / 2, "pairs of atoms"
    assert butanol[3].sum() == 2, "paths of four atoms"
    np.testing.assert_array_equal(butanol[0], morgan_counts(read_smiles("CCCCO")))


def test_feature_morgan_takes_halogens_for_each_other():
    chlorine, bromine = by_kind("Clc1ccccc1"), by_kind("Brc1ccccc1")
    np.testing.assert_array_equal(chlorine[1], bromine[1])
    assert (chlorine[0] != bromine[0]).any()


def test_rows_are_those_of_the_molecules_in_order():
    together = count_fingerprints(["CCO", "c1ccccc1", "OCC"]).toarray()
    np.testing.assert_array_equal(together[0], count_fingerprints(["CCO"]).toarray()[0])
    np.testing.assert_array_equal(together[0], together[2])
    assert count_fingerprints([]).shape == (0, len(KINDS) * SIZE)


def test_a_count_too_large_is_the_largest(monkeypatch):
    monkeypatch.setattr(count_fingerprints_module, "LARGEST_COUNT", 2)
    assert by_kind("CCCCCCCC").max() == 2


def test_what_cannot_be_read_is_refused():
    with pytest.raises(InputError, match="not a valid SMILES"):
        count_fingerprints(["CCO", "C[C"])
