"""N training molecules of a model, and how M others compare with them; embeddings have the width D."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import torch
from rdkit import Chem

from graphormer_sepnorm.chem.features import Molecules
from graphormer_sepnorm.chem.fingerprints import SIZE, morgan_bits, packed
from graphormer_sepnorm.chem.properties import molecule_key, parent_key
from graphormer_sepnorm.chem.smiles import Molecule, molecule_of, one_molecule, read_smiles
from graphormer_sepnorm.chem.standardize import is_doubtful
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.traits import RARITIES, Traits, attempt, strange, symbol_of, traits_of, traits_of_all
from graphormer_sepnorm.runs.arrays import Stored
from graphormer_sepnorm.system.workers import in_chunks

if TYPE_CHECKING:
    from scipy.sparse import csr_array

OTHER_CONDITIONS = "The nearest training molecule is this molecule under other conditions."
MISSING_CONDITION = re.compile(r"The condition .*? is missing and read as .*?\.(?=\s|$)")
ALIKE = 0.99  # similarity of another molecule with the same fingerprint, which has no counts
MAX_REFERENCES = 100_000
ROWS_AT_ONCE = 100  # against all training molecules: 80 MB of distances
UNUSUAL = 0.01  # share of training molecules whose nearest other one is less similar than ``usual_similarity``
MOST_COMPARED, LEAST_COMPARED, MOST_PAIRS = 1000, 100, 2_000_000  # training molecules, and pairs of them, for this
ATOM = re.compile(r"\[\d*(?!H[+-]?\])([A-Za-z][a-z]?)|(Cl|Br|[BCNOPSFIbcnops])")  # of a SMILES


@dataclass(frozen=True)
class Domain:
    """The training molecules, as others are compared with them; above ``MAX_REFERENCES``, so many evenly chosen ones.

    Embeddings are [0, 0] where distances are not wanted; the text is empty in files written before there was any.
    """

    bits: Annotated[np.ndarray, Stored(np.uint8, 2)]  # [N, SIZE / 8], Morgan fingerprints
    kinds: Annotated[np.ndarray, Stored(np.int64, 2)]  # [P, 2], atomic number and charge of kinds of atoms, of all
    atoms: Annotated[np.ndarray, Stored(np.int64, 1)]  # the least and the largest number of heavy atoms, of all
    charges: Annotated[np.ndarray, Stored(np.int64, 1)]  # the lowest and the highest of a molecule, of all
    embeddings: Annotated[np.ndarray, Stored(np.float32, 2)]  # [N, D]
    text: Annotated[np.ndarray, Stored(np.uint8, 1)]  # N SMILES, one per line

    @cached_property
    def smiles(self) -> list[str]:
        """The training molecules of ``bits``; N times "" where they were not kept."""
        return bytes(self.text).decode(errors="replace").split("\n") if len(self.text) else [""] * len(self.bits)

    @cached_property
    def rows_by_atoms(self) -> dict[tuple, list[int]]:
        """The numbers of the training molecules by their ``heavy_atoms``."""
        rows = defaultdict[tuple, list[int]](list)
        for row, text in enumerate(self.smiles):
            rows[heavy_atoms(text)].append(row)
        return rows

    def of_rows(self, rows: np.ndarray) -> "Domain":
        """That of some of the training molecules; the charges, also of their atoms, stay those of all."""
        embeddings = self.embeddings[rows] if len(self.embeddings) else self.embeddings
        some = replace(self, bits=self.bits[rows], embeddings=embeddings)
        if not len(self.text):
            return some
        smiles = [self.smiles[row] for row in rows.tolist()]
        heavy = list(map(heavy_atoms, smiles))
        elements = {"H"}.union(symbol for each in set(heavy) for symbol, _ in each)
        kinds = self.kinds[[symbol_of(number) in elements for number, _ in self.kinds.tolist()]]
        atoms = np.quantile(list(map(num_atoms, heavy)), (0, 1)).astype(int)
        return replace(some, kinds=kinds, atoms=atoms, text=as_bytes(smiles, "replace"))

    def knows(self, mol: Chem.Mol) -> bool:
        """Whether a molecule is a training molecule, by its ``molecule_key``; False where these were not kept."""
        rows, key = self.rows_by_atoms.get(heavy_atoms(Chem.MolToSmiles(mol)), []), molecule_key(mol)
        return any(self.smiles[row] and molecule_key(self.smiles[row]) == key for row in rows)

    @cached_property
    def known_kinds(self) -> frozenset[tuple[int, int]]:
        return frozenset(map(tuple, self.kinds.tolist()))

    @cached_property
    def knows_mixtures(self) -> bool:
        """Whether a training molecule has several parts, as a salt has; True where the molecules were not kept."""
        return not len(self.text) or any("." in text.split(None, 1)[0] for text in self.smiles if text)

    @cached_property
    def known_rarities(self) -> frozenset[str]:
        """Those of ``RARITIES`` that a training molecule has; all of them where the molecules were not kept."""
        if not len(self.text):
            return frozenset(RARITIES)
        return frozenset(
            words
            for words, (has, pattern) in RARITIES.items()
            if any(attempt(has, text) for text in self.smiles if pattern.search(text))
        )

    @cached_property
    def sparse_bits(self) -> "csr_array":
        """The fingerprints of the training molecules, int16 [N, SIZE], in a form that is quick to multiply."""
        from scipy.sparse import csr_array  # its import takes a while, which predictions need not spend

        ones = np.flatnonzero(np.unpackbits(self.bits).view(bool))
        starts = np.searchsorted(ones, SIZE * np.arange(len(self.bits) + 1))
        return csr_array((np.ones(len(ones), np.int16), ones % SIZE, starts), shape=(len(self.bits), SIZE))

    def similarities(self, bits: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """For each of M fingerprints, uint8 [SIZE / 8], the Tanimoto similarities to the training molecules: [N]."""
        sizes = np.diff(self.sparse_bits.indptr)
        for some in in_chunks(bits, ROWS_AT_ONCE):
            wanted = np.unpackbits(np.stack(some), axis=1).astype(np.int16)
            shared = np.ascontiguousarray((self.sparse_bits @ wanted.T).T)
            for common, size in zip(shared, wanted.sum(axis=1, dtype=np.int32), strict=True):
                yield common / np.maximum(sizes + size - common, 1)  # 0 if there is no bit at all

    @cached_property
    def usual_similarity(self) -> float:
        """The Tanimoto similarity to the nearest other one that all but ``UNUSUAL`` of the training molecules reach.

        Molecules with the same fingerprint count as one, because a table may have them in several rows.
        """
        count = len(self.bits)
        chosen = evenly(count, min(MOST_COMPARED, max(LEAST_COMPARED, MOST_PAIRS // count)))
        nearest = [compared[compared < 1].max(initial=0.0) for compared in self.similarities(self.bits[chosen])]
        return float(np.quantile(nearest, UNUSUAL, method="lower"))

    def add_unlike(self, warnings: Sequence[str], similarity: np.ndarray) -> list[str]:
        """M warnings, followed by a sentence where the similarity [M] is below the usual one; NaN is not."""
        usual = self.usual_similarity
        beginning = "No training molecule is similar: the Tanimoto similarity to the nearest one is"
        most = f"for {100 * (1 - UNUSUAL):.0f} % of training molecules it is {usual:.3f} or more."
        return joined(warnings, [f"{beginning} {each:.3f}; {most}" if each < usual else "" for each in similarity])

    def nearest_rows(
        self,
        molecules: Iterable[Molecule],
        matches: Callable[[int, int], bool] | None = None,
        subsets: Sequence[np.ndarray] = (),
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The largest similarity to a training molecule, float64 [M], and its number in ``bits``; NaN, -1: unreadable.

        It is 1 only of the molecule itself, where this is known; ``ALIKE`` of another one with the same fingerprint.
        The last result, [M, S], is the largest similarity to the training molecules of each of S ``subsets``.

        Of equally similar rows, the nearest is the molecule itself, then the first for which ``matches`` is true, which
        says whether a molecule was measured under the conditions of a row, then the one with most alike heavy atoms.
        """
        mols = [attempt(molecule_of, molecule) for molecule in molecules]
        bits = [attempt(lambda mol: packed(morgan_bits(mol)), mol) for mol in mols]
        similarity, rows = np.full(len(mols), np.nan), np.full(len(mols), -1, np.int64)
        members, starts = np.concatenate([*subsets, []]).astype(int), np.cumsum([0, *map(len, subsets)])[:-1]
        within = np.full((len(mols), len(subsets)), np.nan)
        readable = {number: each for number, each in enumerate(bits) if each is not None}
        for number, compared in zip(readable, self.similarities(list(readable.values())), strict=True):
            largest = compared.max()
            alike = np.flatnonzero(compared == largest).tolist()  # several conditions, or stereoisomers
            if len(alike) > 1 and (mol := mols[number]):
                atoms = mol.GetNumHeavyAtoms()
                far = [abs(num_atoms(heavy_atoms(self.smiles[row])) - atoms) for row in alike]
                other = [matches is not None and not matches(number, row) for row in alike]
                alike = [row for *_, row in sorted(zip(other, far, alike, strict=True))]
            if subsets:
                within[number] = np.maximum.reduceat(compared.take(members), starts)
            known = alike if largest == 1 and self.smiles[alike[0]] else []
            same = [row for row in known if is_same_molecule(mols[number], self.smiles[row])]
            rows[number] = [*same, *alike][0]
            similarity[number] = ALIKE if known and not same else largest
        return similarity, rows, within

    def warnings(self, molecules: Iterable[Molecule]) -> list[str]:
        """M texts on what no training molecule has; "" if there is nothing, or if a molecule cannot be read."""
        return self.sentences([attempt(traits_of, molecule) for molecule in molecules])

    def sentences(self, traits: Iterable[Traits | None]) -> list[str]:
        return ["" if each is None else " ".join(strange(each, self)) for each in traits]

    def warnings_on(self, molecules: Molecules) -> list[str]:
        """As ``warnings``, each after the sentence on the parts that standardization removed."""
        warnings = self.sentences(traits_of_all(molecules))
        return joined(molecules.reductions, warnings) if molecules.reductions else warnings

    def distance(self, embeddings: np.ndarray) -> np.ndarray:
        """Euclidean distance of embeddings [M, D] to the nearest training molecule's: float64 [M]; NaN for NaN."""
        if not len(self.embeddings):
            raise InputError("this model has no embeddings of its training molecules, so it has no distances to them")
        distances = np.full(len(embeddings), np.nan)
        readable = ~np.isnan(embeddings).any(axis=1)
        rows, training = (torch.from_numpy(np.asarray(x, np.float64)) for x in (embeddings[readable], self.embeddings))
        nearest = [torch.cdist(some, training).amin(dim=1) for some in rows.split(ROWS_AT_ONCE)]
        distances[readable] = torch.cat(nearest).numpy()
        return distances


def is_in_training(similarity: float | None, nearest: str | None, warning: str = "") -> bool:
    """Whether the nearest training molecule is the molecule itself or a salt of it, and under the same conditions."""
    return similarity == 1 and bool(nearest) and OTHER_CONDITIONS not in warning


def similarity_words(similarity: float, is_same: bool) -> str:
    """A similarity, which says that the molecule is another one where the number looks like the same."""
    is_other = similarity >= ALIKE and not is_same
    return f"{min(similarity, ALIKE):.2f}, another molecule" if is_other else f"{similarity:.2f}"


def is_same_molecule(*molecules: Molecule) -> bool:
    """Whether molecules are the same one or its salts, however they are written; False for one that cannot be read."""
    try:
        mols = list(map(molecule_of, molecules))
        keys = list(map(molecule_key, mols))
        are_salts = not any(map(is_doubtful, mols)) and len(set(map(parent_key, mols, keys))) == 1
        return are_salts or len(set(keys)) == 1
    except InputError:
        return False


@lru_cache(MAX_REFERENCES)
def heavy_atoms(smiles: str) -> tuple[tuple[str, int], ...]:
    """The heavy atoms of a SMILES by element, with their numbers; the same for all its spellings and tautomers."""
    counts = Counter[str]()
    for (bracket, symbol), count in Counter(ATOM.findall(smiles.split(" ")[0])).items():
        counts[(bracket or symbol).title()] += count
    return tuple(sorted(counts.items()))


def num_atoms(heavy: tuple[tuple[str, int], ...]) -> int:
    return sum(count for _, count in heavy)


def joined(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Texts of M molecules, each followed by another one; either may be empty."""
    return [" ".join(filter(None, pair)) for pair in zip(first, second, strict=True)]


def evenly(count: int, most: int) -> np.ndarray:
    """Row numbers at equal distances, the first and the last among them: all ``count`` of them, or ``most``."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


class Look(NamedTuple):
    """A molecule that is learnt from, as it is remembered."""

    bits: np.ndarray  # packed fingerprint
    traits: Traits


def look_at(mol: Chem.Mol) -> Look:
    """Looks at a molecule; raises InputError if RDKit fails on it."""
    with one_molecule():
        return Look(packed(morgan_bits(mol)), traits_of(mol))


def fit_domain(
    smiles: list[str], embeddings: np.ndarray | None = None, looks: Sequence[Look] | np.ndarray | None = None
) -> Domain:
    """Looks at N training molecules with embeddings [N, D]; raises InputError without any, or for an unreadable one."""
    if not smiles:
        raise InputError("there are no training molecules to compare others with")
    if looks is None:
        looks = [look_at(read_smiles(text)) for text in smiles]
    kept = evenly(len(smiles), MAX_REFERENCES)
    kinds = frozenset[tuple[int, int]]().union(*(look.traits.kinds for look in looks))
    sizes = np.array([(look.traits.atoms, look.traits.charge) for look in looks], np.int64)
    atoms, charges = np.stack([sizes.min(axis=0), sizes.max(axis=0)], axis=1)
    lines = [" ".join(smiles[row].split()) for row in kept]
    return Domain(
        np.stack([looks[row].bits for row in kept]),
        np.array(sorted(kinds), np.int64),
        atoms,
        charges,
        np.empty((0, 0), np.float32) if embeddings is None else np.asarray(embeddings[kept], np.float32),
        as_bytes(lines, "surrogateescape"),
    )


def as_bytes(lines: Iterable[str], errors: str) -> np.ndarray:
    return np.frombuffer("\n".join(lines).encode(errors=errors), np.uint8)


def missing_conditions(warnings: Iterable[str], errors: Iterable[str]) -> Counter[str]:
    """The sentences on missing conditions in the warnings of rows without an error, each with its number of rows."""
    pairs = zip(warnings, errors, strict=True)
    return Counter(found for text, error in pairs if not error for found in set(MISSING_CONDITION.findall(text)))
