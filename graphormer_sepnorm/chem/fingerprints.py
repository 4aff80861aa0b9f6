"""Morgan and other fingerprints from RDKit, as bits and as counts; picks by them.

A kind of counts has a version, as in "torsions 2", and never changes, because files have counts of it: a mended one is
a new one. Axis letters: M molecules, Z non-zero entries, K kinds.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator
from rdkit.Chem.rdMolDescriptors import GetFeatureInvariants
from rdkit.DataStructs import BitVectToFPSText, ExplicitBitVect

from graphormer_sepnorm.chem.smiles import Molecule, molecule_of, one_molecule
from graphormer_sepnorm.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SIZE, RADIUS = 2048, 2
BITS = ("morgan-bits 1",)  # versions of ``morgan_bits``, as kinds of counts; files without a name have the first
ENVIRONMENTS = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=SIZE)
LARGEST_COUNT = np.iinfo(np.uint16).max
Kinds = tuple[str, ...]
MORGAN, ERG = "morgan 1", "erg 1"
PAIRS = ("atom-pairs 1", "chiral-atom-pairs 1", "feature-atom-pairs 1")
KINDS: Kinds = (MORGAN, "feature-morgan 1", *PAIRS, "torsions 2", ERG)  # of new models
UNRECORDED: Kinds = (MORGAN, "feature-morgan 1", *PAIRS, "torsions 1", ERG)  # of files that do not name theirs
TORSIONS = rdFingerprintGenerator.GetTopologicalTorsionGenerator(fpSize=SIZE)
PARTS_OF_ONE = 10  # ErG counts are stored in tenths


def morgan_counts(mol: Chem.Mol) -> np.ndarray:
    """Count of each environment: uint32 [SIZE]; raises InputError if RDKit fails."""
    with one_molecule():
        return ENVIRONMENTS.GetCountFingerprintAsNumPy(mol)


def morgan_bits(mol: Chem.Mol) -> ExplicitBitVect:
    """Presence of each environment; raises InputError if RDKit fails."""
    with one_molecule():
        return ENVIRONMENTS.GetFingerprint(mol)


def packed(bits: ExplicitBitVect) -> np.ndarray:
    """A fingerprint as bytes: uint8 [SIZE / 8]."""
    return np.frombuffer(bytes.fromhex(BitVectToFPSText(bits)), np.uint8)


def pick_diverse(mols: Sequence[Chem.Mol], count: int, distance: float) -> list[int]:
    """The numbers to pick of molecules in order of preference: by sphere exclusion, then the first others."""
    from rdkit.SimDivFilters.rdSimDivPickers import LeaderPicker  # its import takes a while

    bits = [morgan_bits(mol) for mol in mols]
    count = min(count, len(bits))
    if not distance or not count:
        return list(range(count))
    picked = list(LeaderPicker().LazyBitVectorPick(bits, len(bits), distance, count, numThreads=1))
    others = sorted(set(range(len(bits))) - set(picked))
    return [*picked, *others[: count - len(picked)]]


@cache
def counters() -> dict[str, Callable[..., np.ndarray]]:
    """For each kind, a function of a molecule, and of the invariants of its atoms: integers [SIZE] or fewer."""
    pairs = rdFingerprintGenerator.GetAtomPairGenerator(fpSize=SIZE).GetCountFingerprintAsNumPy
    chiral = rdFingerprintGenerator.GetAtomPairGenerator(fpSize=SIZE, includeChirality=True).GetCountFingerprintAsNumPy
    environments = dict.fromkeys((MORGAN, "feature-morgan 1"), ENVIRONMENTS.GetCountFingerprintAsNumPy)
    others = {"torsions 1": torsions, "torsions 2": open_torsions, ERG: reduced_graph}
    return environments | dict(zip(PAIRS, (pairs, chiral, pairs), strict=True)) | others


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


def torsions(mol: Chem.Mol) -> np.ndarray:
    """Topological torsions: uint32 [SIZE]. A ring of three atoms is one, from its first atom in canonical order."""
    if 3 in map(len, mol.GetRingInfo().AtomRings()):
        mol = Chem.RenumberAtoms(mol, np.argsort(list(Chem.CanonicalRankAtoms(mol))).tolist())
    return TORSIONS.GetCountFingerprintAsNumPy(mol)


def open_torsions(mol: Chem.Mol) -> np.ndarray:
    """Topological torsions of four different atoms: uint32 [SIZE]."""
    counts = TORSIONS.GetCountFingerprintAsNumPy(mol)
    if 3 in map(len, mol.GetRingInfo().AtomRings()):
        output = rdFingerprintGenerator.AdditionalOutput()
        output.AllocateBitPaths()
        TORSIONS.GetCountFingerprint(mol, additionalOutput=output)
        for place, paths in output.GetBitPaths().items():
            counts[place] -= sum(path[0] == path[-1] for path in paths)
    return counts


def reduced_graph(mol: Chem.Mol) -> np.ndarray:
    """The ErG fingerprint, in tenths: uint32 [315]. Source: Stiefl et al., J. Chem. Inf. Model. 2006."""
    from rdkit.Chem.rdReducedGraphs import GetErGFingerprint  # its import takes a while

    mol = Chem.Mol(mol)
    mol.ClearComputedProps(includeRings=False)
    return np.rint(PARTS_OF_ONE * np.asarray(GetErGFingerprint(mol))).astype(np.uint32)


def counts_of(mol: Chem.Mol, kinds: Kinds) -> tuple[np.ndarray, np.ndarray]:
    """Positions int32 [Z] and counts uint16 [Z] of the non-zero entries; raises InputError if RDKit fails."""
    row = np.zeros((len(kinds), SIZE), np.uint32)
    with one_molecule():
        features = {"customAtomInvariants": list(GetFeatureInvariants(mol))}
        for part, kind in zip(row, kinds, strict=True):
            counts = counters()[kind](mol, **(features if kind.startswith("feature-") else {}))
            part[: len(counts)] = counts
    places = np.flatnonzero(row)
    return places.astype(np.int32), row.ravel()[places].clip(max=LARGEST_COUNT).astype(np.uint16)


def count_fingerprints(molecules: Sequence[Molecule], kinds: Kinds = KINDS) -> "csr_array":
    """The fingerprints of molecules: uint16 [M, K x SIZE]; raises InputError for one that cannot be read."""
    from scipy.sparse import csr_array  # its import takes a while

    rows = [counts_of(molecule_of(molecule), kinds) for molecule in molecules]
    places = np.concatenate([np.empty(0, np.int32), *(places for places, _ in rows)])
    counts = np.concatenate([np.empty(0, np.uint16), *(counts for _, counts in rows)])
    starts = np.cumsum([0, *(len(places) for places, _ in rows)], dtype=np.int32)
    return csr_array((counts, places, starts), shape=(len(rows), len(kinds) * SIZE))
