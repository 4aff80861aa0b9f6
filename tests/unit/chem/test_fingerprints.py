import hashlib

import numpy as np
import pytest
from rdkit.DataStructs import TanimotoSimilarity

from graphormer_sepnorm.chem.fingerprints import BITS, SIZE, morgan_bits, morgan_counts, packed, pick_diverse, unpacked
from graphormer_sepnorm.chem.smiles import read_smiles

MOLS = [read_smiles(text) for text in ["CCO", "OCC", "CCCO", "c1ccccc1", "CCCCO", "c1ccccc1O"]]


def test_environments_of_ethane_are_counted_by_hand():
    """Two equal carbons, and their bond, which belongs to both and counts once."""
    counts = morgan_counts(read_smiles("CC"))
    assert counts.shape == (SIZE,)
    assert sorted(counts[counts > 0].tolist()) == [1, 2]


def test_bits_are_the_environments_that_occur_however_the_molecule_is_written():
    first, second = read_smiles("OCC(=O)c1ccccc1"), read_smiles("c1cc(C(CO)=O)ccc1")
    assert list(morgan_bits(first).GetOnBits()) == np.flatnonzero(morgan_counts(first)).tolist()
    assert TanimotoSimilarity(morgan_bits(first), morgan_bits(second)) == 1
    assert TanimotoSimilarity(morgan_bits(first), morgan_bits(read_smiles("CCN"))) < 0.5


def test_bytes_and_back():
    bits = morgan_bits(read_smiles("CC(=O)Oc1ccccc1C(=O)O"))
    row = packed(bits)
    assert (row.dtype, row.shape) == (np.uint8, (SIZE // 8,))
    assert np.flatnonzero(np.unpackbits(row, bitorder="little")).tolist() == list(bits.GetOnBits())
    assert unpacked(row) == bits


@pytest.mark.parametrize(
    ("count", "distance", "picked"),
    [
        (4, 0, [0, 1, 2, 3]),
        (4, 0.3, [0, 2, 3, 4]),  # OCC is CCO
        (2, 0.3, [0, 2]),
        (4, 0.9, [0, 3, 1, 2]),  # two that differ so much, then the first of the others
        (9, 0.3, [0, 2, 3, 4, 5, 1]),
    ],
)
def test_the_preferred_ones_that_differ_come_first(count, distance, picked):
    assert pick_diverse(MOLS, count, distance) == picked


def test_a_version_of_bits_never_changes():
    """The training domain of models has them: what a changed function computes is a new version."""
    bits = packed(morgan_bits(read_smiles("C[C@H](N)C(=O)Nc1ccc(Cl)c(S(=O)(=O)N2CCOCC2)c1"))).tobytes()
    assert {BITS[-1]: hashlib.sha256(bits).hexdigest()[:8]} == {"morgan-bits 1": "a241f796"}
