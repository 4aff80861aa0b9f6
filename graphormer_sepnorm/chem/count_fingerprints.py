"""Count fingerprints of molecules, of seven kinds from RDKit.

Axis letters: M and N molecules, Z non-zero entries.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator
from rdkit.Chem.rdMolDescriptors import GetFeatureInvariants
from scipy.sparse import csr_array

from graphormer_sepnorm.chem.fingerprints import SIZE
from graphormer_sepnorm.chem.smiles import Molecule, molecule_of, one_molecule

LARGEST_COUNT = np.iinfo(np.uint16).max
KINDS = (
    "morgan",
    "feature-morgan",
    "atom-pairs",
    "chiral-atom-pairs",
    "feature-atom-pairs",
    "torsions",
    "erg",
)
PARTS_OF_ONE = 10  # ErG counts are stored in tenths
Counter = Callable[[Chem.Mol, list[int]], np.ndarray]


@cache
def counters() -> tuple[Counter, ...]:
    """For each of ``KINDS``, a function of a molecule and its feature invariants: integers [SIZE] or fewer."""
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=SIZE)
    pairs = rdFingerprintGenerator.GetAtomPairGenerator(fpSize=SIZE)
    chiral_pairs = rdFingerprintGenerator.GetAtomPairGenerator(fpSize=SIZE, includeChirality=True)
    torsions = rdFingerprintGenerator.GetTopologicalTorsionGenerator(fpSize=SIZE)
    return (
        lambda mol, features: morgan.GetCountFingerprintAsNumPy(mol),
        lambda mol, features: morgan.GetCountFingerprintAsNumPy(mol, customAtomInvariants=features),
        lambda mol, features: pairs.GetCountFingerprintAsNumPy(mol),
        lambda mol, features: chiral_pairs.GetCountFingerprintAsNumPy(mol),
        lambda mol, features: pairs.GetCountFingerprintAsNumPy(mol, customAtomInvariants=features),
        lambda mol, features: torsions.GetCountFingerprintAsNumPy(mol),
        reduced_graph,
    )


def reduced_graph(mol: Chem.Mol, features: list[int]) -> np.ndarray:
    """The ErG fingerprint of the reduced graph, in tenths: uint32 [315].

    RDKit's function reads properties that other functions leave in a molecule, so it gets a copy without them.

    Source: Stiefl et al., "ErG: 2D pharmacophore descriptions for scaffold hopping", J. Chem. Inf. Model. 2006.
    """
    from rdkit.Chem.rdReducedGraphs import GetErGFingerprint  # its import takes a while

    mol = Chem.Mol(mol)
    mol.ClearComputedProps(includeRings=False)
    return np.rint(PARTS_OF_ONE * np.asarray(GetErGFingerprint(mol))).astype(np.uint32)


def counts_of(mol: Chem.Mol) -> tuple[np.ndarray, np.ndarray]:
    """Positions int32 [Z] and counts uint16 [Z] of the non-zero entries; raises InputError if RDKit fails."""
    row = np.zeros((len(KINDS), SIZE), np.uint32)
    with one_molecule():
        features = list(GetFeatureInvariants(mol))
        for kind, count in zip(row, counters(), strict=True):
            found = count(mol, features)
            kind[: len(found)] = found
    places = np.flatnonzero(row)
    return places.astype(np.int32), row.ravel()[places].clip(max=LARGEST_COUNT).astype(np.uint16)


def count_fingerprints(molecules: Sequence[Molecule]) -> csr_array:
    """The fingerprints of molecules: uint16 [M, KINDS x SIZE]; raises InputError for one that cannot be read."""
    rows = [counts_of(molecule_of(molecule)) for molecule in molecules]
    places = np.concatenate([np.empty(0, np.int32), *(places for places, _ in rows)])
    counts = np.concatenate([np.empty(0, np.uint16), *(counts for _, counts in rows)])
    starts = np.cumsum([0, *(len(places) for places, _ in rows)], dtype=np.int32)
    return csr_array((counts, places, starts), shape=(len(rows), len(KINDS) * SIZE))
