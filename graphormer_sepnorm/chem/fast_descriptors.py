"""RDKit's two-dimensional descriptors without the slow ones, in about half a millisecond per molecule."""

from collections.abc import Sequence

import numpy as np
from rdkit.Chem import rdMolDescriptors

from graphormer_sepnorm.chem.smiles import Molecule, molecule_of, one_molecule

NUMBERS = (
    "ExactMolWt", "NumHeavyAtoms", "TPSA", "LabuteASA", "HallKierAlpha", "FractionCSP3", "NumLipinskiHBA",
    "NumLipinskiHBD", "NumHBA", "NumHBD", "NumHeteroatoms", "NumRotatableBonds", "NumAmideBonds",
    "NumAtomStereoCenters", "NumRings", "NumAromaticRings", "NumAromaticCarbocycles", "NumAromaticHeterocycles",
    "NumAliphaticRings", "NumAliphaticHeterocycles", "NumSaturatedRings", "NumBridgeheadAtoms", "NumSpiroAtoms",
)  # fmt: skip
FUNCTIONS = [getattr(rdMolDescriptors, f"Calc{name}") for name in NUMBERS]
SEVERAL = (  # lipophilicity and refraction, and the surface by each of them and by charge
    rdMolDescriptors.CalcCrippenDescriptors,
    rdMolDescriptors.SlogP_VSA_,
    rdMolDescriptors.SMR_VSA_,
    rdMolDescriptors.PEOE_VSA_,
)
VERSIONS = ("descriptors 1",)  # of values and order, as kinds of counts; files without a name have the first
WIDTH = len(NUMBERS) + 2 + 12 + 10 + 14


def fast_descriptors(molecules: Sequence[Molecule]) -> np.ndarray:
    """Counts of atoms, rings and bonds, logP, refractivity, and surface areas: float32 [M, D], NaN where not finite."""
    values = np.empty((len(molecules), WIDTH))
    for row, mol in zip(values, map(molecule_of, molecules), strict=True):
        with one_molecule():
            row[:] = [*(number(mol) for number in FUNCTIONS), *(each for several in SEVERAL for each in several(mol))]
    return np.where(np.abs(values) < np.finfo(np.float32).max, values, np.nan).astype(np.float32)
