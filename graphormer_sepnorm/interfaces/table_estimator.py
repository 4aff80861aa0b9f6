"""Shared base of the scikit-learn estimators on molecules: reading X and fitting a table model.

X is a list, an array or a pandas Series of SMILES or RDKit molecules, or a table with one column of them.

Axis letters: M molecules, T targets, D width, K classes.
"""

import functools
import inspect
import json
import os
import re
import warnings
from dataclasses import fields, make_dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError, create_model
from rdkit import Chem
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted

from graphormer_sepnorm.chem.smiles import one_column
from graphormer_sepnorm.config import Config, TaskConfig, TrainConfig, first_problem
from graphormer_sepnorm.encodings.base import STRICT
from graphormer_sepnorm.errors import InputError, did_you_mean, known
from graphormer_sepnorm.inference.predict import MovableModel, Result, compute_chunks, molecules_at_once
from graphormer_sepnorm.interfaces import quick
from graphormer_sepnorm.options import declared
from graphormer_sepnorm.recipes import find_recipe, task_config
from graphormer_sepnorm.runs.folder import IN_PYTHON, RunFolder
from graphormer_sepnorm.system.device import choose, computing, current
from graphormer_sepnorm.system.workers import in_chunks
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import fit_table
from graphormer_sepnorm.table_model.load import as_smiles
from graphormer_sepnorm.table_model.members.base import Setting
from graphormer_sepnorm.table_model.stacking import make_folds
from graphormer_sepnorm.table_model.train import Plan, labels_of
from graphormer_sepnorm.tables.formats.table import find_column, names_shown
from graphormer_sepnorm.tables.labels import LabelledRow, LabelledTable, keep_readable, refuse_constant, table_task
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import TABLE, write_labelled
from graphormer_sepnorm.tables.splits import SPLITTERS
from graphormer_sepnorm.tasks import make_task
from graphormer_sepnorm.training.finetune import check_start, from_weights
from graphormer_sepnorm.training.settings import refuse_patience, with_given, with_settings


class SmilesEstimator(BaseEstimator):
    """An estimator whose X contains molecules."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle, with networks on the CPU, so that it can be read without a GPU."""
        for model in (vars(self).get("model_"), vars(self).get("embedder_")):
            if model is not None:
                model.to(torch.device("cpu"))
        return super().__getstate__()

    def _read_input(self, X, reset: bool) -> np.ndarray:
        """The SMILES of X: [M].

        Args:
            X: input as given by the user.
            reset: True in ``fit``, which sets ``n_features_in_``.

        Raises:
            InputError: X is not one column.
        """
        refuse_one_or_many(X)
        column = one_column(np.asarray(X, dtype=object), "X")
        if reset:
            self.n_features_in_ = 1
        return np.array([as_smiles(molecule) or molecule for molecule in column], dtype=object)


def refuse_one_or_many(X) -> None:
    """Raises InputError for one molecule that is in no list, and for a table of several columns."""
    if isinstance(X, str | Chem.Mol):
        raise InputError("X is one molecule: put it in a list, as in ['CCO']")
    names = list(getattr(X, "columns", ()))
    if len(names) > 1:
        texts = [str(name) for name in names]
        try:
            example = names[find_column(texts, None, "X")]
        except InputError:
            example = "NAME"
        raise InputError(
            f"X is a table of {len(names)} columns ({names_shown(texts)}): pass only the one with the SMILES, as in "
            f"table[{example!r}]; for conditions, use the command train with --feature-columns"
        )


OF_TABLE = declared(TableOptions, only=("split", "metric", "loss", "weights", "balance", "strip_salts", "standardize"))
OF_RECIPE = declared(TrainConfig, without=("seed", "patience", "keep"))
PYTHON_TYPES = {
    "split": "str",
    "metric": "str | None",
    "loss": "str | None",
    "weights": "Sequence[float]",
    "standardize": "str | None",
}
OF_PLAN = [each for each in fields(Plan) if each.name != "resume"]

# Each default is that of the command's declaration; None: the recipe's.
Parameters: Any = make_dataclass(
    "Parameters",
    [
        ("recipe", str, "foundation"),
        *[(each.name, each.type, each.default) for each in OF_PLAN],
        *[(each.field, PYTHON_TYPES.get(each.field, each.type), each.default) for each in OF_TABLE],
        *[(each.field, each.type | None, None) for each in OF_RECIPE],
        ("settings", "dict | None", None),
        ("pretrained", "str | os.PathLike | None", None),
        ("frozen_layers", "int | None", None),
        ("device", str, "auto"),
        ("random_state", "int | np.random.RandomState | None", 0),
        ("verbose", bool, False),
    ],
    kw_only=True,
)


OTHER_NAMES = {  # of options of the command, whose parameters are named otherwise
    "ensemble": "networks",
    "baseline": "forest",
    "freeze": "frozen_layers",
    "target_weights": "weights",
    "seed": "random_state",
    "dropout": "settings",
    "precision": "settings",
}


# Types of the parameters that no config validates.
TYPES: Any = {
    **dict.fromkeys(("forest", "blend", "quick", "balance", "strip_salts", "verbose"), bool),
    **dict.fromkeys(("recipe", "split", "device"), str),
    **dict.fromkeys(("metric", "loss", "standardize", "pretrained"), str | None),
    "networks": int,
    "frozen_layers": int | None,
    "settings": dict[str, Any] | None,
}
FIELDS: Any = {name: (each, ...) for name, each in TYPES.items()}
Typed = create_model("Typed", __config__=STRICT, **FIELDS)


def check_types(asked: dict[str, Any]) -> None:
    """Raises InputError for a parameter of a wrong type, and names it."""
    values = {name: plain(asked[name]) for name in TYPES}
    try:
        Typed(**{name: os.fspath(each) if isinstance(each, os.PathLike) else each for name, each in values.items()})
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise InputError(f"{first_problem(error)}, not {asked[name]!r}") from None


def weights_of_targets(given: Any) -> tuple[float, ...]:
    """The weights from a number or a sequence of them; raises InputError for anything else."""
    try:
        return tuple(float(weight) for weight in np.atleast_1d(given))
    except (TypeError, ValueError):
        raise InputError(f"weights: give a number for each target, such as [1, 0.5], not {given!r}") from None


def in_python(message: str) -> str:
    """A message with the names of parameters in place of those of options."""

    def parameter(option: re.Match[str]) -> str:
        name = option[1].replace("-", "_")
        return OTHER_NAMES.get(name, name)

    return re.sub("--([a-z][a-z-]*)", parameter, message)


def checked(init: Any) -> Any:
    """The ``__init__`` of ``Parameters`` with messages on unknown names, with the one meant, and on values without."""
    names = [each.name for each in fields(Parameters)]

    @functools.wraps(init)
    def checking(self: object, *values: Any, **parameters: Any) -> None:
        if values:
            raise TypeError(f"{type(self).__name__}() takes only parameters with a name, as in quick=True")
        for name in parameters:
            if name not in names:
                near = did_you_mean(OTHER_NAMES.get(name, name), names)
                raise TypeError(f"{type(self).__name__}() has no parameter {name!r}{near}")
        init(self, **parameters)

    return checking


class TableEstimator(SmilesEstimator):
    """The table model of ``train FILE``: the same molecules, labels, folds and seed give the same predictions.

    Args:
        recipe: recipe of the networks, as ``--recipe``: "foundation" fine-tunes pretrained networks; others, such as
            "slim", start from random weights.
        networks: number of networks, one per fold.
        forest: whether to include the forest of extremely randomized trees.
        blend: whether to include members other than the networks.
        quick: fit only the kernel machine, which takes about half a minute.
        split: how molecules are put into folds, as ``--split``: "scaffold", "scaffold-deepchem", "random" or "butina".
            ``train`` with ``--split column`` or ``time`` has random folds.
        balance: whether positives and negatives of a classification get the same total weight.
        metric: as ``--metric``: the metric of the model, which also chooses the loss of a regression.
        loss: loss of a regression, "l1" or "mse"; None: "mse" for the metrics rmse and r2, otherwise "l1".
        weights: weight of each target in the loss; none: all are equal.
        strip_salts: whether to read molecules without counter-ions and solvents.
        standardize: as ``--standardize``: learn and predict each molecule as its neutral "parent", the canonical
            "tautomer" of that, or the parent of "chembl"; None: as it is.
        TRAINING
        settings: other fields of the config, as ``--set``, such as ``{"model.layers": 4}``.
        pretrained: run folder, weights file or shipped weights to start from; None: those of the recipe.
        frozen_layers: number of first layers whose weights are frozen; None: those that the recipe freezes.
        device: "auto", "cpu", "cuda", "cuda:1" or "mps".
        random_state: seed as in the command, or the random state that a seed is drawn from.
        verbose: print a line per epoch.

    Attributes:
        model_: the ``TableModel``.
        out_of_fold_: out-of-fold predictions for the rows of X in their order, NaN for molecules without a label:
            float64 in the shape of ``predict``, and of a classifier in that of ``predict_proba``. Rows of the same
            molecule, which a regression averages, have the same prediction.
        left_out_: reasons for the members that were left out, by name.
        n_features_in_: 1, the column of molecules.
    """

    __init__ = checked(Parameters.__init__)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Adds the arguments and attributes described above to the description of an estimator."""
        super().__init_subclass__(**kwargs)
        summary, _, own = inspect.cleandoc(cls.__doc__ or "").partition("\n\nAttributes:\n")
        _, heading, shared = inspect.cleandoc(TableEstimator.__doc__ or "").partition("\n\nArgs:")
        training = [f"{each.field}: {each.option.help} None: the recipe's." for each in OF_RECIPE]
        described = summary + heading + shared.replace("TRAINING", "\n    ".join(training))
        cls.__doc__ = "\n".join(filter(None, (described, own)))

    def _learn(self, X, rows: list[LabelledRow], options: dict, sample_weight, class_names: tuple = ()) -> None:
        """Sets ``model_``, ``out_of_fold_`` and ``left_out_``.

        Args:
            X: M molecules.
            rows: M rows, numbered from 1, without SMILES.
            options: ``targets``, ``kind`` and ``classes`` of ``TableOptions``.
            sample_weight: [M], or None.
            class_names: as in ``TaskConfig``.
        """
        smiles = self._read_input(X, reset=True)
        check_consistent_length(smiles, rows, sample_weight)
        if len(smiles) < 2:
            raise InputError(f"a table model cannot learn from {len(smiles)} molecule (n_samples={len(smiles)})")
        asked = self.get_params(deep=False)
        check_types(asked)
        seed = self._find_seed()
        plan = Plan(**{each.name: plain(asked[each.name]) for each in OF_PLAN})
        if plan.networks < 2:
            raise InputError(f"networks is {plan.networks}: there is one per fold, so at least 2")
        known("split", asked["split"], SPLITTERS)
        given = {each.field: plain(asked[each.field]) for each in OF_TABLE}
        given["weights"] = weights_of_targets(asked["weights"])
        try:
            chosen = TableOptions("y", seed=seed, **options, **given)
        except InputError as error:
            raise InputError(in_python(str(error))) from None
        config = self._make_config(replace(table_task(chosen), class_names=class_names), chosen.featurizer, seed)
        seed = config.train.seed
        chosen = replace(chosen, seed=seed)
        rows = with_weights(rows, sample_weight)
        known_rows = replace(read_rows(smiles, rows, config.featurizer), class_names=class_names)
        table = known_rows.with_means(chosen.kind)
        refuse_constant(chosen, table)
        is_weighted = len({row.weight for row in table.rows}) > 1
        labels = labels_of(table.rows, config.task, weighted=is_weighted)
        make_task(config.task).check_learnable(labels.y)
        for name, column in zip(config.task.targets, labels.counting().y.T, strict=True):
            if np.isnan(column).all():
                raise InputError(f"all exact labels of target {name} have the sample weight 0")
        folds = make_folds(table.structures, labels, chosen.split, seed, plan.networks)
        config = replace(config, task=labels.task)
        if plan.quick and (unused := quick.unused_parameters(asked, Parameters())):
            warnings.warn(quick.remark("quick=True", unused), stacklevel=3)
        setting = Setting(config, verbose=bool(asked["verbose"]))
        members = [name for step in plan.steps for name in step]
        with computing(choose(asked["device"])), torch.random.fork_rng():
            fitted = fit_table(MoleculeFeatures(table.structures.smiles), labels, folds, setting, members)
        self.model_, self.left_out_ = fitted.model, fitted.left_out
        self.out_of_fold_ = for_each_row(fitted.out_of_fold.values, known_rows, table, len(smiles))
        learnt = LabelledTable([replace(row, split="train") for row in table.rows])
        self._learnt = learnt, config, replace(chosen, path=IN_PYTHON)

    def _find_seed(self) -> int:
        """The seed given by ``random_state`` or drawn from it."""
        state = self.get_params(deep=False)["random_state"]
        return int(state) if isinstance(state, Integral) else int(check_random_state(state).randint(2**31 - 1))

    def _make_config(self, task: TaskConfig, featurizer: str, seed: int) -> Config:
        """The config of the networks; raises InputError for a parameter out of range."""
        asked = self.get_params(deep=False)
        recipe = find_recipe(asked["recipe"])
        given = {each.field: plain(asked[each.field]) for each in OF_RECIPE}
        start = str(asked["pretrained"]) if asked["pretrained"] else None
        train = with_given(recipe.train, {**given, "start_from": start, "seed": seed})
        config = task_config(TABLE, featurizer, task, train, architecture=recipe.architecture)
        if train.start_from is not None:
            config = from_weights(config, start, asked["frozen_layers"])
        elif asked["frozen_layers"]:
            raise InputError("frozen_layers needs pretrained: only layers of a trained model can keep their weights")
        settings = asked["settings"] or {}
        texts = [f"{name}={json.dumps(plain(value))}" for name, value in settings.items()]
        config = with_settings(config, texts, "settings")
        refuse_patience(config.train, recipe.train)
        if not asked["quick"]:  # which trains no networks
            check_start(config)
        return config

    def _predictions(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Values or probabilities, and standard deviations: float32 [M, T] each.

        Raises:
            InputError: a molecule cannot be read.
        """
        check_is_fitted(self)
        parts = all_read(self.model_, self._read_input(X, reset=False), self.get_params(deep=False)["device"])
        values, spread = (np.concatenate(each) for each in zip(*((p.values, p.spread) for p in parts), strict=True))
        return values, spread

    def save(self, folder: str | os.PathLike) -> None:
        """Writes the model and its training molecules with their labels to a new folder.

        ``load_model`` and the commands ``predict``, ``explain``, ``suggest``, ``info`` and ``serve`` read it, and
        ``evaluate FOLDER --csv TABLE``, since it has no test molecules; ``train --resume`` does not continue it.

        Raises:
            InputError: the folder already holds a model or another table, or writing fails.
        """
        check_is_fitted(self)
        if not isinstance(folder, str | os.PathLike):
            raise InputError(f"name the folder to save to, such as 'runs/model', not {folder!r}")
        run = RunFolder(Path(folder))
        if run.path.is_file():
            raise InputError(f"{folder} is a file: choose a new folder")
        if run.stack.exists() or run.holds_run or run.parts():
            raise InputError(f"{folder} already holds a model: choose another folder")
        write_labelled(run.path, *self._learnt)
        self.model_.save(run.path)


def plain(value: Any) -> Any:
    """Converts a NumPy number, as a parameter search gives it, to a Python number."""
    return value.item() if isinstance(value, np.generic) else value


def read_rows(smiles: np.ndarray, rows: list[LabelledRow], featurizer: str) -> LabelledTable:
    """The rows that have labels, with their molecules and structures.

    Args:
        smiles: M SMILES.
        rows: M rows, numbered from 1.
        featurizer: name of the featurizer that reads the molecules.

    Raises:
        InputError: no row has a label, or a molecule cannot be read.
    """
    known = [row for row in rows if row.bounds or not np.isnan(row.labels).all()]
    if not known:
        raise InputError("y has no labels: all of them are missing")
    table = LabelledTable([replace(row, smiles=smiles[row.number - 1]) for row in known])
    structures = keep_readable(table, featurizer)
    for number, _, reason in table.skipped:
        raise InputError(f"row {number - 1} (counted from 0): {reason}")
    return replace(table, structures=structures)


def with_weights(rows: list[LabelledRow], sample_weight) -> list[LabelledRow]:
    """M rows with their sample weights [M]; unchanged if there are none."""
    if sample_weight is None:
        return rows
    weights = _check_sample_weight(sample_weight, np.empty(len(rows)), dtype=np.float64, ensure_non_negative=True)
    return [replace(row, weight=weight) for row, weight in zip(rows, weights.tolist(), strict=True)]


def for_each_row(values: np.ndarray, known: LabelledTable, learnt: LabelledTable, count: int) -> np.ndarray:
    """Values for the molecules of a table, in the order of the input.

    Args:
        values: float64 [N, T], of the N rows of ``learnt``.
        known: the rows that have labels.
        learnt: the same after ``with_means``.
        count: number M of molecules in the input.

    Returns:
        float64 [M, T]: for averaged rows, that of their molecule; NaN for molecules without a label.
    """
    places = list(range(len(known.rows)))
    if learnt.measured:
        place_of = {key: place for place, key in enumerate(learnt.structures.keys)}
        places = [place_of[key] for key in known.structures.keys]
    found = np.full((count, values.shape[1]), np.nan)
    found[[row.number - 1 for row in known.rows]] = values[places]
    return found


def all_read(model: MovableModel[Result], smiles: np.ndarray, device: str) -> list[Result]:
    """The results of a model for chunks of molecules; raises InputError if one cannot be read or there are none."""
    if not len(smiles):
        raise InputError("X has no molecules: found 0 sample(s), at least 1 is needed")
    with computing(choose(device)):
        model = model.to(current().device)
        chunks = in_chunks(smiles.tolist(), molecules_at_once(model.device))
        parts = [part for _, part in compute_chunks(model, chunks, list)]
    for row, error in enumerate(error for part in parts for error in part.errors):
        if error:
            raise InputError(f"row {row} (counted from 0): {error}")
    return parts
