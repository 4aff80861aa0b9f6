import pickle
import re

import numpy as np
import pytest
from ogb.utils.features import (
    allowable_features,
    atom_to_feature_vector,
    bond_to_feature_vector,
    get_atom_feature_dims,
    get_bond_feature_dims,
)
from rdkit import Chem

from graphormer_sepnorm.chem import features as ogb
from graphormer_sepnorm.chem import standardize
from graphormer_sepnorm.chem.descriptors import descriptors
from graphormer_sepnorm.chem.features import (
    FEATURIZERS,
    OGB_ATOM_SIZES,
    OGB_BOND_SIZES,
    ZINC_ATOM_TYPES,
    Featurizer,
    ogb_bond,
    read_graphs,
    read_molecules,
    without_salts,
)
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.chem.standardize import label, with_stereo_labels
from graphormer_sepnorm.errors import InputError
from tests.molecules import ODDITIES, REFUSED_BY_STRICT_RDKIT, UNREADABLE


def test_zinc_atoms_by_hand():
    """Hydrogens count if the SMILES writes them, and so does the sign of a charge."""
    expected = {
        "CC(C)C": ["C"] * 4, "C[C@H](N)O": ["C", "C H1", "N", "O"], "C[NH3+]": ["C", "N H3 +"],
        "CC(=O)[O-]": ["C", "C", "O", "O -"], "[O-]C(=O)C": ["O -", "C", "O", "C"],
        "N[C@@H](O)C": ["N", "C H1", "O", "C"], "c1cc[nH]c1": ["C", "C", "C", "N", "C"],
        "[CH3][13CH2][OH]": ["C", "C", "O"], "[H]C([H])([H])N([H])[H]": ["C", "N"], "[PH3]": ["P"],
    }  # fmt: skip
    for smiles, names in expected.items():
        assert [ZINC_ATOM_TYPES[row[0]] for row in FEATURIZERS["zinc"].graph(smiles).x] == names
    assert FEATURIZERS["zinc"].graph("c1cc[nH]c1C#N").edge_attr[:, 0].tolist() == [3, 1, 2, 1, 2, 1, 1] * 2


@pytest.mark.parametrize(
    ("smiles", "atom"), [("[Na+]", "Na"), ("[CH3]", "[CH3]"), ("[C+10]", "[C+10]"), ("[Cl-]", "[Cl-]")]
)
def test_molecules_outside_the_vocabulary_are_refused(smiles, atom):
    with pytest.raises(InputError, match=f"{re.escape(atom)} is not in this model's vocabulary"):
        FEATURIZERS["zinc"].graph(smiles)


def test_unreadable_molecules_affect_only_their_row():
    smiles = ["CCO", *UNREADABLE, None, "C"]
    molecules = read_molecules("ogb", smiles)
    assert molecules.rows.tolist() == [0, len(smiles) - 1]
    assert molecules.graphs.num_atoms.tolist() == [3, 1]
    for error, part in zip(molecules.errors[1:-2], UNREADABLE.values(), strict=True):
        assert part in error
    assert "The SMILES is missing" in molecules.errors[-2]
    assert molecules.errors[0] == molecules.errors[-1] == ""


@pytest.mark.parametrize("failure", [RuntimeError("Invariant\n\tbroken"), MemoryError()])
def test_a_molecule_that_rdkit_fails_on_affects_only_its_row(monkeypatch, failure):
    features = Featurizer.features

    def failing(self, mol, written):
        if mol.GetNumAtoms() == 2:
            raise failure
        return features(self, mol, written)

    monkeypatch.setattr(Featurizer, "features", failing)
    molecules = read_molecules("mol", ["C", "CC", "CCC"])
    assert molecules.rows.tolist() == [0, 2] and molecules.errors[1].startswith("RDKit fails on 'CC': ")


def test_strict_reading_reports_the_first_unreadable_row():
    with pytest.raises(InputError, match=r"row 12 \(counted from 0\): 'C\(' is not a valid SMILES"):
        read_graphs("ogb", ["CC", "C", "C(", ""], first_row=10)
    assert len(read_graphs("ogb", ["CC", "C"])) == 2


def test_molecules_can_be_sent_to_another_process():
    smiles = ["OCC", "C(", "[CH3:1][CH2:2]O", *REFUSED_BY_STRICT_RDKIT]
    molecules = pickle.loads(pickle.dumps(read_molecules("ogb", smiles)))
    assert [mol and Chem.MolToSmiles(mol) for mol in molecules.mols[:3]] == ["CCO", None, "CCO"]
    np.testing.assert_array_equal(descriptors(molecules.mols), descriptors(smiles))


@pytest.mark.parametrize("featurizer", ["zinc", "ogb", "mol"])
def test_without_salts_only_the_largest_fragment_is_read(featurizer):
    name = without_salts(featurizer)
    assert without_salts(name) == name and not FEATURIZERS[featurizer].preparation
    found = FEATURIZERS[name].graph("[Na+].C[C@H](N)C(=O)[O-].O")
    expected = FEATURIZERS[featurizer].graph("C[C@H](N)C(=O)[O-]")
    for array in ("x", "edge_index", "edge_attr"):
        np.testing.assert_array_equal(getattr(found, array), getattr(expected, array))


def test_a_prepared_molecule_is_read_as_its_parent_wherever_it_is_read():
    smiles = ["CC(=O)[O-].[Na+]", "CC(=O)O", "C(", "O=c1cccc[nH]1", "Oc1ccccn1"]
    assert read_molecules("mol-standardized", smiles).smiles == ["CC(=O)O", *smiles[1:]]
    found = read_molecules("mol-tautomer", smiles)
    assert found.smiles == ["CC(=O)O", "CC(=O)O", "C(", "O=c1cccc[nH]1", "O=c1cccc[nH]1"]
    assert found.errors[2] and list(found.rows) == [0, 1, 3, 4] and found.reductions == [""] * 5
    reductions = read_molecules("mol-standardized", ["CCO", "CCCCCO[Ti](Cl)(Cl)Cl"]).reductions
    assert reductions == ["", "Read as CCCCCO: standardization removed Ti and Cl."]
    graphs = read_graphs("mol-tautomer", [*smiles[:2], *smiles[3:]])
    np.testing.assert_array_equal(found.graphs.x, graphs.x)


def test_molecules_inchis_and_molfiles_are_read_as_their_smiles():
    mol = Chem.MolFromSmiles("OC[C@H](N)C")
    found = read_molecules("mol", [mol, Chem.MolToInchi(mol), Chem.MolToMolBlock(mol)])
    assert found.errors == ["", "", ""] and set(found.smiles) == {"C[C@@H](N)CO"}
    np.testing.assert_array_equal(found.graphs.x, read_molecules("mol", ["C[C@@H](N)CO"] * 3).graphs.x)


def test_vocabularies_are_those_of_ogb():
    assert list(OGB_ATOM_SIZES) == get_atom_feature_dims() and list(OGB_BOND_SIZES) == get_bond_feature_dims()
    assert [*ogb.OGB_CHIRAL_TAGS, "misc"] == allowable_features["possible_chirality_list"]
    assert [*ogb.OGB_HYBRIDIZATIONS, "misc"] == allowable_features["possible_hybridization_list"]
    assert [*ogb.OGB_ORDERS, "misc"] == allowable_features["possible_bond_type_list"]
    assert list(ogb.OGB_STEREO) == allowable_features["possible_bond_stereo_list"]


@pytest.mark.parametrize(
    "smiles",
    [
        *ODDITIES.values(),
        *REFUSED_BY_STRICT_RDKIT,
        *("[C-5]", "[C-6]", "[C+6]", "[FeH9]", "[U](F)(F)(F)(F)(F)F", "[Co@OH9]", "F/C=C\\F", "[NH3]->[Fe]"),
    ],
)
def test_features_are_those_of_ogb(smiles):
    graph, mol = FEATURIZERS["ogb"].graph(smiles), read_smiles(smiles)
    assert graph.x.tolist() == [atom_to_feature_vector(atom) for atom in mol.GetAtoms()]
    assert graph.edge_attr.tolist() == 2 * [bond_to_feature_vector(bond) for bond in mol.GetBonds()]


def test_stereo_outside_ogbs_vocabulary_is_refused():
    with pytest.raises(InputError, match="bond stereo atropcw is not in this model's vocabulary"):
        ogb_bond(Chem.BondType.SINGLE, Chem.BondStereo.STEREOATROPCW, False)


MOL = FEATURIZERS["mol"]


def test_labels_by_hand():
    assert labels("C[C@H](N)C(=O)O") == ["", "S", "", "", "", ""]
    assert labels("C[C@@H](N)C(=O)O") == ["", "R", "", "", "", ""]
    assert labels("N[C@@H]1CC[C@@H](C)CC1") == ["", "r", "", "", "r", "", "", ""]  # cis
    assert labels("C[S@](=O)c1ccccc1")[1] == "S" and labels("C[S@@](=O)c1ccccc1")[1] == "R"
    assert labels("CCO") == ["", "", ""]


@pytest.mark.parametrize(
    ("smiles", "known"), [("F/C=C/Cl", 1), ("C/C=C(\\[C@H](C)O)[C@@H](C)O", 1), ("C/C=C(/[C@H](C)O)[C@@H](C)O", 2)]
)
def test_a_double_bond_whose_sides_are_mirror_images_has_its_label_too(smiles, known):
    """E is 1 and Z is 2, also if two substituents differ only in their chirality (e and z)."""
    kinds = {row[1] for row in MOL.graph(smiles).edge_attr.tolist()}
    assert kinds == {0, known}


def labels(smiles: str) -> list[str]:
    return [label(atom) for atom in with_stereo_labels(read_smiles(smiles)).GetAtoms()]


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


@pytest.mark.parametrize("smiles", [*ODDITIES.values(), *REFUSED_BY_STRICT_RDKIT, "[Og]", "[Fe+6]", "C[2H]"])
def test_whatever_can_be_read_is_in_the_vocabulary(smiles):
    graph = MOL.graph(smiles)
    assert len(graph.x) == read_smiles(smiles).GetNumAtoms()
    assert (graph.x < MOL.atom_sizes).all() and (graph.edge_attr < MOL.bond_sizes).all()
