"""Shared base of the scikit-learn estimators: reading X and fitting a table model; M molecules, T targets."""

import inspect
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import ValidationError, create_model
from rdkit import Chem
from sklearn.base import BaseEstimator
from sklearn.utils import InputTags, Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted

from graphormer_sepnorm.chem.smiles import one_column
from graphormer_sepnorm.config import OPTIONS, Config, TaskConfig, TrainConfig, first_problem
from graphormer_sepnorm.encodings.base import STRICT
from graphormer_sepnorm.errors import InputError, one_of
from graphormer_sepnorm.interfaces import quick
from graphormer_sepnorm.predict.predictors import MovableModel, Result, compute_all
from graphormer_sepnorm.recipes import find_recipe, task_config
from graphormer_sepnorm.runs.folder import IN_PYTHON, RunFolder
from graphormer_sepnorm.system.device import choose, computing, current
from graphormer_sepnorm.table_model.fit import fit_table
from graphormer_sepnorm.table_model.load import as_smiles
from graphormer_sepnorm.table_run import Plan, to_fit
from graphormer_sepnorm.tables.formats.table import names_shown, places_of_column
from graphormer_sepnorm.tables.labels import LabelledRow, LabelledTable, keep_readable, refuse_constant, table_task
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import TABLE, write_labelled
from graphormer_sepnorm.tables.remarks import columns_of_numbers, range_words
from graphormer_sepnorm.tables.splits import SPLITTERS
from graphormer_sepnorm.tasks import TASKS, make_task
from graphormer_sepnorm.tasks.scales import better_scale
from graphormer_sepnorm.training.finetune import check_start, from_weights
from graphormer_sepnorm.training.settings import refuse_patience, with_given, with_settings

NO_LABELS = "y has no labels: all of them are missing"


class SmilesEstimator(BaseEstimator):
    """An estimator whose X contains molecules."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = InputTags(one_d_array=True, two_d_array=False, string=True)
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle, with networks on the CPU, so that it can be read without a GPU."""
        for name in vars(self).keys() & {"model_", "embedder_"}:
            vars(self)[name].to(torch.device("cpu"))
        return super().__getstate__()

    def _read_input(self, X, reset: bool) -> np.ndarray:
        """The SMILES of X, [M]; ``reset`` in ``fit``, which sets ``n_features_in_``."""
        if isinstance(X, str | Chem.Mol):
            raise InputError("X is one molecule: put it in a list, as in ['CCO']")
        if len(names := list(getattr(X, "columns", ()))) > 1:
            places = places_of_column(texts := list(map(str, names)), None)
            example = names[places[0]] if len(places) == 1 else "NAME"
            columns = f"X is a table of {len(names)} columns ({names_shown(texts)}): pass only the one with the SMILES"
            other = "for conditions, use the command train with --feature-columns"
            raise InputError(f"{columns}, as in table[{example!r}]; {other}")
        column = one_column(np.asarray(X, dtype=object), "X")
        if reset:
            self.n_features_in_ = 1
        return np.array([as_smiles(molecule) or molecule for molecule in column], dtype=object)


def check_types(parameters: Mapping[str, Any]) -> None:
    """Raises InputError for a parameter of another type than in the constructor, and names it."""
    types: Any = {name: each.annotation for name, each in inspect.signature(TableEstimator).parameters.items()}
    # Two of many types are read later.
    checked: Any = {name: (types[name], ...) for name in types if name not in ("random_state", "weights")}
    typed = create_model("Typed", __config__=STRICT, **checked)
    try:
        typed(**{name: parameters[name] for name in checked})
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise InputError(f"{first_problem(error)}, not {parameters[name]!r}") from None


class TableEstimator(SmilesEstimator):
    """The table model of ``train FILE``: the same molecules, labels, folds and seed give the same predictions."""

    def __init__(
        self,
        *,
        recipe: str = "foundation",
        networks: int | None = None,
        forest: bool = True,
        blend: bool = True,
        quick: bool = False,
        split: str = "scaffold",
        balance: bool = False,
        metric: str | None = None,
        loss: Literal["l1", "mse"] | None = None,
        weights: float | Sequence[float] = (),
        strip_salts: bool = False,
        standardize: str | None = None,
        epochs: int | None = None,
        min_updates: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        warmup: float | None = None,
        schedule: Literal["cosine", "linear", "trapezoid"] | None = None,
        cooldown: float | None = None,
        dropout_until: float | None = None,
        statistics_until: float | None = None,
        optimizer: str | None = None,
        weight_decay: float | None = None,
        clip_norm: float | None = None,
        averaging: float | None = None,
        compile: bool | None = None,
        frozen_epochs: int | None = None,
        frozen_statistics: bool | None = None,
        settings: dict[str, Any] | None = None,
        pretrained: str | os.PathLike | None = None,
        frozen_layers: int | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ):
        """All parameters have names and default values, which are those of the command.

        Args:
            recipe: recipe of the networks, as ``--recipe``: "foundation" fine-tunes pretrained networks; others, such
                as "slim", start from random weights.
            networks: number of networks, one per fold; None: 5, or none if a first one does not help.
            forest: whether to include the forest of extremely randomized trees.
            blend: whether to include members other than the networks.
            quick: fit only the kernel machine, which takes about half a minute.
            split: how molecules are put into folds, as ``--split``: "scaffold", "scaffold-deepchem", "random" or
                "butina". ``train`` with ``--split column`` or ``time`` has random folds.
            balance: whether positives and negatives of a classification get the same total weight.
            metric: as ``--metric``: the metric of the model, which also chooses the loss of a regression.
            loss: loss of a regression, "l1" or "mse"; None: "mse" for the metrics rmse and r2, otherwise "l1".
            weights: weight of each target in the loss; none: all are equal.
            strip_salts: whether to read molecules without counter-ions and solvents.
            standardize: as ``--standardize``: learn and predict each molecule as its neutral "parent", the canonical
                "tautomer" of that, or the parent of "chembl"; None: as it is.
            epochs, min_updates, batch_size: passes over the molecules, least updates, molecules per update.
            lr, warmup, schedule, cooldown: peak learning rate, fraction of updates in which it rises, how it falls to
                zero, fraction of updates in which a trapezoid falls.
            dropout_until, statistics_until: fraction of the epochs that have dropout, and of those in which BatchNorm
                uses the statistics of each batch.
            optimizer, weight_decay, clip_norm, averaging: "adamw" or "muon", decay of the weight matrices, maximum norm
                of the gradient, decay per update of the mean of weights that is evaluated.
            compile: compile the model with PyTorch, which takes minutes; for GPUs.
            frozen_epochs, frozen_statistics: first epochs in which only the head learns, and whether the statistics of
                BatchNorm stay those of the start. Of all these, from ``epochs`` on, None: the recipe's.
            settings: other fields of the config, as ``--set``, such as ``{"model.layers": 4}``.
            pretrained: run folder, weights file or shipped weights to start from; None: those of the recipe.
            frozen_layers: number of first layers whose weights are frozen; None: those that the recipe freezes.
            device: "auto", "cpu", "cuda", "cuda:1" or "mps".
            random_state: seed as in the command, or the random state that a seed is drawn from.
            verbose: print a line per epoch.
        """
        self.__dict__.update({name: value for name, value in locals().items() if name != "self"})

    def _learn(self, X, rows: list[LabelledRow], options: dict, sample_weight, class_names: tuple = ()) -> None:
        """Sets ``model_``, ``out_of_fold_`` and ``left_out_``.

        The rows are numbered from 1 and have no SMILES; ``options`` are targets, kind and classes of ``TableOptions``.
        """
        smiles, parameters = self._read_input(X, reset=True), self._parameters()
        check_consistent_length(smiles, rows, sample_weight)
        if len(smiles) < 2:
            raise InputError(f"a table model cannot learn from {len(smiles)} molecule (n_samples={len(smiles)})")
        check_types(parameters)
        look = parameters["networks"] is None
        parameters |= {"networks": Plan.networks} if look else {}
        plan = Plan(**{name: parameters[name] for name in ("networks", "forest", "blend", "quick")}, look=look)
        if plan.networks < 2:
            raise InputError(f"networks is {plan.networks}: there is one per fold, so at least 2")
        chosen = table_options(parameters, options)
        task = replace(table_task(chosen), class_names=class_names)
        state = parameters["random_state"]
        seed = int(state) if isinstance(state, Integral) else int(check_random_state(state).randint(2**31 - 1))
        config = make_config(parameters, task, chosen.featurizer, seed)
        chosen = replace(chosen, seed=config.train.seed)
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
            rows = [replace(row, weight=weight) for row, weight in zip(rows, weights.tolist(), strict=True)]
        known_rows = usable_rows(smiles, rows, config.featurizer, class_names)
        table = known_rows.with_means(chosen.kind)
        refuse_constant(chosen, table)
        for target, column in columns_of_numbers(chosen, table):
            if better_scale(target, column):
                warnings.warn(f"{range_words(target, column)}: fit log10 of them", stacklevel=3)
        is_weighted = len({row.weight for row in table.rows}) > 1
        known = to_fit(table, chosen, config, plan, is_weighted)
        make_task(config.task).check_learnable(known.labels.y)
        for name, column in zip(config.task.targets, known.labels.counting().y.T, strict=True):
            if np.isnan(column).all():
                raise InputError(f"all exact labels of target {name} have the sample weight 0")
        config = known.config
        if plan.quick and (unused := quick.unused_parameters(parameters, type(self)().get_params())):
            warnings.warn(quick.quick_remark("quick=True", unused), stacklevel=3)
        with computing(choose(parameters["device"])), torch.random.fork_rng():
            fitted = fit_table(replace(known, verbose=parameters["verbose"]), plan.members)
        self.model_, self.left_out_ = fitted.model, fitted.left_out
        self.out_of_fold_ = for_each_row(fitted.out_of_fold.values, known_rows, table, len(smiles))
        learnt = LabelledTable([replace(row, split="train") for row in table.rows])
        self._learnt = learnt, config, replace(chosen, path=IN_PYTHON)

    def _parameters(self) -> dict[str, Any]:
        """All parameters, with numbers of NumPy, as a parameter search gives them, as those of Python."""
        return {name: plain(value) for name, value in self.get_params(deep=False).items()}

    def _predictions(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Values or probabilities, and standard deviations: float32 [M, T] each."""
        check_is_fitted(self)
        predictions = all_read(self.model_, self._read_input(X, reset=False), self._parameters()["device"])
        return predictions.values, predictions.spread

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
        if (run := RunFolder(Path(folder))).path.is_file():
            raise InputError(f"{folder} is a file: choose a new folder")
        if run.stack.exists() or run.holds_run or run.parts():
            raise InputError(f"{folder} already holds a model: choose another folder")
        write_labelled(run.path, *self._learnt)
        self.model_.save(run.path)


def table_options(parameters: dict[str, Any], labels: dict[str, Any]) -> TableOptions:
    """The options of a table with the labels of ``fit``; raises InputError for parameters that do not fit them."""
    one_of("split", parameters["split"], SPLITTERS)
    asked = parameters["weights"]
    try:
        weights = tuple(map(float, np.atleast_1d(asked)))
    except (TypeError, ValueError):
        raise InputError(f"weights: give a number for each target, such as [1, 0.5], not {asked!r}") from None
    kind, loss = labels["kind"], parameters["loss"]
    if loss is not None and "loss" not in OPTIONS[kind]:
        raise InputError("loss is only for a regression")
    metric = TASKS[kind].find_metric(parameters["metric"])
    targets = labels.get("classes", labels["targets"])
    TaskConfig(kind, metric, targets, balance=parameters["balance"], loss=loss or "l1", weights=weights)
    others = {name: parameters[name] for name in ("split", "balance", "metric", "loss", "strip_salts", "standardize")}
    return TableOptions("y", weights=weights, **labels, **others)


def make_config(parameters: dict[str, Any], task: TaskConfig, featurizer: str, seed: int) -> Config:
    """The config of the networks; raises InputError for a parameter out of range."""
    recipe = find_recipe(parameters["recipe"])
    names = {each.name for each in fields(TrainConfig)} & parameters.keys() - {"frozen_layers"}
    start = str(parameters["pretrained"]) if parameters["pretrained"] else None
    train = with_given(recipe.train, {name: parameters[name] for name in names} | {"start_from": start, "seed": seed})
    config = task_config(TABLE, featurizer, task, replace(recipe, train=train))
    config = from_weights(config, start, parameters["frozen_layers"], ("frozen_layers", "pretrained"))
    settings = [f"{name}={json.dumps(plain(value))}" for name, value in (parameters["settings"] or {}).items()]
    config = with_settings(config, settings, "settings")
    refuse_patience(config.train, recipe.train)
    if not parameters["quick"]:  # which trains no networks
        check_start(config)
    return config


def plain(value: Any) -> Any:
    """A number of NumPy as one of Python; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def usable_rows(smiles: np.ndarray, rows: list[LabelledRow], featurizer: str, class_names: tuple) -> LabelledTable:
    """Those of M rows that have labels, with their molecules and structures; raises InputError if none has."""
    labelled = [row for row in rows if row.bounds or not np.isnan(row.labels).all()]
    if not labelled:
        raise InputError(NO_LABELS)
    table = LabelledTable([replace(row, smiles=smiles[row.number - 1]) for row in labelled], class_names=class_names)
    keep_readable(table, featurizer)
    for number, _, reason in table.skipped:
        raise InputError(f"row {number - 1} (counted from 0): {reason}")
    return table


def for_each_row(values: np.ndarray, labelled: LabelledTable, learnt: LabelledTable, count: int) -> np.ndarray:
    """Values [N, T] of the N rows of ``learnt``, which are means of ``labelled`` ones, as [M, T], else NaN."""
    if learnt.measured:
        place_of = {key: place for place, key in enumerate(learnt.structures.keys)}
        values = values[[place_of[key] for key in labelled.structures.keys]]
    result = np.full((count, values.shape[1]), np.nan)
    result[[row.number - 1 for row in labelled.rows]] = values
    return result


def all_read(model: MovableModel[Result], smiles: np.ndarray, device: str) -> Result:
    """The results of a model for molecules; raises InputError if one cannot be read or there are none."""
    if not len(smiles):
        raise InputError("X has no molecules: found 0 sample(s), at least 1 is needed")
    with computing(choose(device)):
        predictions = compute_all(model.to(current().device), smiles.tolist())
    for row, error in enumerate(predictions.errors):
        if error:
            raise InputError(f"row {row} (counted from 0): {error}")
    return predictions
