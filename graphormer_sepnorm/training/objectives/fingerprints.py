"""Pretraining on counts of Morgan environments, in the place of GROVER's motifs (Rong et al., NeurIPS 2020)."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from graphormer_sepnorm.chem.fingerprints import morgan_counts
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.workers import Smiles, in_chunks, map_chunks
from graphormer_sepnorm.training.objectives.base import Corpus, Pretraining

CLIP = 6.0  # standard deviations
FEWEST = 3
LEAST_SHARE = 0.01  # of the molecules
Counts = Mapping[str, int]


class Fingerprints(Pretraining):
    """Predicts how often hashed environments of radius 2 occur, as ``corpus_of_counts``."""

    title = "counts of Morgan fingerprints"

    def corpus(self, smiles: list[str]) -> Corpus:
        return corpus_of_counts(*count_each(environments, smiles))


def environments(smiles: str) -> Counts:
    """The non-zero ``morgan_counts`` by position; raises InputError as ``read_smiles``."""
    counts = morgan_counts(read_smiles(smiles))
    return {f"Morgan {place}": int(counts[place]) for place in np.flatnonzero(counts)}


def count_each(count: Callable[[str], Counts], smiles: list[str]) -> tuple[list[str], list[Counts]]:
    """The SMILES that ``count`` does not refuse with an InputError, and their counts, from several processes."""
    parts = map_chunks(partial(counts_of_chunk, count), in_chunks(smiles), list)
    pairs = [pair for chunk, of_chunk in parts for pair in zip(chunk, of_chunk, strict=True)]
    readable = [(text, counts) for text, counts in pairs if counts is not None]
    return [text for text, _ in readable], [counts for _, counts in readable]


def counts_of_chunk(count: Callable[[str], Counts], smiles: Smiles) -> list[Counts | None]:
    """The counts for each SMILES; None for one that is refused."""
    results: list[Counts | None] = []
    for text in smiles:
        try:
            results.append(count(text))
        except InputError:
            results.append(None)
    return results


def corpus_of_counts(smiles: list[str], counts: Sequence[Counts]) -> Corpus:
    """log(1 + count) of the keys that are frequent and vary, in standard deviations from the mean, clipped."""
    if len(smiles) < FEWEST:
        raise InputError(f"{len(smiles)} molecules can be read; pre-training needs many thousands")
    molecules = Counter(key for of_molecule in counts for key in of_molecule)
    names = sorted(key for key, number in molecules.items() if number >= LEAST_SHARE * len(smiles))
    column = {name: place for place, name in enumerate(names)}
    values = np.zeros((len(smiles), len(names)), np.float32)
    for row, of_molecule in zip(values, counts, strict=True):
        for key in of_molecule.keys() & column.keys():
            row[column[key]] = np.log1p(of_molecule[key])
    told = np.flatnonzero(values.max(axis=0) > values.min(axis=0))
    if not len(told):
        raise InputError("all molecules have the same counts: there is nothing to learn")
    values = values[:, told]
    scaled = (values - values.mean(axis=0, dtype=np.float64)) / values.std(axis=0, dtype=np.float64)
    return Corpus(smiles, tuple(names[place] for place in told), scaled.clip(-CLIP, CLIP).astype(np.float32))
