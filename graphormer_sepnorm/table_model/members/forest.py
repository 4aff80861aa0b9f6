"""Forests of extremely randomized trees (Geurts et al., 2006) on Morgan counts and descriptors.

scikit-learn grows them. They are stored as arrays, since pickle executes the code that it loads. Axis letters:
M molecules, F features, T targets, N nodes of all trees, R trees of all targets."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from graphormer_sepnorm.chem.descriptors import VERSIONS, WIDTH
from graphormer_sepnorm.chem.fingerprints import MORGAN, SIZE, known_kinds
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import checked_array, load_format
from graphormer_sepnorm.runs.folder import FOREST
from graphormer_sepnorm.system.workers import available_cores
from graphormer_sepnorm.table_model.features import MoleculeFeatures, condition_values, descriptor_values, morgan
from graphormer_sepnorm.table_model.labels import CannotLearn, Labels
from graphormer_sepnorm.table_model.members.base import Fitted, Member, ToFit

FORMAT = 1
FEATURES = SIZE + WIDTH
MOST_CONDITIONS = 10_000  # most values of conditions that are appended to the features
STEPS_AT_ONCE = 4_000_000
LEAF = -1
TREES = 100
MAX_SAMPLE = 20_000  # rows per tree, so that trees stay below 40,000 nodes
SHARE = 0.2  # share of the features that a split considers
LEAST_MOLECULES = 3  # with a feature, for the feature to be used
LARGEST = np.finfo(np.float32).max
TYPES = {"feature": np.int16, "number": np.float32, "right": np.int32, "roots": np.int64}  # of the arrays


def forest_features(molecules: MoleculeFeatures) -> np.ndarray:
    """Morgan counts, ``fast_descriptors`` (0 where not finite) and conditions: float32 [M, FEATURES + C]."""
    counts, described = molecules.of(morgan).toarray(), np.nan_to_num(molecules.of(descriptor_values))
    return np.concatenate([counts, described, molecules.of(condition_values)], axis=1, dtype=np.float32)


@dataclass(frozen=True)
class ForestMember(Member):
    """Random forests, one per target, all with the same number of trees; a left child is the next node."""

    share: ClassVar = 0.15
    file: ClassVar = FOREST
    described: ClassVar = f"a forest of {TREES} extremely randomized trees on Morgan counts and descriptors"

    feature: np.ndarray  # int16 [N], the feature that an inner node splits on; ``LEAF`` for a leaf
    number: np.ndarray  # float32 [N], threshold of an inner node (values up to it go left), or prediction of a leaf
    right: np.ndarray  # int32 [N], the right child of an inner node
    roots: np.ndarray  # int64 [R], the first node of each tree, grouped by target
    targets: int
    release: str  # RDKit release that computed the features

    @classmethod
    def fit(cls, table: ToFit) -> Fitted:
        features, seed = table.molecules.of(forest_features), table.config.train.seed
        out_of_fold = np.full_like(table.labels.y, np.nan)
        for number, (learnt, predicted) in enumerate(table.folds.parts()):
            labelled = table.known(number).take(learnt)
            targets = np.flatnonzero(~np.isnan(labelled.y).all(axis=0))
            if len(targets):  # otherwise all labels of the fold are bounds
                part = fit_forest(features[learnt], replace(labelled, y=labelled.y[:, targets]), seed, TREES)
                out_of_fold[np.ix_(predicted, targets)] = part.of_features(features[predicted])
        return Fitted(fit_forest(features, table.known(-1), seed, TREES), out_of_fold)

    def predict(self, molecules: MoleculeFeatures) -> np.ndarray:
        return self.of_features(molecules.of(forest_features)).astype(np.float64)

    def of_features(self, features: np.ndarray) -> np.ndarray:
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
        going = np.arange(len(node))
        while len(going := going[self.feature[node[going]] != LEAF]):
            here = node[going]
            left = features[molecule[going], self.feature[here]] <= self.number[here]
            node[going] = np.where(left, here + 1, self.right[here])
        return node.reshape(len(features), -1)

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in TYPES}

    def facts(self) -> dict:
        named = {"kinds": [MORGAN], "descriptors": VERSIONS[-1:]}
        return named | {"format": FORMAT, "targets": self.targets, "rdkit": self.release}

    @classmethod
    def load(cls, folder: Path, members: dict[str, Member]) -> Self:
        path = folder / FOREST
        arrays, facts = load_format(path, FORMAT)
        known_kinds(facts, path, ("morgan 1",), (MORGAN,))
        known_kinds(facts, path, VERSIONS[:1], VERSIONS, "descriptors")
        feature, number, right, roots = (checked_array(arrays, name, dtype, 1, path) for name, dtype in TYPES.items())
        forest = cls(feature, number, right, roots, facts.get("targets", 0), str(facts.get("rdkit")))
        if not all(forest.conditions()):
            raise InputError(f"{path} is damaged: its nodes do not form trees")
        return forest

    def conditions(self) -> Iterator[np.bool_ | bool]:
        """Conditions under which the trees are grouped by target, and paths from roots end in leaves of their trees."""
        nodes, roots, right = len(self.feature), self.roots, self.right
        yield isinstance(self.targets, int) and 0 < self.targets <= len(roots) and len(roots) % self.targets == 0
        yield nodes == len(self.number) == len(right)
        yield roots[0] == 0 and np.diff(roots).min(initial=1) > 0 and roots[-1] < nodes
        yield self.feature.min() >= LEAF and self.feature.max() < FEATURES + MOST_CONDITIONS
        inner, ends = np.flatnonzero(self.feature != LEAF), np.repeat([*roots[1:], nodes], np.diff([*roots, nodes]))
        yield (right[inner] > inner + 1).all() and (right[inner] < ends[inner]).all()


def fit_forest(features: np.ndarray, labels: Labels, seed: int, trees: int) -> ForestMember:
    """Grows one forest per target on the features [M, F] of the molecules with its label."""
    import rdkit
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor  # its import takes seconds

    make = ExtraTreesClassifier if labels.is_classification else ExtraTreesRegressor
    grown: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for column in labels.y.T:
        rows = np.flatnonzero(~np.isnan(column))
        if not len(rows):
            raise CannotLearn("a target has no exact labels to grow a forest on")
        known, weight = features[rows], None if labels.weight is None else labels.weight[rows]
        columns = np.flatnonzero((known != 0).sum(axis=0) >= min(LEAST_MOLECULES, len(rows)))
        columns = columns if len(columns) else np.arange(features.shape[1])
        sampled = {"bootstrap": True, "max_samples": MAX_SAMPLE} if len(rows) > MAX_SAMPLE else {}
        forest = make(trees, max_features=SHARE, n_jobs=available_cores(), random_state=seed, **sampled)
        forest.fit(known[:, columns], column[rows], weight)
        classes = forest.classes_ if labels.is_classification else np.ones(1)
        grown += [as_arrays(tree.tree_, columns, classes) for tree in forest.estimators_]
    feature, number, rights = zip(*grown, strict=True)
    sizes = np.array(list(map(len, feature)))
    roots = np.cumsum(sizes) - sizes
    right = np.concatenate([own + root for own, root in zip(rights, roots, strict=True)]).astype(np.int32)
    nodes = np.concatenate(feature), np.concatenate(number), right, roots.astype(np.int64)
    return ForestMember(*nodes, labels.y.shape[1], rdkit.__version__)


def as_arrays(tree: Any, columns: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, numbers and right children of a scikit-learn tree, on these feature columns."""
    leaf = tree.children_left == LEAF
    if not np.array_equal(tree.children_left[~leaf], np.flatnonzero(~leaf) + 1):
        raise NotImplementedError("this release of scikit-learn does not store left children next to their parents")
    threshold = tree.threshold.clip(-LARGEST, LARGEST).astype(np.float32)
    # rounded down: no float32 lies between the two, so every value takes the same branch
    threshold = np.where(threshold > tree.threshold, np.nextafter(threshold, -LARGEST), threshold)
    feature = np.where(leaf, LEAF, columns[np.where(leaf, 0, tree.feature)]).astype(np.int16)
    number = np.where(leaf, tree.value[:, 0, :] @ classes, threshold).astype(np.float32)
    return feature, number, np.where(leaf, 0, tree.children_right)
