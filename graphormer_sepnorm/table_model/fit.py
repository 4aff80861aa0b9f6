"""Fitting of a table model: members, weights, and calibration. Axis letters: K members, M molecules, T targets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from graphormer_sepnorm.chem.features import FOR_TABLES
from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.classes import fit_calibration, fit_class_sets
from graphormer_sepnorm.predict.domain import MAX_REFERENCES, evenly, fit_domain
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.predict.trust import Trust, calibrated
from graphormer_sepnorm.recipes import RECIPES, task_config
from graphormer_sepnorm.system import distributed, progress
from graphormer_sepnorm.table_model.features import MoleculeFeatures, condition_values, looks
from graphormer_sepnorm.table_model.labels import CannotLearn, Folds, Labels
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.base import Fitted, Setting
from graphormer_sepnorm.table_model.members.kernel import KernelMember, as_values, fit_tuned
from graphormer_sepnorm.table_model.model import Stacked, TableModel, similarity_to_training
from graphormer_sepnorm.table_model.reference import BODY, Encoder, landmarks
from graphormer_sepnorm.table_model.stacking import (
    Difficulty,
    combined,
    disagreement,
    fit_difficulty,
    of_other_folds,
    stacking_weights,
)
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.censored import error_deviation
from graphormer_sepnorm.training.finetune import starting_from

HIDDEN = 1.8  # factor of the standard deviation of errors that a bound hides
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
        known = {"left_out_members": self.left_out, "remarks": self.remarks}
        return {name: value for name, value in known.items() if value}


def foundation_config(task: TaskConfig, seed: int = 0) -> Config:
    recipe = RECIPES["foundation"]
    config = task_config(TABLE, FOR_TABLES, task, replace(recipe.train, seed=seed), architecture=recipe.architecture)
    return starting_from(config, BODY)


def fit_table(
    molecules: MoleculeFeatures,
    labels: Labels,
    folds: Folds,
    setting: Setting,
    members: Sequence[str] = tuple(MEMBERS),
    early: Callable[[TableModel], None] | None = None,
) -> FittedTable:
    """Fits members and their weights, and calibrates the whole; ``early`` gets a model of the kernel before others."""
    fitted, left_out = fit_members(molecules, labels, folds, setting, members, early)
    if not fitted.keys() & {"kernel", "networks"}:
        raise InputError("; ".join(f"{name}: {reason}" for name, reason in left_out.items()))
    remarks = {name: each.remark for name, each in fitted.items() if each.remark}
    return FittedTable(*put_together(fitted, molecules, labels, folds, setting), left_out, remarks)


def fit_members(
    molecules: MoleculeFeatures,
    labels: Labels,
    folds: Folds,
    setting: Setting,
    members: Sequence[str],
    early: Callable[[TableModel], None] | None = None,
) -> tuple[dict[str, Fitted], dict[str, str]]:
    """Fitted members, and the reasons for those that cannot be fitted, by name."""
    progress.begin(DESCRIBING)
    molecules.read(setting.config.featurizer)
    fitted: dict[str, Fitted] = {}
    left_out: dict[str, str] = {}
    for name in members:
        if setting.verbose and distributed.rank() == 0:
            progress.say([f"fitting the {name} to {len(molecules):,} molecules"])
        progress.begin(name)
        try:
            fitted[name] = MEMBERS[name].fit(molecules, labels.counting().differences(), folds, after(fitted, setting))
        except CannotLearn as error:
            left_out[name] = str(error)
        if early and name in fitted and name == "kernel" and len(members) > 1:
            early(put_together(fitted, molecules, labels, folds, setting)[0])
    return fitted, left_out


def after(fitted: dict[str, Fitted], setting: Setting) -> Setting:
    members = setting.members | {name: each.member for name, each in fitted.items()}
    completed = next((each.completed for each in fitted.values() if each.completed), setting.completed)
    out_of_fold = setting.out_of_fold | {name: each.out_of_fold for name, each in fitted.items()}
    return replace(setting, members=members, out_of_fold=out_of_fold, completed=completed)


def put_together(
    fitted: dict[str, Fitted], molecules: MoleculeFeatures, labels: Labels, folds: Folds, setting: Setting
) -> tuple[TableModel, Stacked]:
    by_member = np.stack([each.out_of_fold for each in fitted.values()]) + np.array(labels.task.offset or 0.0)
    weights = stacking_weights(labels, by_member, np.array([each.member.share for each in fitted.values()]))
    values = combined(labels.task, by_member, weights)
    spread = disagreement(by_member, weights, values)
    kept = {name: each.member for name, each in fitted.items()}
    model = TableModel(labels.task, setting.config.featurizer, kept, weights, conditions=setting.conditions)
    counting = labels.counting()
    if not labels.is_classification:
        numbers = landmarks(len(molecules))
        similarity = of_other_folds(similarity_to_training(kept, molecules), folds, numbers)
        difficulty = difficulty_of(counting, values, spread, similarity, numbers)
        model, spread = replace(model, difficulty=difficulty), difficulty(spread, similarity)
    out_of_fold = Stacked(by_member, values, spread)
    trust = fit_trust(model, molecules, counting, out_of_fold, folds.predicted)
    return replace(model, trust=replace(trust, rows=training_rows(labels, molecules))), out_of_fold


def difficulty_of(
    labels: Labels, values: np.ndarray, spread: np.ndarray, similarity: np.ndarray, numbers: np.ndarray
) -> Difficulty:
    """The expected size of out-of-fold errors [M, T]; what a bound hides is larger than its likelihood says."""
    deviation = 0.0 if labels.bounds is None else HIDDEN * error_deviation(labels.y, labels.bounds, values)
    return fit_difficulty(labels.error(values, deviation), spread, similarity, numbers)


def training_rows(labels: Labels, molecules: MoleculeFeatures) -> TrainingRows:
    numbers = evenly(len(labels), MAX_REFERENCES)
    kept, conditions = labels.take(numbers), molecules.of(condition_values)[numbers]
    rows = TrainingRows.of(kept.y, kept.bounds)
    if conditions.shape[1]:
        rows = replace(rows, conditions=conditions)
    return rows if kept.names is None else rows.named(kept.names.tolist())


def fit_trust(
    model: TableModel, molecules: MoleculeFeatures, labels: Labels, out_of_fold: Stacked, rows: np.ndarray
) -> Trust:
    embeddings = molecules.of(Encoder(model.embedder))
    domain = fit_domain(list(map(str, molecules.molecules)), embeddings, molecules.of(looks))
    task = TASKS[labels.task.kind]
    y, values, spread = labels.y[rows], out_of_fold.values[rows], out_of_fold.spread[rows]
    bounds = None if labels.bounds is None else labels.bounds[rows]
    if task.predicts_probabilities:
        calibration = fit_calibration(y, values) if task.calibrated_by == "probabilities" else None
        trust = Trust(domain, calibration=calibration)
        return replace(trust, class_sets=fit_class_sets(y, calibrated(values, trust), task.adds_up))
    if task.calibrated_by == "intervals" and not np.isnan(y).all(axis=0).any():
        return Trust(domain, fit_intervals(y, values, spread, LEAST_SHARE, bounds))
    return Trust(domain)


def reason_to_stop(
    molecules: MoleculeFeatures, labels: Labels, folds: Folds, setting: Setting, output: np.ndarray
) -> str:
    if "kernel" not in setting.members:
        return ""
    gain, deviation = gains_of_network(molecules, labels, folds, setting, output)
    if not len(gain) or gain.mean() > 0 or (gain > CLEAR * deviation).any():
        return ""
    return "the network of the first fold does not lower the error out of fold"


def gains_of_network(
    molecules: MoleculeFeatures, labels: Labels, folds: Folds, setting: Setting, output: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """As ``gains``, of the first network with ``output`` [all molecules, D + T] and the machines on its embeddings."""
    kernel = setting.members["kernel"]
    assert isinstance(kernel, KernelMember)
    learnt, predicted = folds.parts()[0]
    width = output.shape[1] - labels.y.shape[1]
    known = setting.known_to(0, labels)
    _, _, decisions = fit_tuned(kernel, molecules, output[:, :width], known, learnt, predicted)
    tuned = as_values(decisions, kernel.calibration)
    without = {name: values[predicted] for name, values in setting.out_of_fold.items()}
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
    parts, values = np.arange(len(labels)) % PARTS, np.full_like(labels.y, np.nan)
    for part in range(PARTS):
        inside = np.flatnonzero(parts == part)
        outside = np.flatnonzero(parts != part)
        weights = stacking_weights(labels.take(outside), by_member[:, outside], prior)
        values[inside] = combined(labels.task, by_member[:, inside], weights)
    deviation = 0.0 if labels.bounds is None else error_deviation(labels.y, labels.bounds, values)
    errors = labels.error(values, deviation) ** 2
    return errors if labels.weight is None else errors * labels.weight[:, None]
