"""Fitting of a table model: members, weights, and calibration. Axis letters: K members, M molecules, T targets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from graphormer_sepnorm.chem.features import FOR_TABLES
from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.classes import fit_calibration, fit_class_sets
from graphormer_sepnorm.predict.domain import MAX_REFERENCES, Domain, evenly, fit_domain
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.predict.trust import Trust, calibrated
from graphormer_sepnorm.recipes import RECIPES, task_config
from graphormer_sepnorm.system import distributed, progress
from graphormer_sepnorm.table_model.features import condition_values, looks
from graphormer_sepnorm.table_model.labels import CannotLearn, Labels
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.base import Fitted, ToFit
from graphormer_sepnorm.table_model.members.kernel import KernelMember, as_values, fit_tuned
from graphormer_sepnorm.table_model.model import TableModel, similarity_to_training
from graphormer_sepnorm.table_model.reference import BODY, Encoder, landmarks
from graphormer_sepnorm.table_model.stacking import Stacked, combined, fit_difficulty, of_other_folds, stacking_weights
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.training.finetune import starting_from

HIDDEN = 1.8  # factor of the standard deviation of errors that a bound hides: its likelihood says too little
LEAST_SHARE = 0.1  # share of the mean expected error that bounds the expected error from below
DESCRIBING = "describing the molecules"  # the phase before all members
CLEAR = 2.0  # standard errors of a gain at which one of several targets decides
PARTS = 5  # of the first fold: the weights that predict a part are learnt on the others


@dataclass(frozen=True)
class FittedTable:
    model: TableModel
    out_of_fold: Stacked
    left_out: dict[str, str]  # reasons, by the name of a member
    remarks: dict[str, str] = field(default_factory=dict)  # on members that behave unexpectedly, by name

    @property
    def notes(self) -> dict[str, dict]:
        notes = {"left_out_members": self.left_out, "remarks": self.remarks}
        return {name: value for name, value in notes.items() if value}


def foundation_config(task: TaskConfig, seed: int = 0) -> Config:
    recipe = RECIPES["foundation"]
    config = task_config(TABLE, FOR_TABLES, task, replace(recipe, train=replace(recipe.train, seed=seed)))
    return starting_from(config, BODY)


def fit_table(
    table: ToFit, members: Sequence[str] = tuple(MEMBERS), early: Callable[[TableModel], None] | None = None
) -> FittedTable:
    """Fits members and their weights, and calibrates the whole; ``early`` gets a model of the kernel before others."""
    fitted, left_out = fit_members(table, members, early)
    if not fitted.keys() & {"kernel", "networks"}:
        raise InputError("; ".join(f"{name}: {reason}" for name, reason in left_out.items()))
    remarks = {name: each.remark for name, each in fitted.items() if each.remark}
    return FittedTable(*put_together(fitted, table), left_out, remarks)


def fit_members(
    table: ToFit, members: Sequence[str], early: Callable[[TableModel], None] | None = None
) -> tuple[dict[str, Fitted], dict[str, str]]:
    """Fitted members, those before included, and the reasons for those that cannot be fitted, by name."""
    progress.begin(DESCRIBING)
    table.molecules.read(table.config.featurizer)
    fitted = dict(table.fitted)
    left_out: dict[str, str] = {}
    learnt = replace(table, labels=table.labels.counting().differences(), fitted=fitted)
    for name in members:
        if table.verbose and distributed.rank() == 0:
            (learnt_first, _), *others = table.folds.parts()
            count = len(learnt_first) if name == "networks" and not others else len(table.molecules)
            progress.say([f"fitting the {name} to {count:,} molecules"])
        progress.begin(name)
        try:
            fitted[name] = MEMBERS[name].fit(learnt)
        except CannotLearn as error:
            left_out[name] = str(error)
        if early and name in fitted and name == "kernel" and len(members) > 1:
            early(put_together(fitted, table)[0])
    return fitted, left_out


def put_together(fitted: dict[str, Fitted], table: ToFit) -> tuple[TableModel, Stacked]:
    molecules, labels = table.molecules, table.labels
    by_member = np.stack([each.out_of_fold for each in fitted.values()]) + np.array(labels.task.offset or 0.0)
    weights = stacking_weights(labels, by_member, np.array([each.member.share for each in fitted.values()]))
    stacked = Stacked.of(labels.task, by_member, weights)
    values, spread = stacked.values, stacked.spread
    kept = {name: each.member for name, each in fitted.items()}
    model = TableModel(labels.task, table.config.featurizer, kept, weights, conditions=table.conditions)
    counting = labels.counting()
    if not labels.is_classification:
        numbers = landmarks(len(molecules))
        similarity = of_other_folds(similarity_to_training(kept, molecules), table.folds, numbers)
        difficulty = fit_difficulty(counting.error(values, HIDDEN), spread, similarity, numbers)
        model, spread = replace(model, difficulty=difficulty), difficulty(spread, similarity)
    smiles, rows = list(map(str, molecules.molecules)), table.folds.predicted
    domain = fit_domain(smiles, molecules.of(Encoder(model.embedder)), molecules.of(looks))
    trust = replace(fit_trust(domain, counting.take(rows), values[rows], spread[rows]), rows=training_rows(table))
    return replace(model, trust=trust), replace(stacked, spread=spread)


def training_rows(table: ToFit) -> TrainingRows:
    numbers = evenly(len(table.labels), MAX_REFERENCES)
    kept, conditions = table.labels.take(numbers), table.molecules.of(condition_values)[numbers]
    rows = TrainingRows.of(kept.y, kept.bounds)
    if conditions.shape[1]:
        rows = replace(rows, conditions=conditions)
    return rows if kept.names is None else rows.named(kept.names.tolist())


def fit_trust(domain: Domain, labels: Labels, values: np.ndarray, spread: np.ndarray) -> Trust:
    """Trust by predictions [M, T] of molecules that were not learnt from, and by their expected deviations [M, T]."""
    y, task = labels.y, TASKS[labels.task.kind]
    if task.predicts_probabilities:
        trust = Trust(domain, calibration=fit_calibration(y, values) if task.calibrated_by == "probabilities" else None)
        return replace(trust, class_sets=fit_class_sets(y, calibrated(values, trust), task.adds_up))
    if task.calibrated_by == "intervals" and not np.isnan(y).all(axis=0).any():
        return Trust(domain, fit_intervals(y, values, spread, LEAST_SHARE, labels.bounds))
    return Trust(domain)


def reason_to_stop(table: ToFit, output: np.ndarray) -> str:
    if "kernel" in table.fitted:
        gain, deviation = gains_of_network(table, output)
        if len(gain) and gain.mean() <= 0 and not (gain > CLEAR * deviation).any():
            return "the network of the first fold does not lower the error out of fold"
    return ""


def gains_of_network(table: ToFit, output: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As ``gains``, of the first network with ``output`` [all molecules, D + T] and the machines on its embeddings."""
    kernel, labels, (_, predicted) = table.members["kernel"], table.labels, table.folds.parts()[0]
    assert isinstance(kernel, KernelMember)
    width = output.shape[1] - labels.y.shape[1]
    tuned = as_values(fit_tuned(kernel, table, 0, output[:, :width])[-1], kernel.calibration)
    without = {name: each.out_of_fold[predicted] for name, each in table.fitted.items()}
    return gains(labels.take(predicted), without, {"networks": output[predicted, width:], "tuned kernel": tuned})


def gains(labels: Labels, without: dict[str, np.ndarray], more: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """By how much members lower the error of others, as a share of it, and its standard error: [T'] each."""
    before, after = squared_errors(labels, without), squared_errors(labels, without | more)
    counts = (~np.isnan(before - after)).sum(axis=0)
    before, after, counts = before[:, counts > 1], after[:, counts > 1], counts[counts > 1]
    change = (before - after) / np.maximum(2 * np.nanmean(before, axis=0), np.finfo(float).tiny)
    return np.nanmean(change, axis=0), np.nanstd(change, axis=0, ddof=1) / np.sqrt(counts)


def squared_errors(labels: Labels, by_name: dict[str, np.ndarray]) -> np.ndarray:
    """The squared errors [M, T] of the weighted mean of members, with weights that were learnt on other molecules."""
    by_member = np.stack(list(by_name.values())).astype(np.float64)
    prior = np.array([MEMBERS[name].share for name in by_name])
    values = np.full_like(labels.y, np.nan)
    for part in range(PARTS):
        inside = np.arange(len(labels)) % PARTS == part
        weights = stacking_weights(labels.take(~inside), by_member[:, ~inside], prior)
        values[inside] = combined(labels.task, by_member[:, inside], weights)
    errors = labels.error(values) ** 2
    return errors if labels.weight is None else errors * labels.weight[:, None]
