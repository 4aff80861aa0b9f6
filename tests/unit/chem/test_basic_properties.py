import numpy as np
from rdkit import Chem

from graphormer_sepnorm.chem.properties import PROPERTIES, basic_properties


def test_aspirin_by_the_textbook():
    found = dict(zip(PROPERTIES, basic_properties(Chem.MolFromSmiles("CC(=O)Oc1ccccc1C(=O)O")), strict=True))
    assert round(found["MolWt"], 2) == 180.16 and round(found["TPSA"], 1) == 63.6
    assert (found["NumHDonors"], found["NumHAcceptors"], found["NumAromaticRings"]) == (1, 3, 1)
    assert found["FractionCSP3"] == 1 / 9 and 0 < found["QED"] < 1


def test_every_property_is_a_number_of_any_molecule():
    for smiles in ("[Na+]", "[H][H]", "*C", "C" * 300, "CC[Pt](Cl)Cl"):
        assert np.isfinite(basic_properties(Chem.MolFromSmiles(smiles))).all(), smiles
