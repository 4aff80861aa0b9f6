import numpy as np
from rdkit.DataStructs import TanimotoSimilarity

from graphormer_sepnorm.chem.fingerprints import SIZE, morgan_bits, morgan_counts, packed, unpacked
from graphormer_sepnorm.chem.smiles import read_smiles


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
