"""The model of a user's table, as one object: fit, save, load, predict.

Axis letters: K members, M molecules, T targets.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from graphormer_sepnorm.chem.features import FEATURIZERS, FOR_TABLES
from graphormer_sepnorm.config import Config, TaskConfig, first_problem
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import RECIPES, task_config
from graphormer_sepnorm.runs.arrays import checked_array, load_arrays, save_arrays
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.base import Member, Setting
from graphormer_sepnorm.table_model.members.kernel import BODY
from graphormer_sepnorm.table_model.stacking import stacking_weights, weighted_mean
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.training.finetune import starting_from

STACK = "stack.safetensors"
FORMAT = 1


@dataclass(frozen=True)
class TableModel:
    """Members whose predictions are averaged by weights that were learnt out of fold.

    Attributes:
        task: what is predicted.
        featurizer: name in ``FEATURIZERS`` of what reads its molecules.
        members: K of them, by their names in ``MEMBERS``.
        weights: float64 [K, T], as ``stacking_weights``.
    """

    task: TaskConfig
    featurizer: str
    members: dict[str, Member]
    weights: np.ndarray

    def by_member(self, molecules: MoleculeFeatures) -> np.ndarray:
        """What each member predicts: float64 [K, M, T]."""
        return np.stack([member.predict(molecules) for member in self.members.values()])

    def values(self, molecules: MoleculeFeatures) -> np.ndarray:
        """Values, or probabilities: float64 [M, T]."""
        return combined(self.task, self.by_member(molecules), self.weights)

    def save(self, folder: Path) -> None:
        """Writes the members, and then how they are stacked; raises InputError if it cannot be written."""
        for member in self.members.values():
            member.save(folder)
        facts = {
            "format": FORMAT,
            "members": list(self.members),
            "task": asdict(self.task),
            "featurizer": self.featurizer,
        }
        save_arrays(folder / STACK, {"weights": self.weights}, facts)

    @classmethod
    def load(cls, folder: Path) -> "TableModel":
        """Reads what ``save`` wrote.

        Raises:
            InputError: a file is missing or damaged, of a newer format, or names what this release does not have.
        """
        path = folder / STACK
        arrays, facts = load_arrays(path)
        if facts.get("format") != FORMAT:
            raise InputError(f"{path} has format {facts.get('format')!r}; this release reads format {FORMAT}")
        names, featurizer, task = facts.get("members"), facts.get("featurizer"), read_task(facts.get("task"), path)
        if not (isinstance(names, list) and names and set(names) <= MEMBERS.keys() and featurizer in FEATURIZERS):
            raise InputError(f"{path} names members or features that this release does not have")
        weights = checked_array(arrays, "weights", np.float64, 2, path)
        if weights.shape != (len(names), len(task.targets)) or not (np.isfinite(weights) & (weights >= 0)).all():
            raise InputError(f"{path} is damaged: its weights are not those of its members")
        return cls(task, featurizer, {name: MEMBERS[name].load(folder) for name in names}, weights)


@dataclass(frozen=True)
class FittedTable:
    """A table model with what its members predicted for the molecules that it learnt from.

    Attributes:
        model: fitted.
        out_of_fold: float64 [K, M, T], by members that did not see the molecule.
        left_out: by name, why a member does not take part.
    """

    model: TableModel
    out_of_fold: np.ndarray
    left_out: dict[str, str]


def foundation_config(task: TaskConfig, seed: int = 0) -> Config:
    """The config of networks that are fine-tuned from the foundation on a table."""
    recipe = RECIPES["foundation"]
    config = task_config(TABLE, FOR_TABLES, task, replace(recipe.train, seed=seed), architecture=recipe.architecture)
    return starting_from(config, BODY)


def fit_table(
    molecules: MoleculeFeatures,
    labels: Labels,
    folds: Folds,
    setting: Setting,
    members: Iterable[str] = tuple(MEMBERS),
) -> FittedTable:
    """Fits members and stacks them.

    Args:
        molecules, labels: M that are learnt from.
        folds: of them; molecules that are to stay together are in one fold.
        setting: how and where members are fitted.
        members: names in ``MEMBERS``; one that cannot learn from the table is left out.

    Raises:
        InputError: no member can learn from the table; the reason is that of the first.
    """
    fitted, left_out = {}, {}
    for name in members:
        try:
            fitted[name] = MEMBERS[name].fit(molecules, labels, folds, setting)
        except InputError as error:
            left_out[name] = str(error)
    if not fitted:
        raise InputError("; ".join(f"{name}: {reason}" for name, reason in left_out.items()))
    out_of_fold = np.stack([each.out_of_fold for each in fitted.values()])
    weights = stacking_weights(labels, out_of_fold)
    kept = {name: each.member for name, each in fitted.items()}
    model = TableModel(labels.task, setting.config.featurizer, kept, weights)
    return FittedTable(model, out_of_fold, left_out)


def combined(task: TaskConfig, predictions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The prediction of members [K, M, T] with weights [K, T]: float64 [M, T]; probabilities of classes add up to 1."""
    values = weighted_mean(predictions, weights)
    return values / values.sum(axis=1, keepdims=True) if task.kind == "multiclass" else values


def read_task(known: object, path: Path) -> TaskConfig:
    """The task that a file names; raises InputError for one that is none."""
    try:
        return TypeAdapter(TaskConfig).validate_json(json.dumps(known))
    except ValidationError as error:
        raise InputError(f"{path} is damaged: its task is none, {first_problem(error)}") from None
