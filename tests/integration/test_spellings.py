"""Equal molecules give equal numbers, however their SMILES are written, wherever a format allows it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from graphormer_sepnorm.chem.features import FEATURIZERS, MoleculeGraph
from graphormer_sepnorm.chem.properties import molecule_key, murcko_scaffold
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.members.forest import forest_features

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
HARD = [
    ASPIRIN,
    "Cc1cccnc1C",  # two Kekule forms that differ
    "CN(C)CCC=C1c2ccccc2CCc2ccccc21",  # a scaffold that ends in a double bond
    "C[C@H](N)C(=O)[O-]",
    "C[NH+]1[C@H]2CC[C@@H]1CN(C(=O)Nc1ccc3c(c1)OCCO3)CC2",
    "F/C=C/c1cc[nH]c1",
    "CP(=O)(O)OC",
    "C[C@H]1CC[C@H](C)CC1",
    "O=[N+]([O-])c1ccc2[nH]c3ccccc3c2c1",
    "O[C@H]1[C@H](O)[C@@H](O)[C@H](O)[C@H](O)[C@@H]1O",  # symmetric ones
    "C[C@H](O)[C@H](F)[C@@H](C)O",
    "C1C[C@H]2CC[C@@H]1C2",
    "C/C=C/[C@H](O)/C=C\\C",
    "C12C3C4C1C5C2C3C45",
]
MOLECULES = [*HARD, *sample_table().smiles[:300]]
# OGB's chiral tags say in which order the neighbors of an atom are written.
FOR_OGB = [smiles for smiles in MOLECULES if "@" not in smiles]


def spellings(smiles: str, orders: int = 2) -> dict[str, str]:
    """SMILES of a molecule: in other orders, Kekule, with explicit hydrogens, with atom maps, in brackets."""
    mol = Chem.MolFromSmiles(smiles)
    kekule = Chem.Mol(mol)
    Chem.Kekulize(kekule)
    mapped, mapped_hydrogens = Chem.Mol(mol), Chem.AddHs(mol)
    for atom in (*mapped.GetAtoms(), *mapped_hydrogens.GetAtoms()):
        atom.SetAtomMapNum(atom.GetIdx() + 1)
    shuffled = Chem.MolToRandomSmilesVect(mol, orders, randomSeed=7)
    return {
        "canonical": Chem.MolToSmiles(mol),
        **{f"order {number}": text for number, text in enumerate(shuffled)},
        "kekule": Chem.MolToSmiles(kekule, kekuleSmiles=True),
        "hydrogens": Chem.MolToSmiles(Chem.AddHs(mol)),
        "maps": Chem.MolToSmiles(mapped),
        "maps of hydrogens": Chem.MolToSmiles(mapped_hydrogens),
        "brackets": Chem.MolToSmiles(mol, allHsExplicit=True),
        "bonds": Chem.MolToSmiles(mol, allBondsExplicit=True),
    }


def neighborhoods(graph: MoleculeGraph, rounds: int = 8) -> list[int]:
    """The same numbers for the same graph, in whatever order its atoms are: colours of Weisfeiler and Leman."""
    colours = [hash(tuple(row)) for row in graph.x.tolist()]
    bonds = list(zip(*graph.edge_index.tolist(), map(tuple, graph.edge_attr.tolist()), strict=True))
    for _ in range(rounds):
        around: list[list] = [[] for _ in colours]
        for atom, other, bond in bonds:
            around[atom].append((bond, colours[other]))
        colours = [hash((own, tuple(sorted(found)))) for own, found in zip(colours, around, strict=True)]
    return sorted(colours)


def check_graphs(featurizer: str, smiles: str) -> None:
    expected = neighborhoods(FEATURIZERS[featurizer].graph(smiles))
    for name, text in spellings(smiles).items():
        assert neighborhoods(FEATURIZERS[featurizer].graph(text)) == expected, f"{name}: {text}"


def check_structures(smiles: str) -> None:
    written = list(spellings(smiles).values())
    assert len({(murcko_scaffold(text), molecule_key(text)) for text in written}) == 1
    rows = forest_features(MoleculeFeatures(written))
    np.testing.assert_array_equal(rows, np.tile(rows[0], (len(rows), 1)))


@pytest.mark.parametrize("smiles", HARD)
def test_hard_molecules_have_one_scaffold_one_row_of_the_forest_and_one_graph(smiles):
    check_structures(smiles)
    check_graphs("zinc", smiles)
    check_graphs("mol", smiles)


@pytest.mark.slow
@pytest.mark.parametrize(("featurizer", "molecules"), [("zinc", MOLECULES), ("mol", MOLECULES), ("ogb", FOR_OGB)])
@settings(max_examples=30, deadline=None, derandomize=True)
@given(data=st.data())
def test_graphs_are_the_same_in_every_spelling(featurizer, molecules, data):
    check_graphs(featurizer, data.draw(st.sampled_from(molecules)))


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(smiles=st.sampled_from(MOLECULES))
def test_forests_scaffolds_and_keys_are_the_same_in_every_spelling(smiles):
    check_structures(smiles)


@pytest.mark.parametrize(
    "smiles",
    [
        "[CH3:1][CH2:2][OH:3]",
        "[CH3:0]CO",
        "[H:7]OCC",
        "[C:1]([H:2])([H:3])([H:4])CO",
        "CCO |atomProp:0.molAtomMapNumber.5:2.molAtomMapNumber.7|",
    ],
)
def test_atom_maps_are_no_structure(smiles):
    assert read_smiles(smiles).GetNumAtoms() == 3
    assert not any(atom.GetAtomMapNum() for atom in read_smiles(smiles).GetAtoms())
