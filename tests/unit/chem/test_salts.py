"""The parents of salts: of those that are sold, and of those that have none or two."""

from pathlib import Path

import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.properties import family_of, molecule_key, parent_key
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.chem.standardize import PREPARATIONS, is_doubtful, is_usual, parent_part
from tests.salts import ionized, sold_salts

SALTS = sold_salts()


def family(smiles: str) -> str:
    mol = read_smiles(smiles)
    return family_of(parent_key(mol, molecule_key(mol)))


def prepared(name: str, smiles: str) -> str:
    return Chem.MolToSmiles(PREPARATIONS[name](read_smiles(smiles)))


a_few_and_all = pytest.mark.parametrize(
    "part", [pytest.param(slice(0, None, 25), id="few"), pytest.param(slice(None), marks=pytest.mark.slow, id="all")]
)


@a_few_and_all
def test_200_salts_have_the_family_of_their_parents(part):
    assert len(SALTS) > 200 and len(set(SALTS)) == len(SALTS)
    for parent, neutral, ion, is_acid in SALTS[part]:
        drawn = [f"{neutral}.{parent}", f"{ionized(parent, is_acid)}.{ion}.{ion}", parent]
        assert len({family(text) for text in drawn}) == 1, drawn
        assert not any(is_doubtful(read_smiles(text)) for text in drawn), drawn


@pytest.mark.parametrize("name", ["without-salts", "standardized", "chembl"])
@a_few_and_all
def test_200_salts_become_their_parents(name, part):
    if name == "chembl":
        pytest.importorskip("chembl_structure_pipeline")
    for parent, neutral, ion, is_acid in SALTS[part]:
        charged = ionized(parent, is_acid)
        expected = {read: prepared(name, read) for read in (parent, charged)}
        for text, read in ((f"{parent}.{neutral}", parent), (f"{ion}.{charged}.{ion}.O", charged)):
            assert prepared(name, text) == expected[read]
        assert name == "without-salts" or expected[parent] == expected[charged]


@pytest.mark.parametrize(
    ("smiles", "left"),
    [
        ("CC(=O)[O-].[Na+]", "CC(=O)[O-]"),
        ("Cl.C[C@H](N)C(=O)O.O", "C[C@H](N)C(=O)O"),
        ("C.[Pt]", "C"),
        ("CC#N.F[P-](F)(F)(F)(F)F", "CC#N"),
        ("O.O=S(=O)(O)O", "O=S(=O)(O)O"),
        ("[Na+].[Cl-]", "[Na+].[Cl-]"),
        ("[Mg+2].O.[O-]S([O-])(=O)=O.O", "[Mg+2].[O-]S([O-])(=O)=O"),
        ("N.N.[Pt+2].[Cl-].[Cl-]", "N.N.[Pt+2].[Cl-].[Cl-]"),
        ("N.N.Cl[Pt]Cl", "N.N.Cl[Pt]Cl"),
        ("O.O", "O"),
        ("[Na]Cl.CCO", "CCO"),
        ("Cl[Zn]Cl.NCC(=O)O", "NCC(=O)O"),
        ("NN.Cl", "NN"),
        ("OCC", "CCO"),
        ("C1.C1", "CC"),
        # all parts are counter-ions
        ("NCCCC[C@H](N)C(=O)O.CC(=O)O", "NCCCC[C@H](N)C(=O)O"),
        ("OCCN(CCO)CCO.OC(=O)c1ccccc1O", "O=C(O)c1ccccc1O"),
        ("C1CNCCN1.OC(=O)CC(O)(CC(=O)O)C(=O)O", "O=C(O)CC(O)(C(=O)O)CC(=O)O"),
        ("O=C([O-])CC(O)(CC(=O)[O-])C(=O)[O-].[Na+].[Na+].[Na+].O", "O=C([O-])CC(O)(CC(=O)[O-])C(=O)[O-]"),
        # complexes, and inorganic parts
        ("C[N+](C)(C)CCO.C[N+](C)(C)CCO.[S-][Mo]([S-])(=S)=S", "[S]=[Mo](=[S])([S-])[S-]"),
        ("[NH3][Pt](Cl)(Cl)[NH3].CN(C)C=O", "[NH3]->[Pt](<-[NH3])([Cl])[Cl]"),
        ("[O-]*.[Na+]", "*[O-]"),
    ],
)
def test_what_is_left_of_a_molecule(smiles, left):
    assert Chem.MolToSmiles(parent_part(read_smiles(smiles))) == Chem.CanonSmiles(left)


@pytest.mark.parametrize(
    ("smiles", "doubtful"),
    [
        ("CCN(CC)CCOC(=O)c1ccc(N)cc1.CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O", True),  # procaine penicillin
        ("NCC(=O)O.CC(N)C(=O)O", True),
        ("CCCCCCCCN.OCCN", False),
        ("CCCCCCCCN.CCCCCCCC[NH3+].[Cl-]", False),
        ("[Na+].[Cl-].O.CO", False),
        ("CCO", False),
    ],
)
def test_pairs_of_which_either_could_be_the_parent_are_known(smiles, doubtful):
    assert is_doubtful(read_smiles(smiles)) == doubtful


def test_the_lists_of_chembl_are_known():
    pytest.importorskip("chembl_structure_pipeline")
    from chembl_structure_pipeline import standardizer

    unreadable = {"F[P](F)(F)(F)(F)F", "O[N](=O)O", "OC(=O)c1cc(=O)nc(=O)n1"}  # known by other drawings
    for path in (standardizer._salts_file, standardizer._solvents_file):
        smiles = {line.split("\t")[1].strip() for line in Path(path).read_text().splitlines() if "\t" in line}
        assert smiles and all(is_usual(read_smiles(text)) for text in smiles - unreadable)
