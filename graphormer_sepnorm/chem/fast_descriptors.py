"""A selection of RDKit's two-dimensional descriptors, which takes about half a millisecond per molecule.

Slow ones are left out: qed, BCUT2D, EState and its surfaces, BertzCT, SPS, Ipc, BalabanJ, chi and kappa indices,
densities of Morgan environments, partial charges, and numbers of fragments (fr_).

Axis letters: M molecules, D descriptors.
"""

from collections.abc import Sequence

import numpy as np
from rdkit.Chem import rdMolDescriptors

from graphormer_sepnorm.chem.smiles import Molecule, molecule_of, one_molecule

NUMBERS = (
    rdMolDescriptors.CalcExactMolWt,
    rdMolDescriptors.CalcNumHeavyAtoms,
    rdMolDescriptors.CalcTPSA,
    rdMolDescriptors.CalcLabuteASA,
    rdMolDescriptors.CalcHallKierAlpha,
    rdMolDescriptors.CalcFractionCSP3,
    rdMolDescriptors.CalcNumLipinskiHBA,
    rdMolDescriptors.CalcNumLipinskiHBD,
    rdMolDescriptors.CalcNumHBA,
    rdMolDescriptors.CalcNumHBD,
    rdMolDescriptors.CalcNumHeteroatoms,
    rdMolDescriptors.CalcNumRotatableBonds,
    rdMolDescriptors.CalcNumAmideBonds,
    rdMolDescriptors.CalcNumAtomStereoCenters,
    rdMolDescriptors.CalcNumRings,
    rdMolDescriptors.CalcNumAromaticRings,
    rdMolDescriptors.CalcNumAromaticCarbocycles,
    rdMolDescriptors.CalcNumAromaticHeterocycles,
    rdMolDescriptors.CalcNumAliphaticRings,
    rdMolDescriptors.CalcNumAliphaticHeterocycles,
    rdMolDescriptors.CalcNumSaturatedRings,
    rdMolDescriptors.CalcNumBridgeheadAtoms,
    rdMolDescriptors.CalcNumSpiroAtoms,
)
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
            row[:] = [*(number(mol) for number in NUMBERS), *(each for several in SEVERAL for each in several(mol))]
    return np.where(np.abs(values) < np.finfo(np.float32).max, values, np.nan).astype(np.float32)
