"""How far a prediction can be trusted: intervals, calibrated probabilities, and what the training molecules were like.

All of it is learnt from molecules that the model was not fitted to, or from the training molecules themselves, and
kept as arrays in the run folder.

Axis letters: M molecules, K molecules of calibration, N training molecules, T targets, D width.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from rdkit import Chem
from rdkit.DataStructs import BulkTanimotoSimilarity, ExplicitBitVect

from graphormer_sepnorm.chem.fingerprints import SIZE, morgan_bits, packed, unpacked
from graphormer_sepnorm.chem.smiles import Molecule, molecule_of, one_molecule, read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.training_rows import TrainingRows, read_training_rows
from graphormer_sepnorm.runs.arrays import checked_array, load_arrays, save_arrays

FORMAT = 1
MAX_REFERENCES = 100_000
LARGEST_LOGIT = 13.8  # of a probability of one in a million
ROWS_AT_ONCE = 100  # against all references: 80 MB of distances


@dataclass(frozen=True)
class Intervals:
    """Split-conformal intervals around predictions of numbers.

    An interval at confidence c holds the label of a new molecule with probability c or more, if that molecule is drawn
    as the molecules of calibration were: a promise on average over molecules, and none for molecules unlike them.
    Where several models predict, intervals are the wider the more these disagree.

    Source: Lei et al., "Distribution-free predictive inference for regression", JASA 2018, sections 2.2 and 5.2.  A few
    lines of numpy, because MAPIE and crepes keep their state by pickle alone.

    Attributes:
        scores: float64 [K, T], the absolute errors over their ``unit``, in rising order; NaN at the end where labels
            were missing.
        offset: float64 [T], what is added to the spread of models; 0 where the spread is not used.
    """

    scores: np.ndarray
    offset: np.ndarray

    def half_widths(self, confidence: float, spread: np.ndarray) -> np.ndarray:
        """Half the widths of the intervals: float64 [M, T], NaN where the spread is.

        Args:
            confidence: between 0 and 1.
            spread: [M, T], the standard deviation over the models; 0 for one model.

        Raises:
            InputError: a confidence that so few molecules of calibration cannot give.
        """
        if not 0 < confidence < 1:
            raise InputError(
                f"the confidence of an interval is {confidence:g}: choose one between 0 and 1, such as 0.9"
            )
        counts = np.sum(~np.isnan(self.scores), axis=0)
        ranks = np.ceil(np.round((counts + 1) * confidence, 9)).clip(min=1).astype(int)
        if (ranks > counts).any():
            least = int(counts.min())
            raise InputError(
                f"an interval of confidence {confidence:g} needs more labelled molecules than the {least} that this "
                f"model was calibrated on: choose one of at most {np.floor(1e4 * least / (least + 1)) / 1e4:g}"
            )
        quantile = self.scores[ranks - 1, np.arange(len(counts))]
        return quantile * unit(spread, self.offset)


def spread_of_models(by_model: np.ndarray) -> np.ndarray:
    """The standard deviation over models of what they predict [models, M, T]: float64 [M, T]."""
    return by_model.std(axis=0, dtype=np.float64)


def unit(spread: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """What errors are measured in [M, T]: the spread plus the offset; 1 (NaN for NaN) for a target without offset."""
    return np.where(offset > 0, spread + offset, 1 + 0 * spread)


def fit_intervals(y: np.ndarray, prediction: np.ndarray, spread: np.ndarray, share: float = 1.0) -> Intervals:
    """Calibrates intervals.

    Args:
        y: [K, T] labels of molecules that the model was not fitted to, NaN where missing.
        prediction: [K, T] for them.
        spread: [K, T], the standard deviation that is expected of the error; 0 where nothing is.
        share: of the mean spread; it becomes the offset, so that a small spread by chance does not make an interval of
            nothing.

    Raises:
        InputError: a target without labels.
    """
    y, prediction, spread = (np.asarray(values, np.float64) for values in (y, prediction, spread))
    if np.isnan(y).all(axis=0).any():
        raise InputError("a target has no labels in the calibration split")
    offset = share * spread.mean(axis=0)
    return Intervals(np.sort(np.abs(y - prediction) / unit(spread, offset), axis=0), offset)


def coverage(y: np.ndarray, prediction: np.ndarray, half_widths: np.ndarray) -> np.ndarray:
    """The share of the labels that lie in their interval [T]; NaN for a target without labels; arguments [M, T]."""
    labelled = ~np.isnan(y)
    inside = np.abs(np.subtract(y, prediction, dtype=np.float64)) <= half_widths
    counts = labelled.sum(axis=0)
    return np.where(counts > 0, (inside & labelled).sum(axis=0) / np.maximum(counts, 1), np.nan)


@dataclass(frozen=True)
class Calibration:
    """Probabilities that mean what they say, by Platt's scaling: the logit is stretched and shifted.

    The order of molecules stays as it is, so ROC-AUC does, too.  Isotonic regression, which needs a thousand molecules
    of calibration (Niculescu-Mizil & Caruana, ICML 2005), makes ties.

    Source: Platt, "Probabilistic outputs for support vector machines", 1999, with his targets, which are not quite 0
    and 1.

    Attributes:
        slope, intercept: float64 [T]; 1 and 0 leave a target as it is.
    """

    slope: np.ndarray
    intercept: np.ndarray

    def __call__(self, probability: np.ndarray) -> np.ndarray:
        """Calibrated probabilities [M, T] from the model's."""
        return 1 / (1 + np.exp(-(self.slope * limited_logit(probability) + self.intercept)))


def limited_logit(probability: np.ndarray) -> np.ndarray:
    """The logarithm of p / (1 - p), float64, at most ``LARGEST_LOGIT`` on either side."""
    with np.errstate(divide="ignore"):
        probability = np.asarray(probability, np.float64)
        return (np.log(probability) - np.log1p(-probability)).clip(-LARGEST_LOGIT, LARGEST_LOGIT)


def fit_calibration(y: np.ndarray, probability: np.ndarray) -> Calibration:
    """Calibrates probabilities; a target with labels of one class, or ranked against its labels, stays as it is.

    Args:
        y: [K, T] labels 0 and 1 of molecules that the model was not fitted to, NaN where missing.
        probability: [K, T] of class 1.
    """
    from sklearn.linear_model import LogisticRegression  # its import takes seconds

    slope, intercept = np.ones(y.shape[1]), np.zeros(y.shape[1])
    for target, (column, predicted) in enumerate(zip(y.T, probability.T, strict=True)):
        labelled = ~np.isnan(column)
        positive = column[labelled] == 1
        ones, zeros = positive.sum(), (~positive).sum()
        if not ones or not zeros:
            continue
        share = np.where(positive, (ones + 1) / (ones + 2), 1 / (zeros + 2))
        x = np.tile(limited_logit(predicted[labelled]), 2)[:, None]
        classes = np.repeat([1, 0], len(positive))
        found = LogisticRegression(C=np.inf).fit(x, classes, sample_weight=np.concatenate([share, 1 - share]))
        if found.coef_[0, 0] > 0:
            slope[target], intercept[target] = found.coef_[0, 0], found.intercept_[0]
    return Calibration(slope, intercept)


def calibration_error(y: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """By how much probabilities miss the share of class 1, the mean over molecules in ten bins of probability [T].

    Source: Guo et al., "On calibration of modern neural networks", ICML 2017, there of the more probable class.

    Args:
        y: [M, T] labels 0 and 1, NaN where missing; NaN is given for a target without labels.
        probability: [M, T] of class 1.
    """
    errors = np.full(y.shape[1], np.nan)
    for target, (column, predicted) in enumerate(zip(y.T, probability.T, strict=True)):
        labelled = ~np.isnan(column)
        if labelled.any():
            bins = np.minimum((10 * predicted[labelled]).astype(int), 9)
            excess = np.bincount(bins, np.subtract(predicted, column, dtype=np.float64)[labelled])
            errors[target] = np.abs(excess).sum() / labelled.sum()
    return errors


def brier_score(y: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """The mean squared error of probabilities [T]; arguments as ``calibration_error``."""
    labelled = ~np.isnan(y)
    squares = np.where(labelled, np.subtract(np.nan_to_num(y), probability, dtype=np.float64) ** 2, 0).sum(axis=0)
    return np.where(labelled.any(axis=0), squares / np.maximum(labelled.sum(axis=0), 1), np.nan)


@dataclass(frozen=True)
class Domain:
    """What the training molecules were like.

    Attributes:
        bits: uint8 [N, SIZE / 8], their Morgan fingerprints; of more than ``MAX_REFERENCES``, of so many at equal
            distances.
        kinds: int64 [P, 2], atomic number and charge of the kinds of atoms in them.
        atoms: int64 [2], the least and the largest number of heavy atoms.
        charges: int64 [2], the lowest and the highest charge of a molecule.
        embeddings: float32 [N, D] of the same molecules as ``bits``; [0, 0] where distances are not wanted.
        text: uint8, the SMILES of the same molecules, one per line; empty in files written before there was any.
    """

    bits: np.ndarray
    kinds: np.ndarray
    atoms: np.ndarray
    charges: np.ndarray
    embeddings: np.ndarray
    text: np.ndarray

    @cached_property
    def smiles(self) -> list[str]:
        """The training molecules of ``bits``; N times "" where they were not kept."""
        return bytes(self.text).decode(errors="replace").split("\n") if len(self.text) else [""] * len(self.bits)

    @cached_property
    def knows_mixtures(self) -> bool:
        """Whether a training molecule has several parts, as a salt has; True where the molecules were not kept."""
        return not len(self.text) or ord(".") in self.text

    @cached_property
    def references(self) -> list[ExplicitBitVect]:
        """The fingerprints of the training molecules."""
        return [unpacked(row) for row in self.bits]

    def nearest(self, molecules: Iterable[Molecule]) -> tuple[np.ndarray, list[str]]:
        """The largest Tanimoto similarity to a training molecule, float64 [M], and that molecule, M SMILES.

        NaN and "" for what cannot be read; of equally similar ones the first.
        """
        similarity, rows = self.nearest_rows(molecules)
        return similarity, self.smiles_of(rows)

    def smiles_of(self, rows: np.ndarray) -> list[str]:
        """The training molecules with these numbers in ``bits`` [M]; "" for -1."""
        return ["" if row < 0 else self.smiles[row] for row in rows.tolist()]

    def nearest_rows(self, molecules: Iterable[Molecule]) -> tuple[np.ndarray, np.ndarray]:
        """As ``nearest``, with the number of the training molecule in ``bits``: int64 [M], -1 for none."""
        found = [self.nearest_row(molecule) for molecule in molecules]
        return np.array([similarity for similarity, _ in found]), np.array([row for _, row in found], np.int64)

    def nearest_row(self, molecule: Molecule) -> tuple[float, int]:
        """As ``nearest_rows``, of one molecule."""
        try:
            compared = BulkTanimotoSimilarity(morgan_bits(molecule_of(molecule)), self.references)
        except InputError:
            return np.nan, -1
        best = int(np.argmax(compared))
        return compared[best], best

    def warnings(self, molecules: Iterable[Molecule]) -> list[str]:
        """What no training molecule has, as M texts; "" where there is nothing to warn of, or nothing can be read."""
        found = []
        for molecule in molecules:
            try:
                found.append("; ".join(self.strange(molecule_of(molecule))))
            except InputError:
                found.append("")
        return found

    def strange(self, mol: Chem.Mol) -> list[str]:
        """What no training molecule has: several parts, an element, an element with such a charge, or such a size."""
        kinds, known = atom_kinds(mol), {(int(number), int(charge)) for number, charge in self.kinds}
        found = [f"{chemical_symbol(number)} was never seen" for number in sorted(elements(kinds) - elements(known))]
        found += [
            f"{chemical_symbol(number)} of charge {charge:+d} was never seen"
            for number, charge in sorted(kinds - known)
            if number in elements(known)
        ]
        if not self.knows_mixtures and len(parts := Chem.MolToSmiles(mol).split(".")) > 1:
            found.insert(0, f"parts that are not bonded: {' and '.join(dict.fromkeys(parts))}")
        for value, (least, most), what in (
            (mol.GetNumHeavyAtoms(), self.atoms, "heavy atoms: {}, seen {} to {}"),
            (Chem.GetFormalCharge(mol), self.charges, "charge: {:+d}, seen {:+d} to {:+d}"),
        ):
            if not least <= value <= most:
                found.append(what.format(value, least, most))
        return found

    def distance(self, embeddings: np.ndarray) -> np.ndarray:
        """Euclidean distance of embeddings [M, D] to the nearest training molecule's: float64 [M]; NaN for rows of NaN.

        Raises:
            InputError: the embeddings of the training molecules were not kept.
        """
        if not len(self.embeddings):
            raise InputError("this model has no embeddings of its training molecules, so it has no distances to them")
        distances = np.full(len(embeddings), np.nan)
        readable = ~np.isnan(embeddings).any(axis=1)
        rows, known = (torch.from_numpy(np.asarray(x, np.float64)) for x in (embeddings[readable], self.embeddings))
        nearest = [torch.cdist(some, known).amin(dim=1) for some in rows.split(ROWS_AT_ONCE)]
        distances[readable] = torch.cat(nearest).numpy()
        return distances


def atom_kinds(mol: Chem.Mol) -> set[tuple[int, int]]:
    """Atomic number and charge of the atoms."""
    return {(atom.GetAtomicNum(), atom.GetFormalCharge()) for atom in mol.GetAtoms()}


def elements(kinds: set[tuple[int, int]]) -> set[int]:
    return {number for number, _ in kinds}


def chemical_symbol(number: int) -> str:
    return Chem.GetPeriodicTable().GetElementSymbol(number)


def evenly(count: int, most: int) -> np.ndarray:
    """Row numbers at equal distances, the first and the last among them: all ``count`` of them, or ``most``."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


class Look(NamedTuple):
    """A molecule that is learnt from, as it is remembered: packed fingerprint, ``atom_kinds``, heavy atoms, charge."""

    bits: np.ndarray
    kinds: frozenset[tuple[int, int]]
    atoms: int
    charge: int


def look_at(mol: Chem.Mol) -> Look:
    """Looks at a molecule; raises InputError if RDKit fails on it."""
    with one_molecule():
        bits = packed(morgan_bits(mol))
        return Look(bits, frozenset(atom_kinds(mol)), mol.GetNumHeavyAtoms(), Chem.GetFormalCharge(mol))


def fit_domain(
    smiles: list[str], embeddings: np.ndarray | None = None, looks: Sequence[Look] | np.ndarray | None = None
) -> Domain:
    """Looks at the training molecules.

    Args:
        smiles: N of them, all readable.
        embeddings: [N, D] of them, for distances.
        looks: N of them, if they are known.

    Raises:
        InputError: no molecules, or one that cannot be read.
    """
    if not smiles:
        raise InputError("there are no training molecules to compare others with")
    if looks is None:
        looks = [look_at(read_smiles(text)) for text in smiles]
    kept = evenly(len(smiles), MAX_REFERENCES)
    kinds = frozenset[tuple[int, int]]().union(*(look.kinds for look in looks))
    atoms, charges = [look.atoms for look in looks], [look.charge for look in looks]
    return Domain(
        np.stack([looks[row].bits for row in kept]),
        np.array(sorted(kinds), np.int64),
        np.array([min(atoms), max(atoms)], np.int64),
        np.array([min(charges), max(charges)], np.int64),
        np.empty((0, 0), np.float32) if embeddings is None else np.asarray(embeddings[kept], np.float32),
        np.frombuffer(
            "\n".join(" ".join(smiles[row].split()) for row in kept).encode(errors="surrogateescape"), np.uint8
        ),
    )


@dataclass(frozen=True)
class Trust:
    """What is kept beside a model: the domain, and intervals of a regression or the calibration of a classification.

    Attributes:
        rows: of the training molecules; None in files written before they were kept.
    """

    domain: Domain
    intervals: Intervals | None = None
    calibration: Calibration | None = None
    rows: TrainingRows | None = None

    def fits(self, num_tasks: int, width: int) -> bool:
        """Whether it can be that of models of so many targets, the first of which has embeddings of this width."""
        of_targets = [self.intervals.offset] if self.intervals else []
        of_targets += [self.calibration.slope] if self.calibration else []
        of_targets += [self.rows.labels.T] if self.rows else []
        embeddings = self.domain.embeddings
        return all(len(array) == num_tasks for array in of_targets) and embeddings.shape[1] in (0, width)


def trust_arrays(trust: Trust) -> dict[str, np.ndarray]:
    """All that is kept, by name."""
    parts = {
        "domain": trust.domain,
        "intervals": trust.intervals,
        "calibration": trust.calibration,
        "rows": trust.rows,
    }
    return {
        f"{part}.{field.name}": getattr(kept, field.name)
        for part, kept in parts.items()
        if kept is not None
        for field in fields(kept)
    }


def save_trust(path: Path, trust: Trust) -> None:
    """Writes it; raises InputError if it cannot be written."""
    save_arrays(path, trust_arrays(trust), {"format": FORMAT})


def load_trust(path: Path) -> Trust:
    """Reads what ``save_trust`` wrote.

    Raises:
        InputError: no such file, damaged, or of a newer format.
    """
    arrays, facts = load_arrays(path)
    if facts.get("format") != FORMAT:
        raise InputError(f"{path} has format {facts.get('format')!r}; this release reads format {FORMAT}")

    def read(name: str, dtype: type, ndim: int) -> np.ndarray:
        return checked_array(arrays, name, dtype, ndim, path)

    domain = Domain(
        read("domain.bits", np.uint8, 2),
        read("domain.kinds", np.int64, 2),
        read("domain.atoms", np.int64, 1),
        read("domain.charges", np.int64, 1),
        read("domain.embeddings", np.float32, 2),
        read("domain.text", np.uint8, 1) if "domain.text" in arrays else np.empty(0, np.uint8),
    )
    intervals = calibration = None
    if "intervals.scores" in arrays:
        intervals = Intervals(read("intervals.scores", np.float64, 2), read("intervals.offset", np.float64, 1))
    if "calibration.slope" in arrays:
        calibration = Calibration(
            read("calibration.slope", np.float64, 1), read("calibration.intercept", np.float64, 1)
        )
    trust = Trust(domain, intervals, calibration, read_training_rows(arrays, path))
    if not fits_together(trust):
        raise InputError(f"{path} is damaged: its arrays do not fit together")
    return trust


def fits_together(trust: Trust) -> bool:
    """Whether the shapes are those of ``Domain``, ``Intervals`` and ``Calibration``."""
    domain, intervals, calibration = trust.domain, trust.intervals, trust.calibration
    return bool(
        len(domain.bits)
        and domain.bits.shape[1] == SIZE // 8
        and domain.kinds.shape[1] == 2
        and domain.atoms.shape == domain.charges.shape == (2,)
        and len(domain.embeddings) in (0, len(domain.bits))
        and len(domain.smiles) == len(domain.bits)
        and (trust.rows is None or trust.rows.fits(len(domain.bits)))
        and (intervals is None or (len(intervals.scores) and intervals.scores.shape[1:] == intervals.offset.shape))
        and (calibration is None or calibration.slope.shape == calibration.intercept.shape)
    )
