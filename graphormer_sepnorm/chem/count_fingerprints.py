"""Count fingerprints of molecules, of several kinds from RDKit. Axis letters: M molecules, Z non-zero entries, K kinds.

A kind has a version, as in "torsions 2", and never changes, because files have counts of it: a mended one is a new one.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator
from rdkit.Chem.rdMolDescriptors import GetFeatureInvariants
from scipy.sparse import csr_array

from graphormer_sepnorm.chem.fingerprints import MORGAN as MORGAN_GENERATOR
from graphormer_sepnorm.chem.fingerprints import SIZE
from graphormer_sepnorm.chem.smiles import Molecule, molecule_of, one_molecule
from graphormer_sepnorm.errors import InputError

LARGEST_COUNT = np.iinfo(np.uint16).max
Kinds = tuple[str, ...]
MORGAN, ERG = "morgan 1", "erg 1"
PAIRS = ("atom-pairs 1", "chiral-atom-pairs 1", "feature-atom-pairs 1")
KINDS: Kinds = (MORGAN, "feature-morgan 1", *PAIRS, "torsions 2", ERG)  # of new models
UNRECORDED: Kinds = (MORGAN, "feature-morgan 1", *PAIRS, "torsions 1", ERG)  # of files that do not name theirs
TORSIONS = rdFingerprintGenerator.GetTopologicalTorsionGenerator(fpSize=SIZE)
PARTS_OF_ONE = 10  # ErG counts are stored in tenths
Counter = Callable[[Chem.Mol, list[int]], np.ndarray]


@cache
def counters() -> dict[str, Counter]:
    """For each kind, a function of a molecule and its feature invariants: integers [SIZE] or fewer."""
    pairs = rdFingerprintGenerator.GetAtomPairGenerator(fpSize=SIZE)
    chiral_pairs = rdFingerprintGenerator.GetAtomPairGenerator(fpSize=SIZE, includeChirality=True)
    return {
        MORGAN: lambda mol, features: MORGAN_GENERATOR.GetCountFingerprintAsNumPy(mol),
        "feature-morgan 1": lambda mol, features: MORGAN_GENERATOR.GetCountFingerprintAsNumPy(
            mol, customAtomInvariants=features
        ),
        "atom-pairs 1": lambda mol, features: pairs.GetCountFingerprintAsNumPy(mol),
        "chiral-atom-pairs 1": lambda mol, features: chiral_pairs.GetCountFingerprintAsNumPy(mol),
        "feature-atom-pairs 1": lambda mol, features: pairs.GetCountFingerprintAsNumPy(
            mol, customAtomInvariants=features
        ),
        "torsions 1": lambda mol, features: torsions(mol),
        "torsions 2": lambda mol, features: open_torsions(mol),
        ERG: reduced_graph,
    }


def known_kinds(
    facts: dict, path: Path, usual: Kinds = UNRECORDED, known: Collection[str] = (), key: str = "kinds"
) -> Kinds:
    """The known kinds that the facts of a file name under a key, or the usual ones of a file without names."""
    kinds = facts.get(key, usual)
    if not isinstance(kinds, list | tuple) or not all(isinstance(kind, str) for kind in kinds):
        raise InputError(f"{path} is damaged: it does not name its {key}")
    if unknown := [kind for kind in kinds if kind not in (known or counters())]:
        raise InputError(f"{path} needs {unknown[0]!r}, which this release does not know: install a later one")
    return tuple(kinds)


def has_ring_of_three(mol: Chem.Mol) -> bool:
    return any(len(ring) == 3 for ring in mol.GetRingInfo().AtomRings())


def torsions(mol: Chem.Mol) -> np.ndarray:
    """Topological torsions: uint32 [SIZE]. A ring of three atoms is one, from its first atom in canonical order."""
    if has_ring_of_three(mol):
        mol = Chem.RenumberAtoms(mol, np.argsort(list(Chem.CanonicalRankAtoms(mol))).tolist())
    return TORSIONS.GetCountFingerprintAsNumPy(mol)


def open_torsions(mol: Chem.Mol) -> np.ndarray:
    """Topological torsions of four different atoms: uint32 [SIZE]."""
    counts = TORSIONS.GetCountFingerprintAsNumPy(mol)
    if has_ring_of_three(mol):
        output = rdFingerprintGenerator.AdditionalOutput()
        output.AllocateBitPaths()
        TORSIONS.GetCountFingerprint(mol, additionalOutput=output)
        for place, paths in output.GetBitPaths().items():
            counts[place] -= sum(path[0] == path[-1] for path in paths)
    return counts


def reduced_graph(mol: Chem.Mol, features: list[int]) -> np.ndarray:
    """The ErG fingerprint, in tenths: uint32 [315]. Source: Stiefl et al., J. Chem. Inf. Model. 2006."""
    from rdkit.Chem.rdReducedGraphs import GetErGFingerprint  # its import takes a while

    mol = Chem.Mol(mol)
    mol.ClearComputedProps(includeRings=False)
    return np.rint(PARTS_OF_ONE * np.asarray(GetErGFingerprint(mol))).astype(np.uint32)


def counts_of(mol: Chem.Mol, kinds: Kinds) -> tuple[np.ndarray, np.ndarray]:
    """Positions int32 [Z] and counts uint16 [Z] of the non-zero entries; raises InputError if RDKit fails."""
    row = np.zeros((len(kinds), SIZE), np.uint32)
    with one_molecule():
        features = list(GetFeatureInvariants(mol))
        for part, kind in zip(row, kinds, strict=True):
            found = counters()[kind](mol, features)
            part[: len(found)] = found
    places = np.flatnonzero(row)
    return places.astype(np.int32), row.ravel()[places].clip(max=LARGEST_COUNT).astype(np.uint16)


def count_fingerprints(molecules: Sequence[Molecule], kinds: Kinds = KINDS) -> csr_array:
    """The fingerprints of molecules: uint16 [M, K x SIZE]; raises InputError for one that cannot be read."""
    rows = [counts_of(molecule_of(molecule), kinds) for molecule in molecules]
    places = np.concatenate([np.empty(0, np.int32), *(places for places, _ in rows)])
    counts = np.concatenate([np.empty(0, np.uint16), *(counts for _, counts in rows)])
    starts = np.cumsum([0, *(len(places) for places, _ in rows)], dtype=np.int32)
    return csr_array((counts, places, starts), shape=(len(rows), len(kinds) * SIZE))
