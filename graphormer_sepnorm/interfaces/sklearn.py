"""The table model as scikit-learn estimators; axis letters: M molecules, T targets, D width, K classes.

X is a list, an array or a pandas Series of SMILES or RDKit molecules, or a table with one column of them.
"""

import math
import os
from collections.abc import Sequence

import numpy as np
from sklearn import base
from sklearn.metrics import accuracy_score, r2_score
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import Tags, check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.table_estimator import NO_LABELS, SmilesEstimator, TableEstimator, all_read
from graphormer_sepnorm.predict.classes import check_confidence
from graphormer_sepnorm.predict.predictors import Embedder, interval_ends, known_sets
from graphormer_sepnorm.predict.pretrained import Graphormer
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from graphormer_sepnorm.table_model.stacking import FOLDS
from graphormer_sepnorm.tables.label_text import CLASSES, read_bound, read_number, same_label
from graphormer_sepnorm.tables.labels import LabelledRow


def target_names(y, count: int) -> tuple[str, ...]:
    """Names of the targets: those of a pandas object, otherwise y0, y1, ..."""
    if hasattr(y, "columns"):
        return tuple(map(str, y.columns))
    name = getattr(y, "name", None)
    return (str(name),) if name is not None else tuple(f"y{i}" for i in range(count))


def array_of(y) -> np.ndarray:
    if y is None:
        raise InputError("fit requires y to be passed, but the target y is None")
    values = np.asarray(y)  # in which NaN between the words of a list would become a word
    return np.asarray(y, dtype=object) if values.dtype.kind == "U" and isinstance(y, Sequence) else values


def labelled_rows(y) -> tuple[tuple[str, ...], list[LabelledRow]]:
    """The names of the targets and a row per molecule; raises InputError for a text that is not a label."""
    import pandas as pd  # its import takes a while

    values = array_of(y)
    if values.dtype.kind not in "OU" or not any(isinstance(value, str) for value in values.flat):
        values = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
    columns, rows = values.astype(object).reshape(len(values), -1), []
    names = target_names(y, columns.shape[1])
    for number, row in enumerate(columns, 1):
        texts = [
            "" if pd.isna(value) else str(value) if isinstance(value, str) else repr(float(value)) for value in row
        ]
        try:
            bounds = [read_bound(text, name) for text, name in zip(texts, names, strict=True)]
            parts = zip(texts, names, bounds, strict=True)
            labels = [math.nan if bound else read_number(text, name) for text, name, bound in parts]
        except InputError as error:
            raise InputError(f"row {number - 1} (counted from 0): {error}") from None
        known = {place: bound for place, bound in enumerate(bounds) if bound}
        rows.append(LabelledRow(number, "", labels, bounds=known))
    return names, rows


class GraphormerRegressor(base.MultiOutputMixin, base.RegressorMixin, TableEstimator):
    """Regression on molecules with the table model; supports several targets and missing labels (NaN).

    Attributes:
        model_: the ``TableModel``.
        out_of_fold_: out-of-fold predictions for the rows of X in their order, NaN for molecules without a label:
            float64 in the shape of ``predict``. Rows of the same molecule are averaged and have the same prediction.
        left_out_: reasons for the members that were left out, by name.
        n_features_in_: 1, the column of molecules.
    """

    def fit(self, X, y, sample_weight=None) -> "GraphormerRegressor":
        """Fits the table model.

        Args:
            X: M molecules.
            y: [M] or [M, T] labels; a censored label is a text such as "<5".
            sample_weight: [M] sample weights.

        Raises:
            InputError: a molecule or a label cannot be read, or there are no labels.
        """
        names, rows = labelled_rows(y)
        self._learn(X, rows, {"targets": names, "kind": "regression"}, sample_weight)
        self.n_outputs_ = len(names)
        self.one_dimensional_ = array_of(y).ndim == 1
        self.out_of_fold_ = self._shaped(self.out_of_fold_)
        return self

    def predict(self, X, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predicts targets on their own scale: [M], or [M, T] if ``y`` had this shape.

        Args:
            X: M molecules.
            return_std: also return the expected standard deviation of the error.
        """
        values, spread = (self._shaped(each) for each in self._predictions(X))
        return (values, spread) if return_std else values

    def predict_interval(self, X, confidence: float = 0.9) -> np.ndarray:
        """Lower and upper ends of conformal intervals that contain a label with probability ``confidence``.

        Returns:
            [M, 2], or [M, T, 2] if ``fit`` had several targets.

        Raises:
            InputError: there are too few molecules for this confidence level.
        """
        check_confidence(confidence)
        values, spread = self._predictions(X)
        return self._shaped(np.stack(interval_ends(self.model_, confidence, values, spread), axis=2))

    def score(self, X, y, sample_weight=None) -> float:
        """R2 of the predictions for the labels that there are, the mean over targets as in scikit-learn.

        Raises:
            InputError: there are no labels, or censored ones, which have no error.
        """
        _, rows = labelled_rows(y)
        if bounds := [bound for row in rows for bound in row.bounds.values()]:
            raise InputError(f"y has censored labels, such as {bounds[0]!r}: leave their molecules out of the score")
        labels, predictions = np.array([row.labels for row in rows]), self._predictions(X)[0]
        check_consistent_length(predictions, labels, sample_weight)
        weights = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight)
        known = ~np.isnan(labels)
        if not known.any():
            raise InputError(NO_LABELS)
        columns = zip(labels.T, predictions.T, known.T, strict=True)
        scores = [r2_score(y[at], found[at], sample_weight=weights[at]) for y, found, at in columns if at.any()]
        return float(np.mean(scores))

    def _shaped(self, columns: np.ndarray) -> np.ndarray:
        """Results for targets [M, T, ...] in the shape of ``y``."""
        return columns[:, 0] if self.one_dimensional_ else columns


class GraphormerClassifier(base.ClassifierMixin, TableEstimator):
    """Classification of molecules with the table model: binary, multiclass or multilabel.

    Attributes:
        model_, left_out_, n_features_in_: as ``GraphormerRegressor``.
        out_of_fold_: out-of-fold probabilities for the rows of X, as ``predict_proba``; NaN without a label.
        classes_: [K] classes of any type, in rising order.
        positive_: place in ``classes_`` of the one of two classes whose probability the model predicts: that which the
            command calls 1, such as "active" or "yes", otherwise the last.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X, y, sample_weight=None) -> "GraphormerClassifier":
        """Fits the table model.

        Args:
            X: M molecules.
            y: classes [M]; or [M, K] of 0 and 1 if a molecule may have several labels. NaN where one is missing.
            sample_weight: as ``GraphormerRegressor.fit``.

        Raises:
            InputError: a molecule cannot be read, or there is a single class.
        """
        labels = self._binary_labels(y)
        if len(self.classes_) < 2:
            raise InputError(f"y has one class, {self.classes_.tolist()[0]!r}: a classifier needs at least 2")
        words = tuple(map(str, self.classes_))
        options: dict = {"kind": "classification", "targets": target_names(y, labels.shape[1])}
        names: tuple[tuple[str, ...], ...] = ()
        if self.binarizer_.y_type_ == "multiclass":
            options = {"kind": "multiclass", "targets": target_names(y, 1), "classes": words}
            names = (words,)
        elif self._is_binary:
            self.positive_ = int([CLASSES.get(same_label(word)) for word in words] != [1, 0])
            if [same_label(word) for word in words] not in (["0", "1"], ["false", "true"]):
                names = ((words[1 - self.positive_], words[self.positive_]),)
            labels = labels if self.positive_ else 1 - labels
        rows = [LabelledRow(number, "", row.tolist()) for number, row in enumerate(labels, 1)]
        self._learn(X, rows, options, sample_weight, names)
        self.out_of_fold_ = self._of_classes(self.out_of_fold_)
        return self

    @property
    def _is_binary(self) -> bool:
        """Whether each molecule has one of two classes."""
        return self.binarizer_.y_type_ == "binary"

    def _binary_labels(self, y) -> np.ndarray:
        """Labels 0 and 1, NaN where missing: float64 [M, 1] for two classes, otherwise [M, K]; sets ``classes_``."""
        import pandas as pd  # its import takes a while

        values = array_of(y)
        missing: np.ndarray = np.zeros(0)
        if values.ndim == 2 and values.shape[1] > 1 and values.dtype.kind in "fO":
            missing = pd.isna(values)
            y = np.where(missing, 0, values).astype(np.float64)
        elif values.size in values.shape and pd.Series(values.ravel()).hasnans:
            column = pd.Series(values.ravel(), dtype=object)
            missing = column.isna().to_numpy()[:, None]
            if missing.all():
                raise InputError(NO_LABELS)
            y = np.array(column.fillna(column.dropna().iloc[0]).tolist())
        check_classification_targets(y)
        y = np.asarray(y) if type_of_target(y) == "multilabel-indicator" else column_or_1d(y, warn=True)
        self.binarizer_ = LabelBinarizer()
        labels = self.binarizer_.fit_transform(y).astype(np.float64)
        self.classes_ = self.binarizer_.classes_
        return np.where(missing, np.nan, labels) if missing.size else labels

    def predict(self, X) -> np.ndarray:
        """The most probable class of each molecule [M], or zeros and ones [M, K]."""
        probability = self.predict_proba(X)
        return self.binarizer_.inverse_transform(probability[:, -1:] if self._is_binary else probability, threshold=0.5)

    def score(self, X, y, sample_weight=None) -> float:
        """Accuracy for the molecules with labels, of several labels if all that there are agree, as in scikit-learn."""
        import pandas as pd  # its import takes a while

        labels, predicted = array_of(y), self.predict(X)
        check_consistent_length(predicted, labels, sample_weight)
        known = ~pd.isna(labels)
        rows = known.reshape(len(labels), -1).any(axis=1)
        if not rows.any():
            raise InputError(NO_LABELS)
        labels = np.array(np.where(known, labels, predicted.reshape(labels.shape))[rows].tolist())
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return accuracy_score(labels, predicted[rows], sample_weight=weights)

    def predict_proba(self, X) -> np.ndarray:
        """Probabilities [M, K] of the classes in the order of ``classes_``."""
        return self._of_classes(self._predictions(X)[0])

    def _of_classes(self, probability: np.ndarray) -> np.ndarray:
        """Probabilities [M, K] in the order of ``classes_`` from those of the model, [M, 1] for two classes."""
        return self._in_order(np.hstack([1 - probability, probability])) if self._is_binary else probability

    def _in_order(self, of_two: np.ndarray) -> np.ndarray:
        """Columns [..., 2] for the classes 0 and 1 of the model in the order of ``classes_``."""
        return of_two if self.positive_ else of_two[..., ::-1]

    def predict_set(self, X, confidence: float = 0.9) -> np.ndarray:
        """Conformal prediction sets, which contain the class of a molecule with probability ``confidence``.

        Returns:
            bool [M, K], whether a class of ``classes_`` is in the set; [M, K, 2] for multilabel, for 0 and 1.
        """
        check_confidence(confidence)
        held = known_sets(self.model_).holds(self._predictions(X)[0], confidence)
        if self.binarizer_.y_type_.startswith("multilabel"):
            return held
        return self._in_order(held[:, 0]) if self._is_binary else held[:, 0]


class GraphormerEmbedder(base.ClassNamePrefixFeaturesOutMixin, base.TransformerMixin, SmilesEstimator):
    """Transforms molecules to the final embeddings of the CLS token.

    Args:
        pretrained: path or name of a network; ``fit`` then only loads it and needs no y.
        estimator: a ``GraphormerRegressor`` or ``GraphormerClassifier``, a copy of which is fitted where
            ``pretrained`` is None; the first of its networks embeds. None: a ``GraphormerRegressor(device=device)``.

    Attributes:
        embedder_: the network that embeds.
        n_features_in_: 1, the column of molecules.
    """

    def __init__(
        self,
        pretrained: str | os.PathLike | None = None,
        estimator: "GraphormerRegressor | GraphormerClassifier | None" = None,
        device: str = "auto",
    ):
        self.pretrained, self.estimator, self.device = pretrained, estimator, device

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.pretrained is None
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X, y=None) -> "GraphormerEmbedder":
        """Loads the pretrained network, or trains on M molecules and their targets.

        Raises:
            InputError: both a pretrained network and an estimator are given, the network is not found, the estimator
                has no networks, or as its ``fit``.
        """
        if self.pretrained is not None and self.estimator is not None:
            raise InputError("give either a pretrained network or an estimator to train, not both")
        self._read_input(X, reset=True)
        if self.pretrained is not None:
            network = Graphormer.from_pretrained(self.pretrained)
            self.embedder_ = Embedder(network, network.known_run())
        else:
            estimator = base.clone(self.estimator or GraphormerRegressor(device=self.device))
            if estimator.networks is None:
                estimator.set_params(networks=FOLDS)
            member = estimator.fit(X, y).model_.members.get("networks")
            if not isinstance(member, NetworksMember):
                raise InputError("the estimator trains no networks, so it has no embeddings")
            self.embedder_ = Embedder(*member.models[0])
        return self

    def transform(self, X) -> np.ndarray:
        """Embeddings float32 [M, D]; raises InputError for a molecule that cannot be read."""
        check_is_fitted(self)
        return all_read(self.embedder_, self._read_input(X, reset=False), self.device).values

    @property
    def _n_features_out(self) -> int:
        return self.embedder_.width
