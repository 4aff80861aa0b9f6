"""Counts of what occurs in molecules, by four of RDKit's fingerprints, and how similar molecules are by them.

Axis letters: M and N molecules, Z entries that are not 0.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator
from scipy.sparse import csr_array, vstack

from graphormer_sepnorm.chem.fingerprints import SIZE
from graphormer_sepnorm.chem.smiles import Molecule, molecule_of, one_molecule

LARGEST_COUNT = np.iinfo(np.uint16).max
KINDS = ("morgan", "feature-morgan", "atom-pairs", "torsions")


@cache
def generators() -> tuple[rdFingerprintGenerator.FingerprintGenerator64, ...]:
    """RDKit's generators of the ``KINDS``, all of ``SIZE`` places."""
    features = rdFingerprintGenerator.GetMorganFeatureAtomInvGen()
    return (
        rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=SIZE),
        rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=SIZE, atomInvariantsGenerator=features),
        rdFingerprintGenerator.GetAtomPairGenerator(fpSize=SIZE),
        rdFingerprintGenerator.GetTopologicalTorsionGenerator(fpSize=SIZE),
    )


def counts_of(mol: Chem.Mol) -> csr_array:
    """What occurs in a molecule: uint16 [1, KINDS x SIZE]; raises InputError if RDKit fails."""
    with one_molecule():
        row = np.concatenate([generator.GetCountFingerprintAsNumPy(mol) for generator in generators()])
    places = np.flatnonzero(row)
    values = row[places].clip(max=LARGEST_COUNT).astype(np.uint16)
    return csr_array((values, places.astype(np.int32), np.array([0, len(places)], np.int32)), shape=(1, len(row)))


def count_fingerprints(molecules: Sequence[Molecule]) -> csr_array:
    """The counts of molecules: uint16 [M, KINDS x SIZE]; raises InputError for one that cannot be read."""
    width = len(KINDS) * SIZE
    rows = [counts_of(molecule_of(molecule)) for molecule in molecules]
    return csr_array(vstack(rows, format="csr")) if rows else csr_array((0, width), dtype=np.uint16)
