import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.chem.standardize import (
    PREPARATIONS,
    canonical_tautomer,
    chembl_parent,
    parent,
    reduction,
)
from graphormer_sepnorm.tables.options import TableOptions


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


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("OC(=O)C(F)(F)F.CN", "CN"),  # the salt is larger
        ("NCCc1ccccc1.OC(=O)/C=C/C(=O)O.O", "NCCc1ccccc1"),
        ("CC(=O)[O-].[Na+]", "CC(=O)[O-].[Na+]"),  # all parts are known salts
        ("[2H]C([2H])([2H])Oc1ccccc1C(=O)[O-]", "COc1ccccc1C(=O)O"),
        ("Cl[Pt](Cl)(N)N", "[NH2][Pt]([NH2])([Cl])[Cl]"),
        ("CC(O)=NC", "CNC(C)=O"),
    ],
)
def test_the_parent_of_chembl(smiles, expected):
    pytest.importorskip("chembl_structure_pipeline")
    assert Chem.MolToSmiles(chembl_parent(read_smiles(smiles))) == expected
    assert TableOptions("a.csv", ("y",), standardize="chembl").featurizer == "mol-chembl"


def test_tautomers_become_one_molecule():
    assert {Chem.MolToSmiles(canonical_tautomer(read_smiles(text))) for text in ("Oc1ccccn1", "O=c1cccc[nH]1")} == {
        "O=c1cccc[nH]1"
    }


@pytest.mark.parametrize(
    "smiles",
    [
        "C[C@H](N)C(=O)O",
        "C[C@@H](N)C(=O)O",
        "O=C1CC[C@H](N2C(=O)c3ccccc3C2=O)C(=O)N1",
        "CC(=O)[C@H](C)O",
        "C/C=C/C(C)=O",
    ],
)
def test_the_canonical_tautomer_keeps_stereo(smiles):
    assert Chem.MolToSmiles(canonical_tautomer(read_smiles(smiles))) == smiles


@pytest.mark.parametrize("name", PREPARATIONS)
def test_preparing_twice_changes_nothing_more(name):
    for smiles in ("CC(=O)[O-].[Na+]", "NC(=N)c1ccccc1.Cl", "Oc1ccccn1", "OC1=CC=CC=C1.O", "[Na+].[Cl-]"):
        once = Chem.MolToSmiles(PREPARATIONS[name](read_smiles(smiles)))
        assert Chem.MolToSmiles(PREPARATIONS[name](read_smiles(once))) == once


@pytest.mark.parametrize(
    ("name", "smiles", "read", "removed"),
    [
        ("standardized", "CCCCCO[Ti](Cl)(Cl)OCCCCC", "CCCCCO", "Ti and Cl"),
        ("tautomer", "CCCCCO[Ti](Cl)(Cl)OCCCCC.O", "CCCCCO", "Ti, Cl and O"),
        ("without-salts", "NCC(=O)O.CC(N)C(=O)O", "CC(N)C(=O)O", "NCC(=O)O"),
        ("without-salts", "[CH-]1C=CC=C1.[CH-]1C=CC=C1.[Fe+2]", "c1cc[cH-]c1", "Fe"),
        ("standardized", "CC(=O)Oc1ccccc1C(=O)O.CCCCCC[NH3+]", "CC(=O)Oc1ccccc1C(=O)O", "CCCCCCN"),
        ("standardized", "CCN.OC(=O)CC(O)(C(=O)O)CC(=O)O", "O=C(O)CC(O)(CC(=O)O)C(=O)O", "CCN"),
    ],
)
def test_a_molecule_that_lost_more_than_its_salt_is_pointed_out(name, smiles, read, removed):
    mol = read_smiles(smiles)
    assert reduction(mol, PREPARATIONS[name](mol)) == f"Read as {read}: standardization removed {removed}."


@pytest.mark.parametrize("name", sorted(set(PREPARATIONS) - {"chembl"}))
@pytest.mark.parametrize(
    "smiles",
    [
        "CC(=O)O[Na]", "NCCc1ccccc1.OC(=O)/C=C/C(=O)O.O", "CCCCN.F[P-](F)(F)(F)(F)F", "CCCCN.OCl(=O)(=O)=O",
        "CCCCC[NH3+].CCCCC[NH3+].[O-]S(=O)(=O)[O-]", "CCO", "[Na+].[Cl-]", "[H+].[Cl-].CCN", "[K+].CCC[B-](F)(F)F",
    ],
)  # fmt: skip
def test_salts_and_solvents_are_removed_without_a_word(name, smiles):
    mol = read_smiles(smiles)
    assert reduction(mol, PREPARATIONS[name](mol)) == ""


@pytest.mark.parametrize("name", PREPARATIONS)
def test_a_complex_stays_whole_and_is_not_pointed_out(name):
    mol = read_smiles("[NH3][Pt](Cl)(Cl)[NH3].O")
    found = PREPARATIONS[name](mol)
    assert "Pt" in Chem.MolToSmiles(found) and reduction(mol, found) == ""
