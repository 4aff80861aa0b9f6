import numpy as np
import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.smiles import read_smiles
from tests.examples import load_example
from tests.molecules import REFUSED_BY_STRICT_RDKIT


@pytest.fixture(scope="module")
def example():
    return load_example("fingerprints")


def test_counts_of_environments(example):
    """Argon is one environment; ethane two equal carbons and, from radius 1 on, one whole molecule."""
    counts = example.FINGERPRINTS["ECFP4, counts"]
    assert sorted(counts(Chem.MolFromSmiles("[Ar]")))[-2:] == [0, 1]
    assert sorted(counts(Chem.MolFromSmiles("CC")))[-3:] == [0, 1, 2]
    assert counts(Chem.MolFromSmiles("C" * 400)).max() == 255


def test_every_fingerprint_is_one_of_its_own(example):
    """Twelve kinds, of which no two say the same of an acid and an amine; environments hold smaller ones."""
    mols = [Chem.MolFromSmiles(smiles) for smiles in ("OC(=O)c1ccccc1CCN", "CCNCCO")]
    tables = {name: example.table_of(find, mols).toarray() for name, find in example.FINGERPRINTS.items()}
    assert len(tables) == 12 and len({table.tobytes() for table in tables.values()}) == 12
    assert all(table.shape[0] == 2 and (table[0] != table[1]).any() for table in tables.values())
    for smaller, larger in (("ECFP4", "ECFP6"), ("FCFP4", "FCFP6"), ("ECFP2, counts", "ECFP4, counts")):
        assert (tables[smaller] <= tables[larger]).all()


def test_molecules_that_strict_rdkit_refuses_have_fingerprints(example):
    mols = [read_smiles(smiles) for smiles in REFUSED_BY_STRICT_RDKIT]
    for find in example.FINGERPRINTS.values():
        assert (example.table_of(find, mols).sum(axis=1) > 0).all()


def test_mean_ranks_by_hand(example):
    first, second = np.array([0.1, 0.9, 0.5]), np.array([30.0, 20.0, 10.0])
    assert example.mean_rank([first, second]).tolist() == [2.0, 2.5, 1.5]
    assert example.together(first, second, 0.25).tolist() == [2.5, 2.25, 1.25]
