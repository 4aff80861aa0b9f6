"""Informative pairs of training molecules: activity cliffs and matched molecular pairs. Axis letters: M molecules."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdMMPA
from rdkit.DataStructs import BulkTanimotoSimilarity

from graphormer_sepnorm.chem.fingerprints import ENVIRONMENTS
from graphormer_sepnorm.chem.smiles import one_molecule
from graphormer_sepnorm.errors import InputError

LEAST_SIMILARITY = 0.6  # smallest similarity of the two molecules of a cliff
LEAST_DIFFERENCE = 0.5  # smallest difference of their labels, in standard deviations of all labels
LARGEST_CHANGE = 10  # most heavy atoms in the replaced part, which is also smaller than the rest
LEAST_PAIRS = 3  # fewest pairs from which the effect of a change is estimated
PRIOR_FREEDOM = 4  # weight of the pooled variance of all changes in that of one change
LEAST_DISTANCE = 0.01  # distance of two molecules with equal fingerprints


@dataclass(frozen=True)
class Cliff:
    lower: int  # indices of the molecules with the lower and the higher label
    higher: int
    similarity: float  # Tanimoto similarity of Morgan counts
    difference: float  # difference of the labels, above 0

    @property
    def steepness(self) -> float:
        """Difference over distance, the structure-activity landscape index (Guha and Van Drie, 2008)."""
        return self.difference / max(1 - self.similarity, LEAST_DISTANCE)


@dataclass(frozen=True)
class Change:
    """The replacement of a part by another one at the same position, in several pairs of molecules."""

    before: str  # SMILES of the parts; ``[*:1]`` marks the attachment point
    after: str
    pairs: tuple[tuple[int, int], ...]  # indices of the molecules with the first and the second part
    mean: float  # mean and standard deviation of the second label minus the first
    deviation: float
    rising: int = 0  # further pairs with a bound: the second label is certainly larger, smaller, or neither
    falling: int = 0
    undecided: int = 0


def activity_cliffs(
    mols: Sequence[Chem.Mol],
    y: np.ndarray,
    conditions: Sequence[Hashable] = (),
    keys: Sequence[str] = (),
    bounds: np.ndarray | None = None,
) -> list[Cliff]:
    """Pairs of similar molecules of the same conditions whose labels y [M] differ clearly, steepest first."""
    low, high = ends_of(y, bounds)
    labelled = np.flatnonzero(np.isfinite(low) | np.isfinite(high)).tolist()
    counts = [ENVIRONMENTS.GetCountFingerprint(mols[place]) for place in labelled]  # bits do not tell homologues apart
    exact = y[~np.isnan(y)]
    least, cliffs = LEAST_DIFFERENCE * np.std(exact) if len(exact) else 0.0, []
    groups = np.unique([repr(each) for each in conditions or [()] * len(mols)], return_inverse=True)[1]
    for number, place in enumerate(labelled):
        similarities = np.array(BulkTanimotoSimilarity(counts[number], counts[:number]))
        similarities[groups[labelled[:number]] != groups[place]] = 0
        for other in np.flatnonzero(similarities >= LEAST_SIMILARITY).tolist():
            lower, higher = sorted((place, labelled[other]), key=lambda each: low[each] + high[each])
            difference = low[higher] - high[lower]
            if difference >= least and difference > 0:
                cliffs.append(Cliff(lower, higher, float(similarities[other]), float(difference)))
    steepest = sorted(cliffs, key=lambda cliff: -cliff.steepness)
    return [steepest[first] for first in one_of_each([(cliff.lower, cliff.higher) for cliff in steepest], keys)]


def ends_of(y: np.ndarray, bounds: np.ndarray | None) -> np.ndarray:
    return np.where(np.isnan(y), [[-np.inf], [np.inf]] if bounds is None else bounds.T, y)


def one_of_each(pairs: Sequence[tuple[int, int]], keys: Sequence[str]) -> list[int]:
    """The places of the first pair of every two molecules; all places if there are no ``keys``."""
    first: dict[Hashable, int] = {}
    for place, (one, other) in enumerate(pairs):
        first.setdefault(frozenset((keys[one], keys[other])) if keys else place, place)
    return list(first.values())


def matched_changes(
    parts: Sequence[list[tuple[str, str]]],
    y: np.ndarray,
    conditions: Sequence[Hashable] = (),
    keys: Sequence[str] = (),
    bounds: np.ndarray | None = None,
) -> list[Change]:
    """Changes of one part in ``LEAST_PAIRS`` pairs or more (Hussain and Rea, 2010), by ``surest_first``."""
    low, high = ends_of(y, bounds)
    exact, labelled = ~np.isnan(y), np.flatnonzero(np.isfinite(low) | np.isfinite(high))
    by_rest: dict[tuple[str, Hashable], dict[str, int]] = defaultdict(dict)
    for place in sorted(labelled.tolist(), key=lambda place: not exact[place]):  # exact labels come first
        for rest, part in parts[place]:
            by_rest[rest, conditions[place] if conditions else ()].setdefault(part, place)
    pairs: dict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
    for molecule_with in by_rest.values():
        for before, after in combinations(sorted(molecule_with), 2):
            pairs[before, after].add((molecule_with[before], molecule_with[after]))
    changes = []
    for both, each in pairs.items():
        if len(each) < LEAST_PAIRS:
            continue
        ordered = sorted(each, key=lambda pair: (not exact[list(pair)].all(), pair))
        different = np.array([ordered[place] for place in one_of_each(ordered, keys)])
        measured = exact[different].all(axis=1)
        if measured.sum() >= LEAST_PAIRS:
            first, second = different[~measured].T
            rising, falling = int((low[second] > high[first]).sum()), int((high[second] < low[first]).sum())
            undecided, compared = len(first) - rising - falling, different[measured]
            moved = y[compared[:, 1]] - y[compared[:, 0]]
            if moved.mean() < 0:  # told in the direction that increases the label
                both, compared, moved, rising, falling = both[::-1], compared[:, ::-1], -moved, falling, rising
            of_pairs, mean = tuple((one, two) for one, two in compared.tolist()), float(moved.mean())
            changes.append(Change(*both, of_pairs, mean, float(moved.std(ddof=1)), rising, falling, undecided))
    return surest_first(with_smallest_parts(changes))


def surest_first(changes: list[Change]) -> list[Change]:
    """The changes by their moderated t values (Smyth 2004; his degrees of freedom are fitted, ours are not)."""
    freedom = np.array([len(change.pairs) - 1 for change in changes], float)
    mean, deviation = np.array([(change.mean, change.deviation) for change in changes]).reshape(-1, 2).T
    squares = freedom * deviation**2
    usual = squares.sum() / max(freedom.sum(), 1)
    variance = (PRIOR_FREEDOM * usual + squares) / (PRIOR_FREEDOM + freedom)
    with np.errstate(divide="ignore", invalid="ignore"):  # no change has a deviation
        t = np.where(mean == 0, 0, mean * np.sqrt((freedom + 1) / variance))
    keys = {change: (-each, -change.mean, change.before, change.after) for each, change in zip(t, changes, strict=True)}
    return sorted(changes, key=keys.__getitem__)


def with_smallest_parts(changes: list[Change]) -> list[Change]:
    """One change for each set of pairs: the one whose parts have the fewest heavy atoms."""
    kept: dict[frozenset[frozenset[int]], Change] = {}
    sizes = {change: num_heavy(change.before) + num_heavy(change.after) for change in changes}
    for change in sorted(changes, key=lambda change: (sizes[change], change.before, change.after)):
        kept.setdefault(frozenset(map(frozenset, change.pairs)), change)
    return list(kept.values())


def cuts_of(mol: Chem.Mol) -> list[tuple[str, str]]:
    """Pairs of SMILES: the rest of a molecule without one part, and that part; empty if RDKit fails."""
    try:
        with one_molecule():
            cuts = [chains.split(".") for _, chains in rdMMPA.FragmentMol(mol, maxCuts=1, resultsAsMols=False)]
    except InputError:
        return []
    ordered = (sorted(cut, key=num_heavy) for cut in cuts if len(cut) == 2)
    sizes = ((part, rest, num_heavy(part), num_heavy(rest)) for part, rest in ordered)
    return [(rest, part) for part, rest, small, large in sizes if small <= LARGEST_CHANGE and small < large]


@lru_cache(maxsize=10_000)
def num_heavy(smiles: str) -> int:
    return Chem.MolFromSmiles(smiles, sanitize=False).GetNumHeavyAtoms()
