"""Graphormer as scikit-learn estimators on SMILES.

X is a list, an array or a pandas Series of SMILES, or a table with one column of them.

Axis letters: M molecules, D width, K classes.
"""

import math
import os
from dataclasses import replace

import numpy as np
import torch
from pydantic import ValidationError
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
)
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import Tags, check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from graphormer_sepnorm.chem.features import FEATURIZERS, FOR_TABLES, read_graphs
from graphormer_sepnorm.config import Config, ModelConfig, TaskConfig, TrainConfig, first_problem
from graphormer_sepnorm.datasets.store import in_memory
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.pretrained import Graphormer
from graphormer_sepnorm.recipes import slim
from graphormer_sepnorm.training.finetune import starting_from
from graphormer_sepnorm.training.run_writer import words
from graphormer_sepnorm.training.trainer import Trainer


class SmilesEstimator(BaseEstimator):
    """An estimator whose X is SMILES."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def read_input(self, X, reset: bool) -> np.ndarray:
        """The SMILES of X: [M].

        Args:
            X: as the user gave it.
            reset: in ``fit``, which sets ``n_features_in_``.

        Raises:
            InputError: X is not one column.
        """
        column = np.asarray(X, dtype=object)
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
        if column.ndim != 1:
            raise InputError(f"X must be one column of SMILES, it has the shape {column.shape}")
        if reset:
            self.n_features_in_ = 1
        return column


class TrainedEstimator(SmilesEstimator):
    """An estimator that trains a Graphormer of its own.

    A part of the molecules is set aside, and the epoch that predicts it best is kept.

    Args:
        epochs: passes over the training molecules.
        batch_size: molecules per update.
        lr: peak learning rate.
        norm: a name in ``NORMS``.
        layers, width, heads: size of the model; ``width`` is a multiple of ``heads``.
        featurizer: a name in ``FEATURIZERS``.
        validation_fraction: part of the molecules that chooses the epoch; a fraction, or a number of molecules.
        random_state: of initialisation, order, dropout and the molecules set aside.
        pretrained: path or name of a model whose weights, architecture, norm and featurizer are taken over, under a
            fresh head; ``norm``, ``layers``, ``width``, ``heads`` and ``featurizer`` then have no effect.
        frozen_layers: first layers of ``pretrained`` that keep their weights.
        verbose: print a line per epoch.

    Attributes:
        model_: the trained ``Graphormer``.
        n_features_in_: 1, the column of SMILES.
    """

    def __init__(
        self,
        *,
        epochs: int = 20,
        batch_size: int = 32,
        lr: float = 1e-3,
        norm: str = "sepnorm",
        layers: int = 12,
        width: int = 80,
        heads: int = 8,
        featurizer: str = FOR_TABLES,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = None,
        pretrained: str | os.PathLike | None = None,
        frozen_layers: int = 0,
        verbose: bool = False,
    ):
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.norm = norm
        self.layers = layers
        self.width = width
        self.heads = heads
        self.featurizer = featurizer
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.pretrained = pretrained
        self.frozen_layers = frozen_layers
        self.verbose = verbose

    def train(self, X, y: np.ndarray, task: TaskConfig, stratify: np.ndarray | None = None) -> None:
        """Sets ``model_``.

        Args:
            X: M SMILES.
            y: [M, tasks], NaN where a label is missing.
            task: what is predicted.
            stratify: [M] classes of which the molecules set aside get their share.
        """
        smiles = self.read_input(X, reset=True)
        check_consistent_length(smiles, y)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        config = self.make_config(task, int(seed))
        train, val = train_test_split(
            np.arange(len(smiles)), test_size=self.validation_fraction, random_state=seed, stratify=stratify
        )
        graphs = read_graphs(config.featurizer, smiles.tolist())
        molecules = graphs.with_targets(y.astype(np.float32))
        learnt, chosen_by = (in_memory(molecules.take(part), config.model.encodings) for part in (train, val))
        with torch.random.fork_rng():
            self.model_ = best_of(Trainer(config, learnt, chosen_by, verbose=self.verbose))

    def make_config(self, task: TaskConfig, seed: int) -> Config:
        """The run that the parameters describe; raises InputError for a parameter out of range."""
        if self.frozen_layers and self.pretrained is None:
            raise InputError("frozen_layers needs pretrained: only layers of a trained model can keep their weights")
        try:
            train = TrainConfig(epochs=int(self.epochs), batch_size=int(self.batch_size), lr=float(self.lr), seed=seed)
            config = Config(
                dataset="scikit-learn",
                featurizer=self.featurizer,
                task=task,
                model=self.make_architecture(len(task.targets)),
                train=train,
            )
        except ValidationError as error:
            raise InputError(first_problem(error)) from None
        if self.pretrained is None:
            return config
        return starting_from(config, str(self.pretrained), int(self.frozen_layers))

    def make_architecture(self, num_tasks: int) -> ModelConfig:
        if self.featurizer not in FEATURIZERS:
            raise InputError(f"unknown featurizer {self.featurizer!r}, choose one of {', '.join(FEATURIZERS)}")
        featurizer = FEATURIZERS[self.featurizer]
        published = slim(featurizer.atom_sizes, featurizer.bond_sizes, num_tasks)
        return replace(
            published,
            norm=self.norm,
            layers=int(self.layers),
            width=int(self.width),
            ffn_width=int(self.width),
            heads=int(self.heads),
        )

    def require_targets(self, y) -> None:
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None")

    def predict_targets(self, X) -> np.ndarray:
        """What the model predicts: float32 [M, tasks]."""
        check_is_fitted(self)
        return self.model_.predict(list(self.read_input(X, reset=False)))


def best_of(trainer: Trainer) -> Graphormer:
    """Trains to the last epoch; returns the model of the best one in evaluation mode, on the CPU."""
    for epoch in trainer.epochs():
        if trainer.verbose:
            print(words(epoch, trainer.config), flush=True)
        if trainer.progress.best_epoch == epoch.epoch:
            weights = {name: tensor.detach().cpu().clone() for name, tensor in trainer.evaluated.state_dict().items()}
            facts = {"epoch": epoch.epoch, "val_metric": epoch.val_metric}
    best = Graphormer(trainer.config.model)
    best.load_state_dict(weights)
    best.run_config, best.facts = trainer.config, facts
    return best.eval()


def target_names(y, count: int) -> tuple[str, ...]:
    """Names of the targets: those of a pandas object, otherwise y0, y1, ..."""
    if hasattr(y, "columns"):
        return tuple(map(str, y.columns))
    if getattr(y, "name", None) is not None:
        return (str(y.name),)
    return tuple(f"y{i}" for i in range(count))


class GraphormerRegressor(MultiOutputMixin, RegressorMixin, TrainedEstimator):
    """Regression on SMILES by a Graphormer; several targets at once, NaN where a label is missing.

    Parameters and attributes are those of ``TrainedEstimator``.
    """

    def fit(self, X, y) -> "GraphormerRegressor":
        """Trains on M SMILES and targets [M] or [M, tasks]; raises InputError for a SMILES that cannot be read."""
        self.require_targets(y)
        targets = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
        columns = targets.reshape(len(targets), -1)
        self.train(X, columns, TaskConfig(kind="regression", metric="mae", targets=target_names(y, columns.shape[1])))
        self.n_outputs_ = columns.shape[1]
        self.one_dimensional_ = targets.ndim == 1
        return self

    def predict(self, X) -> np.ndarray:
        """Targets on their own scale: [M], or [M, tasks] if ``fit`` had such."""
        prediction = self.predict_targets(X)
        return prediction[:, 0] if self.one_dimensional_ else prediction


class GraphormerClassifier(ClassifierMixin, TrainedEstimator):
    """Classification of SMILES by a Graphormer: two classes, more (one against the rest), or several labels each.

    Parameters and attributes are those of ``TrainedEstimator``, and

    Attributes:
        classes_: [K], of any type.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X, y) -> "GraphormerClassifier":
        """Trains on M SMILES and classes [M], or zeros and ones [M, K] if a molecule may have several labels.

        Raises:
            InputError: a SMILES that cannot be read, or a single class.
        """
        self.require_targets(y)
        check_classification_targets(y)
        y = np.asarray(y) if type_of_target(y) == "multilabel-indicator" else column_or_1d(y, warn=True)
        self.binarizer_ = LabelBinarizer()
        labels = self.binarizer_.fit_transform(y)  # [M, 1] of two classes, otherwise [M, K]
        self.classes_ = self.binarizer_.classes_
        if len(self.classes_) < 2:
            raise InputError(f"y has one class, {self.classes_[0]!r}: a classifier needs at least 2")
        names = tuple(str(name) for name in self.classes_[-labels.shape[1] :])
        classes = self.classes_to_stratify(labels)
        self.train(X, labels, TaskConfig(kind="classification", metric="logloss", targets=names), classes)
        return self

    def classes_to_stratify(self, labels: np.ndarray) -> np.ndarray | None:
        """The class of each molecule [M] where each class can have its share of those set aside, otherwise None."""
        if self.binarizer_.y_type_ == "multilabel-indicator":
            return None
        classes = labels.argmax(axis=1) if labels.shape[1] > 1 else labels[:, 0]
        fraction = self.validation_fraction
        held_out = math.ceil(fraction * len(labels)) if fraction < 1 else fraction
        return classes if np.bincount(classes).min() >= 2 and held_out >= len(self.classes_) else None

    def predict(self, X) -> np.ndarray:
        """The most probable class of each molecule [M], or zeros and ones [M, K]."""
        probability = self.predict_targets(X)
        return self.binarizer_.inverse_transform(probability, threshold=0.5)

    def predict_proba(self, X) -> np.ndarray:
        """Probabilities [M, K] of the classes in the order of ``classes_``."""
        probability = self.predict_targets(X)
        if self.binarizer_.y_type_ == "binary":
            return np.hstack([1 - probability, probability])
        if self.binarizer_.y_type_ == "multiclass":
            return probability / probability.sum(axis=1, keepdims=True)
        return probability


class GraphormerEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SmilesEstimator):
    """SMILES to the final embedding of the CLS token.

    Args:
        pretrained: path or name of a model to load; ``fit`` then learns nothing and needs no y.
        estimator: a ``GraphormerRegressor`` or ``GraphormerClassifier``, a copy of which is trained where
            ``pretrained`` is None; None: a ``GraphormerRegressor()``.

    Attributes:
        model_: the ``Graphormer`` that embeds.
        n_features_in_: 1, the column of SMILES.
    """

    def __init__(
        self,
        pretrained: str | os.PathLike | None = None,
        estimator: TrainedEstimator | None = None,
    ):
        self.pretrained = pretrained
        self.estimator = estimator

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.pretrained is None
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X, y=None) -> "GraphormerEmbedder":
        """Loads the pretrained model, or trains on M SMILES and their targets.

        Raises:
            InputError: both a pretrained model and an estimator are given, the model is not found, or as the
                estimator's ``fit``.
        """
        if self.pretrained is not None and self.estimator is not None:
            raise InputError("give either a pretrained model or an estimator to train, not both")
        self.read_input(X, reset=True)
        if self.pretrained is not None:
            self.model_ = Graphormer.from_pretrained(self.pretrained)
        else:
            estimator = GraphormerRegressor() if self.estimator is None else clone(self.estimator)
            self.model_ = estimator.fit(X, y).model_
        return self

    def transform(self, X) -> np.ndarray:
        """Embeddings float32 [M, D]; raises InputError for a SMILES that cannot be read."""
        check_is_fitted(self)
        return self.model_.embed(list(self.read_input(X, reset=False)))

    @property
    def _n_features_out(self) -> int:
        return self.model_.config.width
