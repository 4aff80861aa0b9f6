"""Structures of molecules, and splits of rows by them: a scaffold, cluster or family of M rows stays together.

Names of groups come from molecules, never from places in the file, so that the order of rows does not matter.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from operator import attrgetter
from typing import TypeVar

import numpy as np
from rdkit import Chem
from rdkit.DataStructs import BulkTanimotoSimilarity

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.chem.fingerprints import morgan_bits
from graphormer_sepnorm.chem.properties import family_of, molecule_key, murcko_scaffold, parent_key
from graphormer_sepnorm.chem.smiles import guess, one_molecule, read_smiles
from graphormer_sepnorm.chem.standardize import is_doubtful, loses_stereo, num_stereo, parent_part
from graphormer_sepnorm.dataset import SPLITS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.workers import Smiles, in_chunks, map_chunks
from graphormer_sepnorm.tables.label_text import as_float

SLIGHTLY = 0.1  # share of rows with training molecules that spoils a test score
LARGE_SHARE = 0.05
CLUSTER_DISTANCE = 0.6
MAX_CLUSTERED = 7_500  # the distances of this many molecules need 2 GB
VALIDATION_SHARE = 0.1
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class MoleculeStructure:
    smiles: str  # as it is read
    scaffold: str
    key: str
    family: str = ""  # by default that of the key
    parts: int = 1  # not bonded to each other
    is_doubtful: bool = False
    has_stereo: bool = False  # of its parent
    loses_stereo: bool = False  # by its preparation
    guessed: bool = False  # an InChI that leaves open where a hydrogen or charge is


class Structures(list[MoleculeStructure]):
    """The structures of M rows."""

    @property
    def smiles(self) -> list[str]:
        return [each.smiles for each in self]

    @property
    def keys(self) -> list[str]:
        return [each.key for each in self]

    @property
    def families(self) -> list[str]:
        """Equal for rows that stay together: of one molecule, its stereoisomers, salts and protonated forms."""
        return [each.family or each.key for each in self]

    def take(self, places: Sequence[int]) -> "Structures":
        return Structures(self[place] for place in places)


KNOWN = "tested_in_training", "tested_related_to_training"  # names of these numbers in results


def known_molecules(new: Structures, learnt: Structures) -> dict[str, int]:
    """The numbers of asked rows whose molecule was learnt, and of others of whose family a molecule was learnt."""
    keys, families = set(learnt.keys), set(learnt.families)
    same = sum(key in keys for key in new.keys)
    alike = sum(family in families for family in new.families)
    return dict(zip(KNOWN, (same, alike - same), strict=True))


def known_words(result: dict) -> str:
    """How far the ``known_molecules`` of a result on ``n`` rows spoil its score; "" if there are none."""
    same, alike, rows = (result.get(name, 0) for name in (*KNOWN, "n"))
    if not same + alike:
        return ""
    what = "a training molecule" if not alike else "a training molecule, or a salt, stereoisomer or charged form of one"
    verdict = "the score is slightly too good" if same + alike < SLIGHTLY * rows else "this is no test score"
    return f"{same + alike:,} of {rows:,} rows {'has' if same + alike == 1 else 'have'} {what}: {verdict}"


def structures_of(featurizer: str, smiles: Sequence[str]) -> Structures:
    chunks = map_chunks(partial(read_structures, featurizer), in_chunks(smiles), list)
    return Structures(each for _, chunk in chunks for each in chunk if isinstance(each, MoleculeStructure))


def read_structures(featurizer: str, smiles: Smiles) -> list[MoleculeStructure | str]:
    return [read_structure(featurizer, text) for text in smiles]


@lru_cache(50_000)  # as the page reads a table once more for each choice of its columns
def read_structure(featurizer: str, text: str) -> MoleculeStructure | str:
    try:
        read, mol = FEATURIZERS[featurizer].read(text)
        key, parts = molecule_key(mol), len(Chem.GetMolFrags(mol))
        as_written = mol if read == text else read_smiles(text)
        marked, flattened = num_stereo(parent_part(mol)) > 0, loses_stereo(as_written, mol)
        scaffold, family = murcko_scaffold(mol), family_of(parent_key(mol, key))
        said = (is_doubtful(as_written), marked, flattened, bool(guess(text)))
        structure = MoleculeStructure(read, scaffold, key, family, parts, *said)
        with one_molecule(read):
            FEATURIZERS[featurizer].features(mol, read)
        return structure
    except InputError as error:
        return str(error)


@dataclass(frozen=True)
class Sizes:
    train: float = 0.8
    val: float = 0.1
    test: float = 0.1

    def counts(self, num_rows: int) -> dict[str, int]:
        """The shares as whole numbers of rows; what rounding leaves over goes to the last split that has a share."""
        train = round(self.train * num_rows)
        val = min(round(self.val * num_rows), num_rows - train) if self.test else num_rows - train
        return {"train": train, "val": val, "test": num_rows - train - val}


def read_sizes(text: str) -> Sizes:
    """Sizes such as ``80:10:10`` or ``0.7,0.15,0.15``, of training, validation and test."""
    try:
        parts = [as_float(part) for part in text.replace(",", ":").split(":")]
    except ValueError:
        parts = []
    total = math.fsum(parts)
    if len(parts) != 3 or not min(parts) > 0 or not any(math.isclose(total, whole) for whole in (1, 100)):
        raise InputError(f"the split sizes are {text!r}: give three that add up to 100, such as 80:10:10")
    return Sizes(*(part / total for part in parts))


@dataclass(frozen=True)
class Splitter:
    """A way to split a table: the name of each row's group, never torn, and the split of each by these names."""

    groups: Callable[[Structures], list[str]]
    assign: Callable[[list[str], np.ndarray | None, Sizes, int], list[str]]

    def __call__(self, structures: Structures, y: np.ndarray | None, sizes: Sizes, seed: int) -> list[str]:
        """The split of each row; with groups of at most G rows, it is less than 2 G too small and G too large."""
        return self.assign(self.groups(structures), y, sizes, seed) if structures else []


def rows_by_key(keys: Iterable[Key]) -> dict[Key, list[int]]:
    """The numbers from 0 of the rows with each key, keys in the order of their first rows."""
    rows: dict[Key, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    return rows


def by_scaffold(structures: Structures) -> list[str]:
    """Rows of one scaffold, and with them all rows of their families: tautomers and salts may have two scaffolds."""
    return merge_groups([each.scaffold for each in structures], structures.families)


def by_cluster(structures: Structures) -> list[str]:
    """Rows of one Butina cluster of Morgan fingerprints, Tanimoto distance ``CLUSTER_DISTANCE`` around its centre.

    Source: Butina, J. Chem. Inf. Comput. Sci. 1999, 39, 747.
    """
    from rdkit.ML.Cluster import Butina

    spelling = dict(sorted(((each.key, each.smiles) for each in structures), reverse=True))  # the least of each
    keys = sorted(spelling)
    if len(keys) > MAX_CLUSTERED:
        raise InputError(f"at most {MAX_CLUSTERED:,} molecules can be clustered, not {len(keys):,}: split by scaffold")
    bits = [morgan_bits(read_smiles(spelling[key])) for key in keys]
    similar = [np.array(BulkTanimotoSimilarity(bits[row], bits[:row])) for row in range(len(bits))]
    clusters = Butina.ClusterData(1 - np.concatenate(similar), len(bits), CLUSTER_DISTANCE, isDistData=True)
    centre = {keys[member]: keys[cluster[0]] for cluster in clusters for member in cluster}
    return merge_groups([centre[key] for key in structures.keys], structures.families)


def merge_groups(first: list[str], second: list[str]) -> list[str]:
    """The finest grouping that keeps both groupings together; names are the smallest of each group in ``first``."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components  # a fifth of a second, which no prediction needs

    names, ours = np.unique(first, return_inverse=True)
    others, theirs = np.unique(second, return_inverse=True)
    size = len(names) + len(others)
    links = coo_array((np.ones(len(first), bool), (ours, len(names) + theirs)), shape=(size, size))
    _, component = connected_components(links, directed=False)
    _, least = np.unique(component[: len(names)], return_index=True)  # names are sorted
    return names[least[component[ours]]].tolist()


def balanced(groups: list[str], y: np.ndarray | None, sizes: Sizes, seed: int) -> list[str]:
    """Large groups, then others, in an order drawn by the seed, each to the first split with room, or most room."""
    room, names = sizes.counts(len(groups)), np.empty(len(groups), object)
    for rows in sorted(shuffled_rows(groups, seed), key=lambda rows: len(rows) <= LARGE_SHARE * len(groups)):
        fitting = (split for split in SPLITS if room[split] >= len(rows))
        split = next(fitting, max(SPLITS, key=lambda name: room[name]))
        room[split] -= len(rows)
        names[rows] = split
    return with_each_class(names, groups, y, [split for split in SPLITS if asdict(sizes)[split]]).tolist()


def largest_first(groups: list[str], y: np.ndarray | None, sizes: Sizes, seed: int) -> list[str]:
    """As DeepChem's ScaffoldSplitter, so as MoleculeNet (Wu et al., Chem. Sci. 2018): no seed, largest groups first.

    Of groups of one size the one whose first row comes last is taken first.
    """
    train_end, val_end = sizes.train * len(groups), (sizes.train + sizes.val) * len(groups)
    names, in_train, in_val = np.empty(len(groups), object), 0, 0
    for rows in sorted(rows_by_key(groups).values(), key=lambda rows: (len(rows), rows[0]), reverse=True):
        if in_train + len(rows) <= train_end:
            names[rows], in_train = "train", in_train + len(rows)
        elif in_train + in_val + len(rows) <= val_end:
            names[rows], in_val = "val", in_val + len(rows)
        else:
            names[rows] = "test"
    return names.tolist()


def stratified(groups: list[str], y: np.ndarray | None, sizes: Sizes, seed: int) -> list[str]:
    """Groups in an order drawn by the seed, class after class, each to the split that has fallen behind most."""
    strata, shares, behind = classes_of(y, len(groups)), asdict(sizes), dict.fromkeys(SPLITS, 0.0)
    names, seen = np.empty(len(groups), object), 0
    for rows in sorted(shuffled_rows(groups, seed), key=lambda rows: strata[rows].min()):
        seen += len(rows)
        split = max(SPLITS, key=lambda name: shares[name] * seen - behind[name])
        behind[split] += len(rows)
        names[rows] = split
    return with_each_class(names, groups, y, [split for split in SPLITS if shares[split]]).tolist()


def with_each_class(
    parts: np.ndarray, groups: list[str], y: np.ndarray | None, names: Sequence[Hashable], least: int | None = None
) -> np.ndarray:
    """The parts of rows [M], so that a class in at least ``least`` groups is not missing in one of them by chance.

    A part without it gets the smallest such group of the part with most, unless that would lose another class.
    """
    rows_of = rows_by_key(groups)
    masks = [] if y is None else [column == value for column in y.T for value in np.unique(column[column == column])]
    for mask in masks:
        own = sorted({groups[row] for row in np.flatnonzero(mask)}, key=lambda name: (len(rows_of[name]), name))
        empty_parts = [name for name in names if not mask[parts == name].any()]
        for empty in empty_parts if len(own) >= (least or len(names)) else ():
            part_of = {name: parts[rows_of[name][0]] for name in own}
            fullest, count = Counter(part_of.values()).most_common(1)[0]
            for name in own if count > 1 else ():
                rest = parts == fullest
                rest[rows_of[name]] = False
                if part_of[name] == fullest and all(each[rest].any() for each in masks if each[parts == fullest].any()):
                    parts[rows_of[name]] = empty
                    break
    return parts


def shuffled_rows(groups: list[str], seed: int) -> list[list[int]]:
    """The rows of each group, in an order of groups that depends only on their names and the seed."""
    rows_of = rows_by_key(groups)
    names = sorted(rows_of)
    return [rows_of[names[place]] for place in np.random.default_rng(seed).permutation(len(names))]


def classes_of(y: np.ndarray | None, num_rows: int) -> np.ndarray:
    """One number per combination of labels [M], missing ones included; zeros where there are no classes."""
    if y is None:
        return np.zeros(num_rows, np.int64)
    return np.unique(np.nan_to_num(y, nan=-1.0), axis=0, return_inverse=True)[1].reshape(-1)


SPLITTERS = {
    "scaffold": Splitter(by_scaffold, balanced),
    "scaffold-deepchem": Splitter(by_scaffold, largest_first),
    "random": Splitter(attrgetter("families"), stratified),
    "butina": Splitter(by_cluster, balanced),
}


def time_split(times: np.ndarray, keys: list[str], sizes: Sizes) -> list[str]:
    """The earliest rows to training, the latest to test; families, and rows of one time, stay together."""
    first = {key: times[rows].min() for key, rows in rows_by_key(keys).items()}
    _, block, counts = np.unique([first[key] for key in keys], return_inverse=True, return_counts=True)
    ends = np.cumsum(list(sizes.counts(len(keys)).values()))
    middles = np.cumsum(counts) - counts / 2
    split = np.searchsorted(ends, middles)
    return np.array(SPLITS, object)[split[block]].tolist()


def fold_numbers(groups: list[str], y: np.ndarray | None, folds: int, seed: int) -> np.ndarray:
    """The fold of each row, int64 [M], no group torn; classes with fewer rows than folds are not stratified."""
    from sklearn.model_selection import StratifiedGroupKFold  # its import takes seconds

    most = len(set(groups))
    if not 2 <= folds <= most:
        raise InputError(f"{folds} folds cannot be made of {most} groups of molecules: choose from 2 to {most}")
    strata = classes_of(y, len(groups))
    if np.bincount(strata).min() < folds:
        strata = np.zeros_like(strata)
    names, numbers = np.array(groups, object), np.empty(len(groups), np.int64)
    order = np.argsort(names, kind="stable")
    parts = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    for number, (_, rows) in enumerate(parts.split(order, strata[order], names[order])):
        numbers[order[rows]] = number
    return with_each_class(numbers, groups, y, range(folds), least=2)


def fold_splits(
    splitter: Splitter, structures: Structures, y: np.ndarray | None, folds: int, seed: int
) -> list[list[str]]:
    """One split per fold, which is its test; of the others ``VALIDATION_SHARE`` of all rows is for validation."""
    groups, val = splitter.groups(structures), VALIDATION_SHARE * folds / (folds - 1)
    numbers, splits = fold_numbers(groups, y, folds, seed), []
    for fold in range(folds):
        names, rest = np.full(len(groups), "test", object), np.flatnonzero(numbers != fold)
        of_rest = None if y is None else y[rest]
        assigned = splitter.assign([groups[row] for row in rest], of_rest, Sizes(1 - val, val, 0.0), seed)
        names[rest] = ["train" if name == "train" else "val" for name in assigned]
        splits.append(names.tolist())
    return splits


@dataclass(frozen=True)
class Duplicate:
    key: str
    rows: tuple[int, ...]
    conflicts: tuple[int, ...]


def find_duplicates(keys: list[str], low: np.ndarray, high: np.ndarray, tolerance: np.ndarray) -> list[Duplicate]:
    """The molecules in several rows; ends of labels [M, T] are equal for exact ones, which may differ."""
    duplicates = []
    for key, rows in rows_by_key(keys).items():
        if len(rows) > 1:
            conflicts = np.flatnonzero(np.fmax.reduce(low[rows]) - np.fmin.reduce(high[rows]) > tolerance)
            duplicates.append(Duplicate(key, tuple(rows), tuple(conflicts.tolist())))
    return duplicates
