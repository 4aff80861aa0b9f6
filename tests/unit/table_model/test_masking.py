"""Contributions by masking, of predictions that can be taken apart by hand."""

import numpy as np
import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.stereo import label, label_stereo
from graphormer_sepnorm.table_model.explain import contributions_by_masking, masked

ASPIRIN = Chem.MolFromSmiles("CC(=O)Oc1ccccc1C(=O)O")


def symbols(mols: list[Chem.Mol]) -> list[str]:
    return ["".join(atom.GetSymbol() for atom in mol.GetAtoms()) for mol in mols]


def by_masking(mol: Chem.Mol, predict) -> tuple[np.ndarray, float]:
    return contributions_by_masking(mol, lambda hidden: predict([masked(mol, atoms) for atoms in hidden]))


def test_a_masked_atom_is_of_no_element_and_keeps_its_bonds():
    found = masked(Chem.MolFromSmiles("C[NH3+]"), [1])
    assert symbols([found]) == ["C*"] and found.GetNumBonds() == 1
    assert found.GetAtomWithIdx(1).GetFormalCharge() == found.GetAtomWithIdx(1).GetTotalNumHs() == 0
    assert symbols([ASPIRIN])[0].count("*") == 0


def test_stereo_labels_are_those_of_the_whole_molecule():
    mol = Chem.MolFromSmiles("C[C@H](N)C(=O)O/C=C/C")
    label_stereo(mol)
    assert [label(atom) for atom in masked(mol, [0, 2]).GetAtoms()] == ["", "S", *[""] * 7]
    assert [label(atom) for atom in masked(mol, [1]).GetAtoms()] == [""] * 9
    for atoms, expected in (([0], "E"), ([6], "")):
        assert label(masked(mol, atoms).GetBondBetweenAtoms(6, 7)) == expected


def test_of_a_sum_over_atoms_each_adds_its_own():
    values = {"C": 1.0, "O": -2.0, "*": 0.25}
    contributions, base = by_masking(
        ASPIRIN, lambda mols: np.array([sum(values[symbol] for symbol in text) for text in symbols(mols)])
    )
    assert base == 0.25 * 13
    expected = [values[atom.GetSymbol()] - 0.25 for atom in ASPIRIN.GetAtoms()]
    np.testing.assert_allclose(contributions, expected, rtol=1e-12)


def test_of_a_product_both_atoms_add_the_half():
    """One for ethane whole and none otherwise: each carbon adds half, whichever is masked first."""
    contributions, base = by_masking(
        Chem.MolFromSmiles("CC"), lambda mols: np.array([float(text == "CC") for text in symbols(mols)])
    )
    np.testing.assert_allclose(contributions, [0.5, 0.5])
    assert base == 0


def count_of_environments(mols: list[Chem.Mol]) -> np.ndarray:
    """A function of atoms together, which no sum over atoms gives."""
    spellings = [Chem.MolToSmiles(mol) for mol in mols]
    return np.array([len(text) ** 1.5 + 10.0 * text.count("*C") for text in spellings])


@pytest.mark.parametrize("smiles", ["OC(=O)c1ccccc1OC(C)=O", "c1ccc(OC(C)=O)c(C(=O)O)c1"])
def test_contributions_add_up_and_follow_their_atoms_in_every_spelling(smiles):
    here, base = by_masking(ASPIRIN, count_of_environments)
    other = Chem.MolFromSmiles(smiles)
    there, other_base = by_masking(other, count_of_environments)
    whole, nothing = count_of_environments([ASPIRIN, masked(ASPIRIN, range(13))])
    assert base == other_base == nothing
    assert here.sum() == pytest.approx(whole - nothing)
    np.testing.assert_allclose(there[list(other.GetSubstructMatch(ASPIRIN))], here, rtol=1e-9)
