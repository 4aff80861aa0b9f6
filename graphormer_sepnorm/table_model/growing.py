"""Random forests are grown by scikit-learn, on Morgan counts and RDKit's descriptors.

``table_model.forest`` keeps and follows their trees.

Axis letters: M molecules, F features, T targets, N nodes of all trees, R trees of all targets.
"""

from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from graphormer_sepnorm.chem.descriptors import all_descriptors
from graphormer_sepnorm.system.workers import Smiles, available_cores
from graphormer_sepnorm.table_model.forest import LEAF, Forest, with_counts
from graphormer_sepnorm.table_model.labels import CannotLearn

TREES = 300
MAX_SAMPLE = 20_000  # rows per tree, so that trees stay below 40,000 nodes
REGRESSION_FEATURES = 1 / 3  # Breiman's share of the features that a split looks at
LARGEST = np.finfo(np.float32).max


def table_features(smiles: Smiles, folder: Path) -> np.ndarray:
    """As ``forest_features`` for a whole table: in several processes, the descriptors from ``folder`` if there."""
    return with_counts(smiles, all_descriptors(smiles, folder))


def fit_forest(
    features: np.ndarray,
    y: np.ndarray,
    kind: Literal["regression", "classification"],
    seed: int,
    trees: int = TREES,
    weight: np.ndarray | None = None,
) -> Forest:
    """Grows a forest per target on the molecules that have its label, on all cores.

    Args:
        features: [M, F], as ``forest_features``; rows with NaN are left out.
        y: [M, T] labels, NaN where missing; 0 or 1 for a classification (of several classes, one column each).
        kind: of the task.
        seed: of the samples and of the features that splits look at; the number of cores does not matter.
        trees: per target.
        weight: [M], how much each molecule counts; None: all the same.

    Raises:
        CannotLearn: a target without any label.
    """
    import rdkit
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor  # its import takes seconds

    readable = ~np.isnan(features).any(axis=1)
    grown: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for column in y.T:
        rows = np.flatnonzero(readable & ~np.isnan(column))
        if not len(rows):
            raise CannotLearn("a target has no exact labels to grow a forest on")
        common = {"n_jobs": available_cores(), "random_state": seed, "max_samples": min(len(rows), MAX_SAMPLE)}
        if kind == "classification":
            forest = RandomForestClassifier(trees, **common)
        else:
            forest = RandomForestRegressor(trees, max_features=REGRESSION_FEATURES, **common)
        forest.fit(features[rows], column[rows], None if weight is None else weight[rows])
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
