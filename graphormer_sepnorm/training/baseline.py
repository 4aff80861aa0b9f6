"""The baseline that every table is measured against: random forests on Morgan counts and RDKit's descriptors.

scikit-learn grows the trees; they are kept and followed as arrays.  The other ways to keep them are pickle, which runs
what it reads, and skops, which is tied to the release of scikit-learn that wrote it and keeps far more of each node.

Axis letters: M molecules, F features, T targets, N nodes of all trees, R trees of all targets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from graphormer_sepnorm.chem.descriptors import NAMES, all_descriptors, descriptors
from graphormer_sepnorm.chem.fingerprints import SIZE, morgan_counts
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import checked_array, load_arrays, save_arrays
from graphormer_sepnorm.system.workers import Smiles, available_cores
from graphormer_sepnorm.tasks import Metric

FOREST = "forest.safetensors"
TREES = 300
MAX_SAMPLE = 20_000  # rows per tree, so that trees stay below 40,000 nodes
REGRESSION_FEATURES = 1 / 3  # Breiman's share of the features that a split looks at
FORMAT = 1
NUM_FEATURES = SIZE + len(NAMES)
LARGEST = np.finfo(np.float32).max
STEPS_AT_ONCE = 4_000_000
LEAF = -1
GRID = tuple(step / 10 for step in range(11))


def forest_features(smiles: Smiles) -> np.ndarray:
    """Morgan counts, then descriptors, 0 where one has no finite value: float32 [M, F].

    A row of NaN for a SMILES that cannot be read or is too large.
    """
    return with_counts(smiles, descriptors(smiles))


def table_features(smiles: Smiles, folder: Path) -> np.ndarray:
    """As ``forest_features`` for a whole table: in several processes, the descriptors from ``folder`` if there."""
    return with_counts(smiles, all_descriptors(smiles, folder))


def with_counts(smiles: Smiles, values: np.ndarray) -> np.ndarray:
    """Morgan counts before the descriptors [M, D] of the same SMILES."""
    features = np.full((len(smiles), NUM_FEATURES), np.nan, np.float32)
    for row, text, known in zip(features, smiles, values, strict=True):
        if text is None or np.isnan(known).all():
            continue
        try:
            row[:SIZE] = morgan_counts(read_smiles(text))
        except InputError:
            continue
        row[SIZE:] = np.nan_to_num(known)
    return features


@dataclass(frozen=True)
class Forest:
    """Random forests, one per target, all with the same number of trees.

    The left child of an inner node is the next node.

    Attributes:
        feature: int16 [N], which feature an inner node looks at; ``LEAF`` for a leaf.
        number: float32 [N], the largest value that goes left; of a leaf its prediction.
        right: int32 [N], the right child of an inner node.
        roots: int64 [R], the first node of each tree; the trees of the first target first.
        targets: their number.
        release: of RDKit, which the features depend on.
    """

    feature: np.ndarray
    number: np.ndarray
    right: np.ndarray
    roots: np.ndarray
    targets: int
    release: str

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Values, or probabilities of class 1: float32 [M, T]; NaN for a row with NaN.

        Args:
            features: [M, F], as ``forest_features``.
        """
        predictions = np.full((len(features), self.targets), np.nan, np.float32)
        readable = np.flatnonzero(~np.isnan(features).any(axis=1))
        at_once = max(1, STEPS_AT_ONCE // len(self.roots))
        for start in range(0, len(readable), at_once):
            rows = readable[start : start + at_once]
            leaves = self.number[self.leaves(features[rows])].astype(np.float64)
            predictions[rows] = leaves.reshape(len(rows), self.targets, -1).mean(axis=2)
        return predictions

    def leaves(self, features: np.ndarray) -> np.ndarray:
        """The leaf of each tree that each molecule ends in: int64 [M, R]."""
        node = np.tile(self.roots, len(features))
        molecule = np.repeat(np.arange(len(features)), len(self.roots))
        going = np.flatnonzero(self.feature[node] != LEAF)
        while len(going):
            here = node[going]
            left = features[molecule[going], self.feature[here]] <= self.number[here]
            node[going] = np.where(left, here + 1, self.right[here])
            going = going[self.feature[node[going]] != LEAF]
        return node.reshape(len(features), -1)


def fit_forest(
    features: np.ndarray, y: np.ndarray, kind: Literal["regression", "classification"], seed: int, trees: int = TREES
) -> Forest:
    """Grows a forest per target on the molecules that have its label, on all cores.

    Args:
        features: [M, F], as ``forest_features``; rows with NaN are left out.
        y: [M, T] labels, NaN where missing; 0 or 1 for a classification (of several classes, one column each).
        kind: of the task.
        seed: of the samples and of the features that splits look at; the number of cores does not matter.
        trees: per target.

    Raises:
        InputError: a target without any label.
    """
    import rdkit
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor  # its import takes seconds

    readable = ~np.isnan(features).any(axis=1)
    grown: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for column in y.T:
        rows = np.flatnonzero(readable & ~np.isnan(column))
        if not len(rows):
            raise InputError("a target has no labels in the training split")
        common = {"n_jobs": available_cores(), "random_state": seed, "max_samples": min(len(rows), MAX_SAMPLE)}
        if kind == "classification":
            forest = RandomForestClassifier(trees, **common)
        else:
            forest = RandomForestRegressor(trees, max_features=REGRESSION_FEATURES, **common)
        forest.fit(features[rows], column[rows])
        classes = forest.classes_ if kind == "classification" else np.ones(1)
        grown += [as_arrays(tree.tree_, classes) for tree in forest.estimators_]
    sizes = np.array([len(feature) for feature, _, _ in grown])
    roots = np.cumsum(sizes) - sizes
    return Forest(
        np.concatenate([feature for feature, _, _ in grown]),
        np.concatenate([number for _, number, _ in grown]),
        np.concatenate([right + root for (_, _, right), root in zip(grown, roots, strict=True)]).astype(np.int32),
        roots.astype(np.int64),
        y.shape[1],
        rdkit.__version__,
    )


class GrownTree(Protocol):
    """A tree of scikit-learn: arrays over its nodes, ``value`` with axes for outputs and classes."""

    children_left: np.ndarray
    children_right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    value: np.ndarray


def as_arrays(tree: GrownTree, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The features, numbers and right children of a tree, as in ``Forest``.

    A threshold becomes the float32 below it: no float32 lies between the two, so every value goes where it went.
    """
    leaf = tree.children_left == LEAF
    if not np.array_equal(tree.children_left[~leaf], np.flatnonzero(~leaf) + 1):
        raise NotImplementedError("this release of scikit-learn does not put left children next to their parents")
    threshold = tree.threshold.clip(-LARGEST, LARGEST).astype(np.float32)
    threshold = np.where(threshold > tree.threshold, np.nextafter(threshold, -LARGEST), threshold)
    prediction = tree.value[:, 0, :] @ classes
    return (
        np.where(leaf, LEAF, tree.feature).astype(np.int16),
        np.where(leaf, prediction, threshold).astype(np.float32),
        np.where(leaf, 0, tree.children_right),
    )


def save_forest(path: Path, forest: Forest) -> None:
    """Writes a forest; raises InputError if it cannot be written."""
    arrays = {"feature": forest.feature, "number": forest.number, "right": forest.right, "roots": forest.roots}
    save_arrays(path, arrays, {"format": FORMAT, "targets": forest.targets, "rdkit": forest.release})


def load_forest(path: Path) -> Forest:
    """Reads what ``save_forest`` wrote.

    Raises:
        InputError: no such file, damaged, of a newer format, or not trees.
    """
    arrays, facts = load_arrays(path)
    if facts.get("format") != FORMAT:
        raise InputError(f"{path} is a forest of format {facts.get('format')!r}; this release reads format {FORMAT}")
    feature = checked_array(arrays, "feature", np.int16, 1, path)
    number = checked_array(arrays, "number", np.float32, 1, path)
    right = checked_array(arrays, "right", np.int32, 1, path)
    roots = checked_array(arrays, "roots", np.int64, 1, path)
    targets = facts.get("targets")
    if not (
        isinstance(targets, int)
        and 0 < targets <= len(roots)
        and len(roots) % targets == 0
        and len(feature) == len(number) == len(right)
        and all(conditions_of_trees(feature, number, right, roots))
    ):
        raise InputError(f"{path} is damaged: its nodes are not those of trees")
    return Forest(feature, number, right, roots, targets, str(facts.get("rdkit")))


def conditions_of_trees(
    feature: np.ndarray, number: np.ndarray, right: np.ndarray, roots: np.ndarray
) -> Iterator[np.bool_ | bool]:
    """What must hold so that every walk from a root ends in a leaf of its tree; arrays as ``Forest``."""
    nodes = len(feature)
    inner = np.flatnonzero(feature != LEAF)
    yield roots[0] == 0 and np.diff(roots).min(initial=1) > 0 and roots[-1] < nodes
    yield feature.min() >= LEAF and feature.max() < NUM_FEATURES
    yield np.isfinite(number).all()
    ends = np.repeat([*roots[1:], nodes], np.diff([*roots, nodes]))
    yield (right[inner] > inner + 1).all() and (right[inner] < ends[inner]).all()


def blend(ours: np.ndarray, forest: np.ndarray, weight: float) -> np.ndarray:
    """The weighted mean of two predictions [M, T], of which the forest's counts ``weight``."""
    return ours + weight * (forest - ours)


def blend_weight(y: np.ndarray, ours: np.ndarray, forest: np.ndarray, metric: Metric) -> float:
    """The forest's weight, one of ``GRID``, with the best score; of equal ones the nearest to one half.

    Args:
        y: [M, T] labels of validation, NaN where missing.
        ours, forest: [M, T] predictions for it, by models that did not see it.
        metric: what to choose by.

    Raises:
        InputError: the score is undefined for these labels.
    """
    best, chosen = None, 0.5
    for weight in sorted(GRID, key=lambda weight: abs(weight - 0.5)):
        score = metric(y, blend(ours, forest, weight))
        if metric.improves(score, best):
            best, chosen = score, weight
    return chosen
