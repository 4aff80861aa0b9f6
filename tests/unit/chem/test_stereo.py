"""The featurizer "mol": its features, and that they do not depend on how a SMILES is written."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem

from graphormer_sepnorm.chem import stereo
from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.chem.stereo import label, label_stereo
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.datasets.store import MoleculeDataset, in_memory
from graphormer_sepnorm.layers.batch_norm import reestimate_batch_norm
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.recipes import best
from tests.molecules import ODDITIES, REFUSED_BY_STRICT_RDKIT

DRUGS = Path(__file__).parents[3] / "data" / "drugs.csv"
MOL = FEATURIZERS["mol"]
SPELLINGS = 5
SYMMETRIC = [
    "O[C@H]1[C@H](O)[C@@H](O)[C@H](O)[C@H](O)[C@@H]1O",
    "O[C@H]1[C@@H](O)[C@@H](O)[C@H](O)[C@H](O)[C@@H]1O",
    "C[C@H](O)[C@H](F)[C@@H](C)O",
    "N[C@@H]1CC[C@@H](C(=O)O)CC1",
    "C1C[C@H]2CC[C@@H]1C2",
    "C/C=C/[C@H](O)/C=C\\C",
    "C[S@](=O)c1ccccc1",
    "C[N@+]1(CC)CCC[C@H]1C",
    "O=c1cc[nH]c2ccccc12",
    "C12C3C4C1C5C2C3C45",
]
DIFFERENT = [
    ("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"),
    ("F/C=C/Cl", "F/C=C\\Cl"),
    ("N[C@@H]1CC[C@@H](C(=O)O)CC1", "N[C@@H]1CC[C@H](C(=O)O)CC1"),
    ("C[S@](=O)c1ccccc1", "C[S@@](=O)c1ccccc1"),
    ("C[C@H](O)[C@H](F)[C@@H](C)O", "C[C@H](O)[C@@H](F)[C@@H](C)O"),
    ("C[C@H](N)C(=O)O", "CC(N)C(=O)O"),
]


def random_spellings(smiles: str) -> list[str]:
    return list(Chem.MolToRandomSmilesVect(read_smiles(smiles), SPELLINGS, randomSeed=7))


def prepare(model: Network, smiles: list[str]) -> MoleculeDataset:
    graphs = MOL.pack([MOL.graph(text) for text in smiles])
    return in_memory(graphs, model.config.encodings)


@pytest.fixture(scope="module")
def predict():
    """Predictions of a ``best`` with random weights and BatchNorm statistics that fit its inputs.

    Otherwise its values, and with them rounding errors, would grow from layer to layer.
    """
    torch.manual_seed(0)
    model = Network(best(MOL.atom_sizes, MOL.bond_sizes))
    known = prepare(model, list(pd.read_csv(DRUGS).smiles))
    reestimate_batch_norm(model, model.encode, [known.batch(range(len(known)))])
    model.eval()

    def run(smiles: list[str]) -> np.ndarray:
        data = prepare(model, smiles)
        parts = np.array_split(np.arange(len(data)), len(data) // 64 + 1)
        with torch.no_grad():
            return np.concatenate([model(data.batch(part))[:, 0] for part in parts])

    return run


@pytest.mark.slow
def test_a_prediction_does_not_depend_on_how_a_smiles_is_written(predict):
    sample = sample_table().smiles
    written = [*pd.read_csv(DRUGS).smiles, *sample[sample.str.contains("@|/")][:60], *SYMMETRIC]
    molecules = [smiles for smiles in written if read_smiles(smiles).GetNumAtoms() > 1]
    assert len(molecules) > 250
    expected = predict(molecules)
    spelled = predict([text for smiles in molecules for text in random_spellings(smiles)]).reshape(-1, SPELLINGS)
    assert expected.std() > 0.01
    worst = np.abs(spelled - expected[:, None]).max(axis=1)
    assert worst.max() < 1e-5, molecules[worst.argmax()]


@pytest.mark.parametrize("pair", DIFFERENT)
def test_stereoisomers_differ(predict, pair):
    first, second = predict(list(pair))
    assert abs(first - second) > 1e-4


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
    monkeypatch.setattr(stereo, "MAX_COMPARISONS", 10)
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
