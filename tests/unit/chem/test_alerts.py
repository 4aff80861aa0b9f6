import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.properties import find_alerts


@pytest.mark.parametrize(
    ("smiles", "alerts"),
    [
        ("O=C1C=CC(=O)C=C1", ["Brenk: chinone_1", "PAINS_A: quinone_A(370)"]),
        ("CC(=O)Oc1ccccc1C(=O)O", ["Brenk: phenol_ester"]),
        ("CCO", []),
        ("O=N(=O)c1ccccc1.CCBr", ["Brenk: Oxygen-nitrogen_single_bond", "Brenk: alkyl_halide", "Brenk: nitro_group"]),
    ],
)
def test_alerts_of_known_molecules(smiles, alerts):
    assert find_alerts(Chem.MolFromSmiles(smiles)) == alerts
