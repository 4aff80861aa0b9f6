"""A run of a few seconds on 60 molecules of the sample, as a function and as a script that torchrun can start."""

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.config import Config, TrainConfig
from graphormer_sepnorm.dataset import Dataset
from graphormer_sepnorm.datasets import store
from graphormer_sepnorm.datasets.benchmarks import DATASETS, MAE, sample_table
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.interfaces.guard import guarded
from graphormer_sepnorm.recipes import dataset_config
from graphormer_sepnorm.system.files import CACHE_VARIABLE
from graphormer_sepnorm.training.experiment import evaluate_run, train_run
from graphormer_sepnorm.training.trainer import Trainer

ROWS = {"train": slice(0, 37), "val": slice(37, 52), "test": slice(52, 63)}
READS = "reads.txt"


def read_tiny(split: str, root: Path) -> Graphs:
    """Two targets, a third of the labels of the second missing; a line in ``READS`` of the cache for each call."""
    with open(Path(os.environ[CACHE_VARIABLE]) / READS, "a") as reads:
        reads.write(split + "\n")
    table = sample_table().iloc[ROWS[split]]
    featurizer = FEATURIZERS["zinc"]
    graphs = featurizer.pack([featurizer.graph(smiles) for smiles in table.smiles])
    y = table[["penalized_logp", "penalized_logp"]].to_numpy(np.float32, copy=True)
    y[::3, 1] = np.nan
    return graphs.with_targets(y)


DATASETS["tiny"] = Dataset(replace(MAE, targets=("a", "b")), "zinc", read_tiny, lambda root: "1")
store.SHARD_MOLECULES = 8


def tiny_config(epochs: int = 4, dropout: float = 0.1, seed: int = 0, optimizer: str = "adamw") -> Config:
    train = TrainConfig(epochs=epochs, batch_size=8, lr=3e-3, optimizer=optimizer, averaging=0.9, seed=seed)
    config = dataset_config("tiny", train)
    model = replace(config.model, layers=2, width=16, ffn_width=16, heads=4, attention_dropout=dropout)
    return replace(config, model=model)


def update(trainer: Trainer, molecules: np.ndarray, lr: float = 1e-3) -> torch.Tensor:
    (share,) = trainer.shares([molecules])
    return trainer.update(share, lr)


def run(out: Path, cache: Path, resume: bool = False, threads: int = 2, **changes) -> None:
    """Trains on one core, as the command does, with a cache and a number of preparing threads of its own."""
    torch.set_num_threads(1)
    cache.mkdir(parents=True, exist_ok=True)
    os.environ[CACHE_VARIABLE] = str(cache)
    store.PREPARE_THREADS = threads
    guarded(lambda: print(json.dumps(train_run(tiny_config(**changes), out, None, resume))))


def evaluate(out: Path, cache: Path) -> None:
    os.environ[CACHE_VARIABLE] = str(cache)
    guarded(lambda: print(json.dumps(evaluate_run(out))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--optimizer", default="adamw")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--resume", action="store_true")
    run(**vars(parser.parse_args()))
