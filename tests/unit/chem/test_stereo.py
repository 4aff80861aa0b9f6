import pytest

from graphormer_sepnorm.chem import stereo
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.chem.stereo import has_stereo, label, label_stereo


def labels(smiles: str) -> str:
    """The labels of all atoms and bonds that have one, in the order of the alphabet."""
    mol = read_smiles(smiles)
    label_stereo(mol)
    return "".join(sorted(label(part) for part in (*mol.GetAtoms(), *mol.GetBonds())))


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("C[C@H](N)C(=O)O", "S"),  # L-alanine
        ("C[C@@H](N)C(=O)O", "R"),
        ("OC(=O)[C@@H](N)C", "S"),  # L-alanine from its other end
        ("SC[C@H](N)C(=O)O", "R"),  # L-cysteine: its sulphur goes before its carboxyl
        ("F/C=C/F", "E"),
        ("F/C=C\\F", "Z"),
        ("F\\C=C/F", "Z"),
        ("C[C@H](O)[C@H](O)C", "RS"),  # meso
        ("C[C@H](O)[C@@H](O)C", "SS"),
        ("CC(N)C(=O)O", ""),
        ("CCO", ""),
    ],
)
def test_labels_by_hand(smiles, expected):
    assert labels(smiles) == expected


def test_centres_told_apart_by_branches_of_opposite_handedness_have_small_letters():
    assert labels("C[C@H]1CC[C@@H](C)CC1").islower() and len(labels("C[C@H]1CC[C@@H](C)CC1")) == 2


def test_a_label_says_which_atom_it_belongs_to():
    mol = read_smiles("CC[C@H](N)C")
    label_stereo(mol)
    assert [bool(label(atom)) for atom in mol.GetAtoms()] == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("smiles", "said"), [("CC(N)O", False), ("FC=CF", False), ("F/C=C/F", True), ("C[C@H](N)O", True)]
)
def test_what_a_smiles_says_of_stereochemistry(smiles, said):
    assert has_stereo(read_smiles(smiles)) is said


def test_a_molecule_that_takes_too_many_comparisons_has_no_labels(monkeypatch):
    monkeypatch.setattr(stereo, "MAX_COMPARISONS", 1)
    assert labels("C[C@H](O)[C@@H](O)C") == ""
