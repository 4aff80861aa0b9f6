"""Basic molecular properties, computed with RDKit and named as there."""

from collections.abc import Callable

import numpy as np
from rdkit import Chem
from rdkit.Chem import QED, rdMolDescriptors

from graphormer_sepnorm.chem.smiles import one_molecule

PROPERTIES: dict[str, Callable[[Chem.Mol], float]] = {
    "MolWt": rdMolDescriptors._CalcMolWt,
    "MolLogP": lambda mol: rdMolDescriptors.CalcCrippenDescriptors(mol)[0],
    "TPSA": rdMolDescriptors.CalcTPSA,
    "NumHDonors": rdMolDescriptors.CalcNumHBD,
    "NumHAcceptors": rdMolDescriptors.CalcNumHBA,
    "NumRotatableBonds": rdMolDescriptors.CalcNumRotatableBonds,
    "NumAromaticRings": rdMolDescriptors.CalcNumAromaticRings,
    "FractionCSP3": rdMolDescriptors.CalcFractionCSP3,
    "QED": QED.qed,
}


def basic_properties(mol: Chem.Mol) -> np.ndarray:
    """The ``PROPERTIES`` of a molecule: float64 [P]; raises InputError if RDKit fails."""
    with one_molecule():
        return np.array([compute(mol) for compute in PROPERTIES.values()], np.float64)
