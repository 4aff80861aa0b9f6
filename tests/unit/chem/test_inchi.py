import csv
from collections import Counter
from pathlib import Path

import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.features import GUESSED, read_molecules
from graphormer_sepnorm.chem.inchi import molecule_of_inchi
from graphormer_sepnorm.chem.smiles import guess, read_smiles
from tests.fuzz.inchi import written_as_inchi

DATA = Path(__file__).parents[3] / "data"
# How the tables are read: hydroxypyridines become the usual form; some azoles, purines and guanidines are guesses.
SHIPPED = {"drugs.csv": {"same": 201, "guess": 8}, "esol.csv": {"same": 1116, "guess": 9, "usual": 3}}


GUESSES = ["Nc1nc2c(ncn2COCCO)c(=O)[nH]1", "N=C(N)NC(=N)NCCC", "COc1cccc2c(=O)[nH]c(C)nc12"]


@pytest.mark.parametrize(
    "smiles",
    [
        "NC(=O)c1cnccn1",  # amide
        "O=C1CCCN1",  # lactam
        "O=C1NC(=O)C(c2ccccc2)(c2ccccc2)N1",  # hydantoin
        "CCNC(N)=O",  # urea
        "COC(=O)Nc1ccccc1",  # carbamate
        "NC(N)=S",  # thiourea
        "CC(=S)Nc1ccccc1",  # thioamide
        "CC(=O)Nc1nnc(S(N)(=O)=O)s1",  # sulfonamide
        "CC(=O)NS(=O)(=O)c1ccc(N)cc1",  # acylsulfonamide
        "N=C(N)N1CCCC1",  # guanidine
        "N=C(N)c1ccccc1",  # amidine
        "Nc1ccn([C@@H]2O[C@H](CO)[C@@H](O)[C@@H]2O)c(=O)n1",  # cytosine
        "O=c1[nH]cc(F)c(=O)[nH]1",  # uracil
        "Nc1nc(N)nc(N)n1",  # melamine
        "Nc1nccs1",  # no imine
        "CC1=NNC(=O)C1",  # pyrazolone
        "O=C1[N-]S(=O)(=O)c2ccccc21.[Na+]",
        "CC(=O)[O-].CC(=O)[O-].[Ca+2]",
        "C[NH2+]Cc1ccc(N)cc1",  # the amine has the proton, not the aniline
        "C[N+](C)(C)CC(O)CC(=O)O.[Cl-]",  # the betaine is protonated, not the chloride
        "C[N+](C)(C)CC(=O)NC", "CC[N+](C)(C)c1cccc(O)c1.[Br-]", "Cl.C[N+]1([O-])CCCCC1", "C" + "NC(=O)C" * 60,
        "C[N+](C)(C)CC(=O)Nc1ccc([N+](=O)[O-])c(C(=O)O)c1.[Cl-]", "Cl.NCc1ccc([N+](=O)[O-])cc1",
        "[2H]C([2H])NC=O.CC(N)=O.CC(N)=O.Cl",
        "Cc1ccc2[nH]c(=O)c(CO)cc2c1",  # quinolinone, far from the double bond of its Kekule form
        *GUESSES,
    ],
)  # fmt: skip
def test_hydrogens_of_an_inchi_are_where_chemists_draw_them(smiles):
    mol = Chem.MolFromSmiles(smiles)
    found = read_smiles(Chem.MolToInchi(mol))
    assert Chem.MolToSmiles(found) == Chem.MolToSmiles(mol)
    assert bool(guess(Chem.MolToInchi(mol))) == (smiles in GUESSES)


@pytest.mark.parametrize("smiles", ["Cc1cnc[nH]1", "Cc1ccn[nH]1", "Cc1nnn[nH]1", "CN=C(N)Nc1ccccc1"])
def test_an_inchi_that_fits_two_usual_drawings_is_a_guess(smiles):
    inchi = Chem.MolToInchi(Chem.MolFromSmiles(smiles))
    form = guess(inchi)
    assert Chem.MolToInchi(Chem.MolFromSmiles(form)) == inchi
    assert read_molecules("mol", [inchi, form]).reductions == [f"{GUESSED}: read as {form}.", ""]


@pytest.mark.parametrize(("hydrogens", "form"), [("h3H2", "CC(N)=O"), ("h3-4H", "CC(=N)O")])
def test_fixed_hydrogens_stay(hydrogens, form):
    mol, guessed = molecule_of_inchi(f"InChI=1/C2H5NO/c1-2(3)4/h1H3,(H2,3,4)/f/{hydrogens}")
    assert (Chem.MolToSmiles(mol), guessed) == (form, False)


@pytest.mark.slow
@pytest.mark.parametrize(("table", "ends"), SHIPPED.items())
def test_shipped_tables_are_read_from_their_inchis(table, ends):
    with open(DATA / table, encoding="utf-8") as file:
        assert Counter(written_as_inchi(row["smiles"]) for row in csv.DictReader(file)) == ends
