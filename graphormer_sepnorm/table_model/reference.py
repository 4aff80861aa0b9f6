"""Similarities to the training molecules by counts, descriptors and embeddings of the foundation model.

Axis letters: M molecules, N training molecules, G groups of similarities, C descriptors that vary, D width of
embeddings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import scipy
import torch
from scipy.sparse import csc_array, csr_array

from graphormer_sepnorm.chem.descriptors import fast_descriptors
from graphormer_sepnorm.chem.features import Molecules, as_written
from graphormer_sepnorm.chem.fingerprints import ERG, KINDS, SIZE, Kinds
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.predict.predictors import Embedder, computed, load_embedder
from graphormer_sepnorm.runs.arrays import checked_array
from graphormer_sepnorm.system.device import Compute, compiled, computing, current
from graphormer_sepnorm.system.progress import tracked
from graphormer_sepnorm.system.workers import in_chunks, map_chunks
from graphormer_sepnorm.table_model.features import (
    CHUNK,
    Counts,
    GraphsOf,
    MoleculeFeatures,
    condition_values,
    descriptor_values,
)

BODY = "foundation"
MOST_ROWS = 10_000  # largest number of training molecules that are all used as references
LANDMARKS = 2_000  # number of references if there are more
MOST_MEASURED = 2_000  # most molecules whose distances determine the width of a Gaussian
SHARES = np.array([0.5, 0.2, 0.3])  # prior weights of the groups: counts, descriptors and embeddings
MOST_QUANTILES = 1000
LARGEST = 3.0  # largest normal score
NARROWER = 0.7  # width of the Gaussian of embeddings relative to their median distance
CROWDED = 1 / 16  # share of molecules with a nonzero value above which a position is stored densely
ROWS_AT_ONCE = 64
LEAST = np.float32(1e-6)  # smallest divisor


@dataclass(frozen=True)
class Encoder:
    embedder: Embedder

    @classmethod
    def named(cls, name: str) -> "Encoder":
        return cls(load_embedder(name))

    def __hash__(self) -> int:
        return hash((self.embedder.featurizer, self.embedder.width))

    def __eq__(self, other: object) -> bool:
        """Whether the embeddings are the same: those of equal weights on one kind of device."""
        if not isinstance(other, Encoder):
            return False
        one, two = self.embedder, other.embedder
        if one.model is two.model or (one.device, one.model.config) != (two.device, two.model.config):
            return one.model is two.model
        return all(map(torch.equal, one.model.state_dict().values(), two.model.state_dict().values()))

    def __call__(self, molecules: MoleculeFeatures) -> np.ndarray:
        """Embeddings of molecules: float32 [M, D]; on the CPU, many molecules are shared among processes."""
        graphs = molecules.of(GraphsOf(as_written(self.embedder.featurizer)))
        places = [np.array(numbers) for numbers in in_chunks(range(len(graphs)), CHUNK)]
        alone = 2 if self.embedder.device.type == "cpu" else len(places)
        vectors = map_chunks(partial(embeddings, self.embedder, current()), places, graphs.take, alone)
        of_chunks = [part for _, part in tracked(vectors, len(places), 0.5)]
        return np.concatenate([np.empty((0, self.embedder.width), np.float32), *of_chunks])


def embeddings(embedder: Embedder, compute: Compute, graphs: Graphs) -> np.ndarray:
    with computing(compute):
        return computed(Molecules.of_graphs(graphs), [embedder.output])[0]


def damped(counts: csr_array, kinds: Kinds) -> csr_array:
    """Counts c as log(1 + c), tenths of ErG as they are: float32, of counts [M, K x SIZE]."""
    as_it_is = np.isin(counts.indices // SIZE, [place for place, kind in enumerate(kinds) if kind == ERG])
    values = counts.data.astype(np.float32)
    return csr_array((np.where(as_it_is, values, np.log1p(values)), counts.indices, counts.indptr), shape=counts.shape)


def landmarks(count: int) -> np.ndarray:
    """The indices of the reference molecules: all training molecules, or an evenly spaced subset."""
    return np.arange(count) if count <= MOST_ROWS else evenly(count, LANDMARKS)


@dataclass(frozen=True)
class NormalScores:
    """Normal quantiles of ranks; unlike scikit-learn's, ties such as 0 get the score of their middle rank."""

    columns: np.ndarray  # int64 [C], indices of the features that vary
    quantiles: np.ndarray  # float64 [Q, C], their quantiles, evenly spaced from the smallest to the largest value

    @classmethod
    def of(cls, features: np.ndarray) -> "NormalScores":
        present = ~np.isnan(features)
        least = np.where(present, features, np.inf).min(axis=0, initial=np.inf)
        columns = np.flatnonzero(np.where(present, features, -np.inf).max(axis=0, initial=-np.inf) > least)
        levels = np.linspace(0, 1, max(2, min(MOST_QUANTILES, len(features))))
        varying = features[:, columns].astype(np.float64).T
        # in float32, as rounding errors would separate equal values
        by_column = [np.quantile(column[~np.isnan(column)], levels).astype(np.float32) for column in varying]
        quantiles = np.reshape(by_column, (len(columns), len(levels))).T.astype(np.float64)
        return cls(columns, np.maximum.accumulate(quantiles, axis=0))

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Scores of features [M, D] from -3 to 3: float32 [M, C]; 0 for missing values, the middle rank for ties."""
        levels = np.linspace(0, 1, len(self.quantiles))
        scores = np.zeros((len(features), len(self.columns)), np.float32)
        for place, (column, values) in enumerate(zip(self.columns, self.quantiles.T, strict=True)):
            wanted = features[:, column].astype(np.float64)
            level = 0.5 * (np.interp(wanted, values, levels) + 1 - np.interp(-wanted, -values[::-1], levels))
            normal = torch.special.ndtri(torch.from_numpy(level)).numpy()
            scores[:, place] = np.nan_to_num(normal.clip(-LARGEST, LARGEST))
        return scores

    def fits(self, width: int) -> bool:
        has_shape = len(self.quantiles) >= 2 and self.quantiles.shape[1] == len(self.columns)
        are_columns = (self.columns >= 0).all() and (self.columns < width).all()
        return bool(has_shape and are_columns and (np.diff(self.quantiles, axis=0) >= 0).all())


@dataclass(frozen=True)
class Space:
    """The training molecules in the embedding space of a network."""

    embeddings: np.ndarray  # float32 [N, D], standardized by ``mean`` and ``scale``
    mean: np.ndarray  # float32 [D], mean and scale of the embeddings
    scale: np.ndarray
    width: float  # width of the Gaussian

    @classmethod
    def of(cls, embeddings: np.ndarray) -> "Space":
        mean, scale = embeddings.mean(axis=0), embeddings.std(axis=0) + np.float32(1e-6)
        scaled = (embeddings - mean) / scale
        return cls(scaled, mean, scale, NARROWER * median_distance(scaled))

    def similarities(self, embeddings: np.ndarray) -> np.ndarray:
        """Similarities of embeddings [M, D] to those of the training molecules: float32 [M, N], from 0 to 1."""
        return gaussian((embeddings - self.mean) / self.scale, self.embeddings, self.width)


@compiled
def add_shared(indptr, places, values, indptr_t, molecules, others, where, crowded, size, shared):
    """Adds sums of elementwise minima of rows and the molecules of an index to ``shared`` [M, K, N]."""
    for i in range(shared.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            place, value = places[k], values[k]
            row = shared[i, place // size]
            if where[place] >= 0:
                column = crowded[where[place]]
                for j in range(len(row)):
                    row[j] += column[j] if column[j] < value else value
            else:
                for entry in range(indptr_t[place], indptr_t[place + 1]):
                    row[molecules[entry]] += min(value, others[entry])


@dataclass(frozen=True)
class CountIndex:
    """Index of reference molecules by their values in several kinds of count fingerprints."""

    columns: csc_array  # float32 [N, P], values stored by position
    totals: np.ndarray  # float32 [K, N], sums over the positions of each kind
    where: np.ndarray  # int64 [P], the row in ``crowded`` of a dense position, -1 for the others
    crowded: np.ndarray  # float32 [C, N], the values at the dense positions

    @classmethod
    def of(cls, values: csr_array, kinds: int) -> "CountIndex":
        """The index of values [N, P]; all kinds have the same number of positions."""
        columns, size = csc_array(values), values.shape[1] // kinds
        parts = [columns[:, kind * size : (kind + 1) * size].sum(axis=1, dtype=np.float32) for kind in range(kinds)]
        many = np.flatnonzero(np.diff(columns.indptr) > CROWDED * values.shape[0])
        where = np.full(values.shape[1], -1)
        where[many] = np.arange(len(many))
        return cls(columns, np.stack(parts), where, np.ascontiguousarray(columns[:, many].toarray().T))

    def similarity(self, values: csr_array) -> np.ndarray:
        """Min-max similarity (Ralaivola et al., 2005) of values [M, P], averaged over kinds: float32 [M, N]."""
        similarities = np.empty((values.shape[0], self.columns.shape[0]), np.float32)
        kinds, size, columns = len(self.totals), values.shape[1] // len(self.totals), self.columns
        arrays = (columns.indptr, columns.indices, columns.data, self.where, self.crowded)
        for start in range(0, len(similarities), ROWS_AT_ONCE):
            rows = csr_array(values[start : start + ROWS_AT_ONCE])
            shared = np.zeros((rows.shape[0], *self.totals.shape), np.float32)
            add_shared(rows.indptr, rows.indices, rows.data, *arrays, size, shared)
            parts = [rows[:, kind * size : (kind + 1) * size].sum(axis=1, dtype=np.float32) for kind in range(kinds)]
            union = np.stack(parts, axis=1)[:, :, None] + self.totals - shared
            similarities[start : start + ROWS_AT_ONCE] = (shared / np.maximum(union, LEAST)).mean(axis=1)
        return similarities


def gaussian(first: np.ndarray, second: np.ndarray, width: float) -> np.ndarray:
    """exp(-d^2 / (2 width^2)) of Euclidean distances d: float32 [M, N]; arguments float32 [M, F] and [N, F]."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * (first @ second.T)
    return np.exp(-squares.clip(min=0) / (2 * width**2), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Reference:
    body: Encoder
    counts: csr_array  # uint16 [N, K x SIZE] count fingerprints
    scores: NormalScores  # transformation from descriptors to ``described``
    described: np.ndarray  # float32 [N, C], normal scores of the descriptors
    space: Space
    widths: np.ndarray  # float64 [2], widths of the Gaussians of descriptors and embeddings; [3] with conditions
    conditions: np.ndarray  # float32 [N, V], conditions of the training molecules as ``condition_values``
    kinds: Kinds = KINDS  # kinds of the fingerprints

    @classmethod
    def of(cls, molecules: MoleculeFeatures, body: Encoder) -> "Reference":
        space, conditions = Space.of(molecules.of(body)), molecules.of(condition_values)
        scores = NormalScores.of(molecules.of(descriptor_values))
        described = scores(molecules.of(descriptor_values))
        of_conditions = [median_distance(conditions)] if conditions.shape[1] else []
        widths = np.array([median_distance(described), space.width, *of_conditions])
        space = replace(space, width=widths[1])  # in float64, as from a file: the same bits
        return cls(body, molecules.of(Counts()), scores, described, space, widths, conditions)

    @cached_property
    def index(self) -> CountIndex:
        return CountIndex.of(damped(self.counts, self.kinds), len(self.kinds))

    def similarities(self, molecules: MoleculeFeatures) -> np.ndarray:
        """Similarities by counts, descriptors and embeddings, under conditions: float32 [M, G, N], from 0 to 1."""
        by_counts = self.index.similarity(damped(molecules.of(Counts(self.kinds)), self.kinds))
        by_descriptors = gaussian(self.scores(molecules.of(descriptor_values)), self.described, self.widths[0])
        parts = by_counts, by_descriptors, self.space.similarities(molecules.of(self.body))
        return self.under_conditions(molecules, np.stack(parts, axis=1))

    def under_conditions(self, molecules: MoleculeFeatures, similarities: np.ndarray) -> np.ndarray:
        """Similarities [M, G, N] as ``with_conditions``; unchanged if there are no conditions."""
        if not self.conditions.shape[1]:
            return similarities
        return with_conditions(similarities, molecules.of(self.condition_similarity))

    def condition_similarity(self, molecules: MoleculeFeatures) -> np.ndarray:
        return gaussian(molecules.of(condition_values), self.conditions, self.widths[2])

    def similarity(self, molecules: MoleculeFeatures) -> np.ndarray:
        """The mean of the ``similarities`` with the ``SHARES`` as weights: float32 [M, N], from 0 to 1."""
        return mixed(molecules.of(self.similarities), SHARES, np.float32)

    def arrays(self) -> dict[str, np.ndarray]:
        start, place = self.counts.indptr.astype(np.int64), self.counts.indices.astype(np.uint16)
        arrays = {"start": start, "place": place, "count": self.counts.data, **vars(self.scores)}
        arrays |= {"described": self.described, "widths": self.widths}
        arrays |= {name: getattr(self.space, name) for name in ("embeddings", "mean", "scale")}
        return arrays | ({"conditions": self.conditions} if self.conditions.shape[1] else {})

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], body: Encoder, kinds: Kinds, path: Path) -> "Reference":
        """The reference with these ``arrays`` from a file; raises InputError if they do not fit together."""
        counts = read_counts(arrays, len(kinds) * SIZE, path)
        sizes = {"N": counts.shape[0], "D": body.embedder.width, "W": 3 if "conditions" in arrays else 2}
        shapes = {"columns": (np.int64, "C"), "quantiles": (np.float64, "QC"), "described": (np.float32, "NC")}
        shapes |= {"embeddings": (np.float32, "ND"), "mean": (np.float32, "D"), "scale": (np.float32, "D")}
        shapes |= {"widths": (np.float64, "W+"), "conditions": (np.float32, "NV")}
        arrays = {"conditions": np.zeros((counts.shape[0], 0), np.float32), **arrays}
        columns, quantiles, described, embeddings, mean, scale, widths, under = read_shaped(arrays, shapes, sizes, path)
        scores = NormalScores(columns, quantiles)
        if not scores.fits(fast_descriptors([]).shape[1]):
            raise InputError(damaged_arrays(path))
        space = Space(embeddings, mean, scale, widths[1])
        return cls(body, counts, scores, described, space, widths, under, kinds)


def with_conditions(similarities: np.ndarray, conditions: np.ndarray) -> np.ndarray:
    """The mean of 1, similarities [M, G, N], those of conditions [M, N] and the product of both (Wahba, 1990)."""
    return (1 + similarities) * (1 + conditions[:, None]) / 4


def mixed(similarities: np.ndarray, weights: np.ndarray, dtype: type = np.float64) -> np.ndarray:
    """The sum [M, N] of similarities [M, G, N] with weights [G]."""
    total: np.ndarray = np.zeros((similarities.shape[0], similarities.shape[2]), dtype)
    for group, weight in enumerate(weights.astype(dtype)):
        total += weight * similarities[:, group]
    return total


def median_distance(points: np.ndarray) -> float:
    """The median Euclidean distance between distinct points [N, D]; 1 if all are equal."""
    chosen = points[evenly(len(points), MOST_MEASURED)]
    distances = scipy.spatial.distance.pdist(chosen) if points.shape[1] else np.zeros(0)
    return float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0


def read_shaped(
    arrays: dict[str, np.ndarray], shapes: Mapping[str, tuple[type, str]], sizes: dict[str, int], path: Path
) -> list[np.ndarray]:
    """The arrays of a file by name, type and the letters of their axes; axes of one letter have the same size.

    A + after the letters means that all values are above 0."""
    found = []
    for name, (dtype, axes) in shapes.items():
        letters = axes.removesuffix("+")
        found.append(array := checked_array(arrays, name, dtype, len(letters), path))
        alike = [sizes.setdefault(letter, size) == size for letter, size in zip(letters, array.shape, strict=True)]
        if not all(alike) or (letters != axes and (array <= 0).any()):
            raise InputError(damaged_arrays(path))
    return found


def damaged_arrays(path: Path) -> str:
    return f"{path} is damaged: its arrays do not fit together"


def read_counts(arrays: dict[str, np.ndarray], width: int, path: Path) -> csr_array:
    """Counts [N, width] from the arrays of a file; raises InputError if they do not form sparse rows."""
    start = checked_array(arrays, "start", np.int64, 1, path)
    place, count = (checked_array(arrays, name, np.uint16, 1, path) for name in ("place", "count"))
    if not (len(start) and start[0] == 0 and start[-1] == len(place) == len(count) and (np.diff(start) >= 0).all()):
        raise InputError(f"{path} is damaged: its counts do not form rows")
    if place.max(initial=0) >= width:
        raise InputError(f"{path} is damaged: its counts have places beyond {width}")
    return csr_array((count, place.astype(np.int32), start.astype(np.int32)), shape=(len(start) - 1, width))
