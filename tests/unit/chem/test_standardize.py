import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.chem.standardize import PREPARATIONS, canonical_tautomer, parent


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("CC(=O)[O-].[Na+]", "CC(=O)O"),
        ("C[NH3+].[Cl-]", "CN"),
        ("C[N+](C)(C)C.[Br-]", "C[N+](C)(C)C"),
        ("CN(=O)=O", "C[N+](=O)[O-]"),
        ("CC(=O)O[Na]", "CC(=O)O"),
        ("C[N+](C)(C)CC(=O)[O-]", "C[N+](C)(C)CC(=O)[O-]"),
    ],
)
def test_the_neutral_parent(smiles, expected):
    assert Chem.MolToSmiles(parent(read_smiles(smiles))) == expected


def test_tautomers_become_one_molecule():
    assert {Chem.MolToSmiles(canonical_tautomer(read_smiles(text))) for text in ("Oc1ccccn1", "O=c1cccc[nH]1")} == {
        "O=c1cccc[nH]1"
    }


@pytest.mark.parametrize("name", PREPARATIONS)
def test_preparing_twice_changes_nothing_more(name):
    for smiles in ("CC(=O)[O-].[Na+]", "NC(=N)c1ccccc1.Cl", "Oc1ccccn1", "OC1=CC=CC=C1.O", "[Na+].[Cl-]"):
        once = Chem.MolToSmiles(PREPARATIONS[name](read_smiles(smiles)))
        assert Chem.MolToSmiles(PREPARATIONS[name](read_smiles(once))) == once
