from pathlib import Path

import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.chem.standardize import (
    PREPARATIONS,
    canonical_tautomer,
    chembl_parent,
    is_doubtful,
    is_usual,
    parent,
    parent_part,
    reduction,
)
from graphormer_sepnorm.tables.options import TableOptions
from tests.fuzz.forms import family
from tests.salts import ionized, sold_salts


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("CC(=O)[O-].[Na+]", "CC(=O)O"), ("C[NH3+].[Cl-]", "CN"), ("C[N+](C)(C)C.[Br-]", "C[N+](C)(C)C"),
        ("CN(=O)=O", "C[N+](=O)[O-]"), ("CC(=O)O[Na]", "CC(=O)O"), ("C[N+](C)(C)CC(=O)[O-]", "C[N+](C)(C)CC(=O)[O-]"),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize(
    "smiles",
    [
        "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "O=C1CC[C@H](N2C(=O)c3ccccc3C2=O)C(=O)N1", "CC(=O)[C@H](C)O",
        "C/C=C/C(C)=O",
    ],
)  # fmt: skip
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


SALTS = sold_salts()


def prepared(name: str, smiles: str) -> str:
    return Chem.MolToSmiles(PREPARATIONS[name](read_smiles(smiles)))


a_few_and_all = pytest.mark.parametrize(
    "part", [pytest.param(slice(0, None, 25), id="few"), pytest.param(slice(None), marks=pytest.mark.slow, id="all")]
)


@a_few_and_all
def test_200_salts_have_the_family_of_their_parents(part):
    assert len(SALTS) > 200 and len(set(SALTS)) == len(SALTS)
    for drug, neutral, ion, is_acid in SALTS[part]:
        drawn = [f"{neutral}.{drug}", f"{ionized(drug, is_acid)}.{ion}.{ion}", drug]
        assert len({family(text) for text in drawn}) == 1, drawn
        assert not any(is_doubtful(read_smiles(text)) for text in drawn), drawn


@pytest.mark.slow
@pytest.mark.parametrize("name", ["without-salts", "standardized", "chembl"])
@a_few_and_all
def test_200_salts_become_their_parents(name, part):
    if name == "chembl":
        pytest.importorskip("chembl_structure_pipeline")
    for drug, neutral, ion, is_acid in SALTS[part]:
        charged = ionized(drug, is_acid)
        expected = {read: prepared(name, read) for read in (drug, charged)}
        for text, read in ((f"{drug}.{neutral}", drug), (f"{ion}.{charged}.{ion}.O", charged)):
            assert prepared(name, text) == expected[read]
        assert name == "without-salts" or expected[drug] == expected[charged]


@pytest.mark.parametrize(
    ("smiles", "left"),
    [
        ("CC(=O)[O-].[Na+]", "CC(=O)[O-]"), ("Cl.C[C@H](N)C(=O)O.O", "C[C@H](N)C(=O)O"), ("C.[Pt]", "C"),
        ("CC#N.F[P-](F)(F)(F)(F)F", "CC#N"), ("O.O=S(=O)(O)O", "O=S(=O)(O)O"), ("[Na+].[Cl-]", "[Na+].[Cl-]"),
        ("[Mg+2].O.[O-]S([O-])(=O)=O.O", "[Mg+2].[O-]S([O-])(=O)=O"), ("O.O", "O"), ("[Na]Cl.CCO", "CCO"),
        ("N.N.[Pt+2].[Cl-].[Cl-]", "N.N.[Pt+2].[Cl-].[Cl-]"), ("N.N.Cl[Pt]Cl", "N.N.Cl[Pt]Cl"),
        ("Cl[Zn]Cl.NCC(=O)O", "NCC(=O)O"), ("NN.Cl", "NN"), ("OCC", "CCO"), ("C1.C1", "CC"),
        # all parts are counter-ions
        ("NCCCC[C@H](N)C(=O)O.CC(=O)O", "NCCCC[C@H](N)C(=O)O"),
        ("OCCN(CCO)CCO.OC(=O)c1ccccc1O", "O=C(O)c1ccccc1O"),
        ("C1CNCCN1.OC(=O)CC(O)(CC(=O)O)C(=O)O", "O=C(O)CC(O)(C(=O)O)CC(=O)O"),
        ("O=C([O-])CC(O)(CC(=O)[O-])C(=O)[O-].[Na+].[Na+].[Na+].O", "O=C([O-])CC(O)(CC(=O)[O-])C(=O)[O-]"),
        # complexes, and inorganic parts
        ("C[N+](C)(C)CCO.C[N+](C)(C)CCO.[S-][Mo]([S-])(=S)=S", "[S]=[Mo](=[S])([S-])[S-]"),
        ("[NH3][Pt](Cl)(Cl)[NH3].CN(C)C=O", "[NH3]->[Pt](<-[NH3])([Cl])[Cl]"),
    ],
)  # fmt: skip
def test_what_is_left_of_a_molecule(smiles, left):
    assert Chem.MolToSmiles(parent_part(read_smiles(smiles))) == Chem.CanonSmiles(left)


@pytest.mark.parametrize(
    ("smiles", "doubtful"),
    [
        ("CCN(CC)CCOC(=O)c1ccc(N)cc1.CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O", True),  # procaine penicillin
        ("NCC(=O)O.CC(N)C(=O)O", True), ("CCCCCCCCN.OCCN", False), ("CCCCCCCCN.CCCCCCCC[NH3+].[Cl-]", False),
        ("[Na+].[Cl-].O.CO", False), ("CCO", False),
    ],
)  # fmt: skip
def test_pairs_of_which_either_could_be_the_parent_are_known(smiles, doubtful):
    assert is_doubtful(read_smiles(smiles)) == doubtful


def test_the_lists_of_chembl_are_known():
    pytest.importorskip("chembl_structure_pipeline")
    from chembl_structure_pipeline import standardizer

    unreadable = {"F[P](F)(F)(F)(F)F", "O[N](=O)O", "OC(=O)c1cc(=O)nc(=O)n1"}  # known by other drawings
    for path in (standardizer._salts_file, standardizer._solvents_file):
        smiles = {line.split("\t")[1].strip() for line in Path(path).read_text().splitlines() if "\t" in line}
        assert smiles and all(is_usual(read_smiles(text)) for text in smiles - unreadable)
