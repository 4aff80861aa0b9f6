"""Random forests, stored as arrays and evaluated without scikit-learn: pickle executes the code that it loads.

Axis letters: M molecules, F features, T targets, N nodes of all trees, R trees of all targets."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.count_fingerprints import MORGAN, known_kinds
from graphormer_sepnorm.chem.fast_descriptors import VERSIONS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import checked_array, load_format, save_arrays

FORMAT = 1
STEPS_AT_ONCE = 4_000_000
LEAF = -1


@dataclass(frozen=True)
class Forest:
    """Random forests, one per target, all with the same number of trees; a left child is the next node."""

    feature: np.ndarray  # int16 [N], the feature that an inner node splits on; ``LEAF`` for a leaf
    number: np.ndarray  # float32 [N], threshold of an inner node (values up to it go left), or prediction of a leaf
    right: np.ndarray  # int32 [N], the right child of an inner node
    roots: np.ndarray  # int64 [R], the first node of each tree, grouped by target
    targets: int
    release: str  # RDKit release that computed the features

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Predicted values, or probabilities of class 1: float32 [M, T]; NaN for a row of features [M, F] with NaN."""
        predictions = np.full((len(features), self.targets), np.nan, np.float32)
        readable = np.flatnonzero(~np.isnan(features).any(axis=1))
        at_once = max(1, STEPS_AT_ONCE // len(self.roots))
        for start in range(0, len(readable), at_once):
            rows = readable[start : start + at_once]
            leaves = self.number[self.leaves(features[rows])].astype(np.float64)
            predictions[rows] = leaves.reshape(len(rows), self.targets, -1).mean(axis=2)
        return predictions

    def leaves(self, features: np.ndarray) -> np.ndarray:
        """The leaf that each molecule reaches in each tree: int64 [M, R]."""
        node = np.tile(self.roots, len(features))
        molecule = np.repeat(np.arange(len(features)), len(self.roots))
        going = np.flatnonzero(self.feature[node] != LEAF)
        while len(going):
            here = node[going]
            left = features[molecule[going], self.feature[here]] <= self.number[here]
            node[going] = np.where(left, here + 1, self.right[here])
            going = going[self.feature[node[going]] != LEAF]
        return node.reshape(len(features), -1)


def forest_arrays(forest: Forest) -> dict[str, np.ndarray]:
    """The arrays of a forest, by name."""
    return {"feature": forest.feature, "number": forest.number, "right": forest.right, "roots": forest.roots}


def save_forest(path: Path, forest: Forest) -> None:
    """Writes a forest; raises InputError if it cannot be written."""
    named = {"kinds": [MORGAN], "descriptors": VERSIONS[-1:]}
    facts = {"format": FORMAT, "targets": forest.targets, "rdkit": forest.release}
    save_arrays(path, forest_arrays(forest), named | facts)


def load_forest(path: Path, width: int) -> Forest:
    """Reads what ``save_forest`` wrote."""
    arrays, facts = load_format(path, FORMAT)
    known_kinds(facts, path, ("morgan 1",), (MORGAN,))
    known_kinds(facts, path, VERSIONS[:1], VERSIONS, "descriptors")
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
        and all(conditions_of_trees(feature, right, roots, width))
    ):
        raise InputError(f"{path} is damaged: its nodes do not form trees")
    return Forest(feature, number, right, roots, targets, str(facts.get("rdkit")))


def conditions_of_trees(
    feature: np.ndarray, right: np.ndarray, roots: np.ndarray, width: int
) -> Iterator[np.bool_ | bool]:
    """Conditions under which every path from a root ends in a leaf of its tree; arrays as ``Forest``."""
    nodes = len(feature)
    inner = np.flatnonzero(feature != LEAF)
    yield roots[0] == 0 and np.diff(roots).min(initial=1) > 0 and roots[-1] < nodes
    yield feature.min() >= LEAF and feature.max() < width
    ends = np.repeat([*roots[1:], nodes], np.diff([*roots, nodes]))
    yield (right[inner] > inner + 1).all() and (right[inner] < ends[inner]).all()
