"""Whole runs: from a config and a data folder to a run folder, and from a run folder to a score."""

import json
import os
from dataclasses import replace
from pathlib import Path

from graphormer_sepnorm import checkpoint, distributed
from graphormer_sepnorm.config import Config, TrainConfig, slim
from graphormer_sepnorm.datasets import SPLITS, find_dataset, load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.features import FEATURIZERS
from graphormer_sepnorm.files import write_atomically
from graphormer_sepnorm.inference import predict_dataset
from graphormer_sepnorm.signals import advising
from graphormer_sepnorm.tasks import Task, check_scorable
from graphormer_sepnorm.training import TEST, Trainer


def dataset_config(dataset: str, train: TrainConfig, norm: str = "sepnorm", preset=slim) -> Config:
    """The config of a preset on a named dataset; raises InputError for an unknown name."""
    found = find_dataset(dataset)
    featurizer = FEATURIZERS[found.featurizer]
    model = preset(featurizer.atom_sizes, featurizer.bond_sizes, len(found.task.targets))
    return Config(
        dataset=dataset,
        featurizer=found.featurizer,
        task=found.task,
        model=replace(model, norm=norm),
        train=train,
    )


def starting_from(config: Config, source: Path, frozen_layers: int = 0) -> Config:
    """The run with the architecture and the featurizer of a checkpoint, from whose weights it starts.

    Args:
        config: the run; its number of tasks stays.
        source: run folder or weights file.
        frozen_layers: first blocks that keep the checkpoint's weights.

    Raises:
        InputError: not a checkpoint.
    """
    _, found, _ = checkpoint.load_tensors(checkpoint.weights_file(source))
    return replace(
        config,
        featurizer=found.featurizer,
        model=replace(found.model, num_tasks=config.model.num_tasks),
        train=replace(config.train, start_from=str(source), frozen_layers=frozen_layers),
    )


def train_run(config: Config, out: Path, root: str | os.PathLike | None = None, resume: bool = False) -> dict:
    """Trains on a named dataset and scores the best checkpoint on the test split.

    Args:
        config: the run.
        out: run folder; must be new unless ``resume``.
        root: folder of the downloaded datasets.
        resume: go on from the last completed epoch of ``out``.

    Returns:
        the result of ``evaluate_run`` on the test split, which is also written to ``test.json``.

    Raises:
        InputError: bad input of any kind; nothing is written then.
    """
    if (out / checkpoint.CONFIG).exists() and not resume:
        raise InputError(f"{out} already holds a run: continue it with --resume, or choose another --out")
    if config.featurizer != find_dataset(config.dataset).featurizer:
        raise InputError(
            f"the model reads {config.featurizer!r} features, {config.dataset} has "
            f"{find_dataset(config.dataset).featurizer!r} ones"
        )
    with advising(f"{out} keeps the last completed epoch: go on with the same command and --resume"):
        train, val, test = (load_split(config.dataset, split, config.model.encodings, root) for split in SPLITS)
        check_scorable(config.task, test.y, "test")
        distributed.wait_for_all()
        trainer = Trainer(config, train, val, out)
        if resume:
            trainer.resume()
        trainer.run()
        result = evaluate_run(out, "test", root)
        if distributed.rank() == 0:
            write_atomically(out / TEST, (json.dumps(result) + "\n").encode())
        return result


def evaluate_run(run: Path, split: str = "test", root: str | os.PathLike | None = None) -> dict:
    """Scores a run's best checkpoint on a split of its dataset.

    Returns:
        ``dataset, split, metric, value, n, parameters, seed, epoch``.

    Raises:
        InputError: not a run folder or weights file, or a split that cannot be loaded or scored.
    """
    model, config, facts = checkpoint.load_model(run)
    data = load_split(config.dataset, split, config.model.encodings, root)
    check_scorable(config.task, data.y, split)
    task = Task(config.task)
    return {
        "dataset": config.dataset,
        "split": split,
        "metric": config.task.metric,
        "value": task.metric(data.y, predict_dataset(model, data, task)),
        "n": len(data),
        "parameters": sum(p.numel() for p in model.parameters()),
        "seed": config.train.seed,
        "epoch": facts.get("epoch"),
    }
