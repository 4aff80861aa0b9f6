"""Fragments, on molecules whose parts a chemist knows."""

import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.properties import fragment_smiles, fragments
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.datasets.benchmarks import sample_table
from tests.molecules import ODDITIES, REFUSED_BY_STRICT_RDKIT


def shown(smiles: str) -> list[str]:
    mol = Chem.MolFromSmiles(smiles)
    return sorted(fragment_smiles(mol, atoms) for atoms in fragments(mol))


@pytest.mark.parametrize(
    ("smiles", "parts"),
    [
        ("CC(=O)Oc1ccccc1C(=O)O", ["CC=O", "O", "O=CO", "c1ccccc1"]),  # by BRICS
        ("Cc1ccccc1", ["C", "c1ccccc1"]),  # by rings: BRICS finds nothing
        ("C1CC1C1CC1", ["C1CC1", "C1CC1"]),
        ("c1ccc2ccccc2c1", ["c1ccc2ccccc2c1"]),
        ("CCCC", ["CCCC"]),
        ("C", ["C"]),
        ("[Na+].CC(=O)[O-]", ["CC(=O)[O-]", "[Na+]"]),
    ],
)
def test_fragments_by_hand(smiles, parts):
    assert shown(smiles) == parts


def test_each_atom_is_in_one_fragment():
    for smiles in [*sample_table().smiles[:100], *ODDITIES.values(), *REFUSED_BY_STRICT_RDKIT]:
        mol = read_smiles(smiles)
        assert sorted(atom for atoms in fragments(mol) for atom in atoms) == list(range(mol.GetNumAtoms())), smiles
