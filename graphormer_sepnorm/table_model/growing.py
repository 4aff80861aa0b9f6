"""Forests of extremely randomized trees (Geurts et al., 2006), grown by scikit-learn; ``forest`` evaluates them.

Axis letters: M molecules, F features, T targets, N nodes of all trees, R trees of all targets."""

from typing import Literal, Protocol

import numpy as np

from graphormer_sepnorm.system.workers import available_cores
from graphormer_sepnorm.table_model.forest import LEAF, Forest
from graphormer_sepnorm.table_model.labels import CannotLearn

TREES = 100
MAX_SAMPLE = 20_000  # rows per tree, so that trees stay below 40,000 nodes
SHARE = 0.2  # share of the features that a split considers
LEAST_MOLECULES = 3  # with a feature, for the feature to be used
LARGEST = np.finfo(np.float32).max


def fit_forest(
    features: np.ndarray,
    y: np.ndarray,
    kind: Literal["regression", "classification"],
    seed: int,
    trees: int = TREES,
    weight: np.ndarray | None = None,
) -> Forest:
    """Grows one forest per target on features [M, F] of the molecules with its label y [M, T] and weight [M]."""
    import rdkit

    grown: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for column in y.T:
        rows = np.flatnonzero(~np.isnan(column))
        if not len(rows):
            raise CannotLearn("a target has no exact labels to grow a forest on")
        grown += grow_trees(features[rows], column[rows], kind, seed, trees, None if weight is None else weight[rows])
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


def grow_trees(
    features: np.ndarray, y: np.ndarray, kind: str, seed: int, trees: int, weight: np.ndarray | None
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The trees of one target, as ``as_arrays``, on features that enough molecules have; as ``fit_forest``."""
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor  # its import takes seconds

    columns = np.flatnonzero((features != 0).sum(axis=0) >= min(LEAST_MOLECULES, len(features)))
    columns = columns if len(columns) else np.arange(features.shape[1])
    make = ExtraTreesClassifier if kind == "classification" else ExtraTreesRegressor
    sampled = {"bootstrap": True, "max_samples": MAX_SAMPLE} if len(y) > MAX_SAMPLE else {}
    forest = make(trees, max_features=SHARE, n_jobs=available_cores(), random_state=seed, **sampled)
    forest.fit(features[:, columns], y, weight)
    classes = forest.classes_ if kind == "classification" else np.ones(1)
    return [as_arrays(tree.tree_, columns, classes) for tree in forest.estimators_]


class GrownTree(Protocol):
    """A scikit-learn tree: arrays over its nodes; ``value`` has axes for outputs and classes."""

    children_left: np.ndarray
    children_right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    value: np.ndarray


def as_arrays(tree: GrownTree, columns: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, numbers and right children of a tree; thresholds are rounded down to a float32 between no two."""
    leaf = tree.children_left == LEAF
    if not np.array_equal(tree.children_left[~leaf], np.flatnonzero(~leaf) + 1):
        raise NotImplementedError("this release of scikit-learn does not store left children next to their parents")
    threshold = tree.threshold.clip(-LARGEST, LARGEST).astype(np.float32)
    threshold = np.where(threshold > tree.threshold, np.nextafter(threshold, -LARGEST), threshold)
    prediction = tree.value[:, 0, :] @ classes
    return (
        np.where(leaf, LEAF, columns[np.where(leaf, 0, tree.feature)]).astype(np.int16),
        np.where(leaf, prediction, threshold).astype(np.float32),
        np.where(leaf, 0, tree.children_right),
    )
