"""The featurizer "mol": its features, and that they do not depend on how a SMILES is written."""

import pytest

from graphormer_sepnorm.chem import standardize
from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.chem.standardize import label, label_stereo
from tests.molecules import ODDITIES, REFUSED_BY_STRICT_RDKIT

MOL = FEATURIZERS["mol"]
DIFFERENT = [
    ("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"),
    ("F/C=C/Cl", "F/C=C\\Cl"),
    ("N[C@@H]1CC[C@@H](C(=O)O)CC1", "N[C@@H]1CC[C@H](C(=O)O)CC1"),
    ("C[S@](=O)c1ccccc1", "C[S@@](=O)c1ccccc1"),
    ("C[C@H](O)[C@H](F)[C@@H](C)O", "C[C@H](O)[C@@H](F)[C@@H](C)O"),
    ("C[C@H](N)C(=O)O", "CC(N)C(=O)O"),
]


@pytest.mark.parametrize("pair", DIFFERENT)
def test_stereoisomers_differ(pair):
    first, second = map(MOL.graph, pair)
    rows = [sorted(graph.x.tolist()) + sorted(graph.edge_attr.tolist()) for graph in (first, second)]
    assert rows[0] != rows[1]


def test_labels_by_hand():
    assert labels("C[C@H](N)C(=O)O") == ["", "S", "", "", "", ""]
    assert labels("C[C@@H](N)C(=O)O") == ["", "R", "", "", "", ""]
    assert labels("N[C@@H]1CC[C@@H](C)CC1") == ["", "r", "", "", "r", "", "", ""]  # cis
    assert labels("CCO") == ["", "", ""]


@pytest.mark.parametrize(
    ("smiles", "known"), [("F/C=C/Cl", 1), ("C/C=C(\\[C@H](C)O)[C@@H](C)O", 1), ("C/C=C(/[C@H](C)O)[C@@H](C)O", 2)]
)
def test_a_double_bond_whose_sides_are_mirror_images_has_its_label_too(smiles, known):
    """E is 1 and Z is 2, also if two substituents differ only in their chirality (e and z)."""
    kinds = {row[1] for row in MOL.graph(smiles).edge_attr.tolist()}
    assert kinds == {0, known}


def labels(smiles: str) -> list[str]:
    mol = read_smiles(smiles)
    label_stereo(mol)
    return [label(atom) for atom in mol.GetAtoms()]


def test_a_molecule_that_needs_too_many_comparisons_has_no_labels(monkeypatch):
    glucose = "OC[C@H]1O[C@@H](O)[C@H](O)[C@@H](O)[C@@H]1O"
    assert len("".join(labels(glucose))) == 5
    monkeypatch.setattr(standardize, "MAX_COMPARISONS", 10)
    assert "".join(labels(glucose)) == ""


def test_features_by_hand():
    amine = MOL.graph("C/C=C/[C@H]([NH3+])c1ccccc1")
    # element, label, bonds with hydrogens, charge + 4, hydrogens, radical electrons, hybridization, aromatic, ring
    assert amine.x[0].tolist() == [6, 0, 4, 4, 3, 0, 4, 0, 0]
    assert amine.x[3].tolist() == [6, 2, 4, 4, 1, 0, 4, 0, 0]
    assert amine.x[4].tolist() == [7, 0, 4, 5, 3, 0, 4, 0, 0]
    assert amine.x[5].tolist() == [6, 0, 3, 4, 0, 0, 3, 1, 4]
    # order, label, conjugated, in a ring
    assert amine.edge_attr[:3].tolist() == [[1, 0, 0, 0], [2, 1, 0, 0], [1, 0, 0, 0]]
    assert amine.edge_attr[5].tolist() == [4, 0, 1, 1]


@pytest.mark.parametrize("smiles", [*ODDITIES.values(), *REFUSED_BY_STRICT_RDKIT, "*", "[Og]", "[Fe+6]", "C[2H]"])
def test_whatever_can_be_read_is_in_the_vocabulary(smiles):
    graph = MOL.graph(smiles)
    assert len(graph.x) == read_smiles(smiles).GetNumAtoms()
    assert (graph.x < MOL.atom_sizes).all() and (graph.edge_attr < MOL.bond_sizes).all()
