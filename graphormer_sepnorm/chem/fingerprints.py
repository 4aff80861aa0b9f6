"""Morgan fingerprints: the environments of radius 2 around the atoms, hashed to 2,048 positions."""

import numpy as np
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from rdkit.DataStructs import BitVectToFPSText, CreateFromFPSText, ExplicitBitVect

from graphormer_sepnorm.chem.smiles import one_molecule

SIZE = 2048
MORGAN = GetMorganGenerator(radius=2, fpSize=SIZE)


def morgan_counts(mol: Chem.Mol) -> np.ndarray:
    """Count of each environment: uint32 [SIZE]; raises InputError if RDKit fails."""
    with one_molecule():
        return MORGAN.GetCountFingerprintAsNumPy(mol)


def morgan_bits(mol: Chem.Mol) -> ExplicitBitVect:
    """Presence of each environment; raises InputError if RDKit fails."""
    with one_molecule():
        return MORGAN.GetFingerprint(mol)


def packed(bits: ExplicitBitVect) -> np.ndarray:
    """A fingerprint as bytes: uint8 [SIZE / 8]."""
    return np.frombuffer(bytes.fromhex(BitVectToFPSText(bits)), np.uint8)


def unpacked(row: np.ndarray) -> ExplicitBitVect:
    """The fingerprint from the bytes of ``packed``."""
    return CreateFromFPSText(row.tobytes().hex())
