"""Distillation (Hinton et al., 2015) of a table model into a small network. M molecules, T targets."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path

import numpy as np
import torch

from graphormer_sepnorm.chem.features import FOR_TABLES, read_graphs
from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.datasets.store import prepare
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.classes import limited_logit
from graphormer_sepnorm.predict.predictors import compute_all
from graphormer_sepnorm.recipes import RECIPES, task_config
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.evaluate import rows_for_test
from graphormer_sepnorm.table_model.fit import fit_trust
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.members.networks import NetworksMember, train_network
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.tasks import METRICS, TASKS, make_task
from graphormer_sepnorm.training.finetune import starting_from

BODY = "foundation-mini"
LONGER: dict = {"epochs": 12, "lr": 1e-3, "batch_size": 64, "averaging": 0.998, "min_updates": 2_000}
TRAIN = replace(RECIPES["foundation"].train, **LONGER, frozen_layers=0, frozen_statistics=False, keep="last")
HELD = 0.02  # share of the molecules that show how well the student imitates
MOST_HELD = 1_000
FEWEST = 20  # test rows with a label of each target that calibrate intervals or probabilities


def distill(model: TableModel, source: RunFolder, smiles: Sequence[str], out: Path, epochs: int) -> dict:
    """Trains a student of a table model in a run folder; the test rows in ``source`` calibrate and score it."""
    task = model.task
    if model.conditions.columns or task.offset or TASKS[task.kind].adds_up:
        raise InputError("distill is for models of numbers or of two classes, without conditions and labels far from 0")
    run = RunFolder(out)
    run.check_free(resume=True)
    learnt = list(dict.fromkeys([*smiles, *filter(None, model.trust.domain.smiles if model.trust else [])]))
    values = compute_all(model, learnt).values
    readable = ~np.isnan(values).any(axis=1)
    kept = list(compress(learnt, readable))
    outputs = values[readable] if task.kind == "regression" else limited_logit(values[readable])
    difference = train_student(kept, outputs.astype(np.float32), task.targets, run.member(0), epochs)
    network, config, _ = checkpoint.load_model(run.member(0).path)
    student = part_of(network, config, replace(task, mean=(), std=(), balance=False, pos_weight=()))
    result: dict = {"molecules": len(kept), "unreadable": int((~readable).sum()), "difference": difference}
    if model.trust and (source.path / TABLE).exists():
        rows = rows_for_test(source, model)
        predicted = student.predict(rows.smiles).values.astype(np.float64)
        if (np.isfinite(rows.y).sum(axis=0) >= FEWEST).all():
            domain = replace(model.trust.domain, embeddings=np.empty((0, 0), np.float32))  # of another network
            labels = Labels(student.task, rows.y.astype(np.float64))
            trust = fit_trust(domain, labels, predicted, np.zeros_like(predicted))
            student = replace(student, trust=replace(trust, rows=model.trust.rows))
            scores = {"student": predicted, "model": model.predict(rows.smiles).values}
            tested = {name: round(METRICS[task.metric](labels.y, each), 4) for name, each in scores.items()}
            result["test"] = {**tested, "metric": task.metric}
    student.save(out)
    return result


def train_student(smiles: list[str], outputs: np.ndarray, names: Sequence[str], run: RunFolder, epochs: int) -> dict:
    """Trains a network on outputs [M, T], NaN where unknown; returns by target its held-out RMSE over deviation."""
    held = np.zeros(len(smiles), bool)
    held[np.random.default_rng(0).permutation(len(smiles))[: min(max(round(HELD * len(smiles)), 2), MOST_HELD)]] = True
    task = TaskConfig("regression", "rmse", tuple(names), loss="mse")
    recipe = replace(RECIPES["foundation"], train=replace(TRAIN, epochs=epochs))
    config = task_config("student", FOR_TABLES, task, recipe)
    config = starting_from(config, BODY, 0)
    fitted = make_task(task).fit(outputs[~held], np.ones((~held).sum()))
    config = replace(config, task=fitted, model=replace(config.model, dropout=0.0))
    data = prepare(read_graphs(config.featurizer, smiles).with_targets(outputs, None), config.model.encodings)
    parts = [data.take(np.flatnonzero(rows)) for rows in (~held, held)]
    train_network(run, config, parts, "student ", run.state.exists())
    network, config, _ = checkpoint.load_model(run.path)
    predicted = part_of(network, config, config.task).predict(list(compress(smiles, held))).values
    ratio = np.sqrt(np.nanmean((predicted - outputs[held]) ** 2, axis=0)) / np.nanstd(outputs[held], axis=0).clip(1e-9)
    return dict(zip(names, ratio.round(4).tolist(), strict=True))


def part_of(network: Network, config: Config, task: TaskConfig) -> TableModel:
    places = [config.task.targets.index(target) for target in task.targets]
    mean, std = (torch.tensor(values)[places] for values in (config.task.mean, config.task.std))
    weights = dict(network.state_dict())
    weight, bias = weights["head.2.weight"][places], weights["head.2.bias"][places]
    if task.kind == "regression":
        task = replace(task, mean=tuple(mean.tolist()), std=tuple(std.tolist()))
    else:
        weight, bias = weight * std[:, None], bias * std + mean
    model = Network(replace(config.model, num_tasks=len(places)))
    model.load_state_dict(weights | {"head.2.weight": weight, "head.2.bias": bias})
    member = NetworksMember([(model.eval(), replace(config, task=task, model=model.config), {})])
    return TableModel(task, config.featurizer, {"networks": member}, np.ones((1, len(places))))
