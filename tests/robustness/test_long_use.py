"""Memory and file handles stay where they are."""

import gc
import os
from dataclasses import replace

import psutil
import pytest

from graphormer_sepnorm import Graphormer
from graphormer_sepnorm.datasets.benchmarks import load_split, sample_table
from graphormer_sepnorm.system.files import CACHE_VARIABLE
from tests.robustness import processes, tiny_run
from tests.tiny import recorder

PREDICTIONS, EPOCHS = 10_000, 200


def usage() -> tuple[int, int]:
    gc.collect()
    process = psutil.Process()
    return process.memory_info().rss, process.num_fds()


def assert_flat(before: tuple[int, int]) -> None:
    memory, handles = usage()
    assert memory < 1.05 * before[0] and handles <= before[1]


def predict_often() -> None:
    config = tiny_run.tiny_config()
    config = replace(config, task=replace(config.task, mean=(0.0, 0.0), std=(1.0, 1.0)))
    model = Graphormer(config.model)
    model.run_config = config
    smiles = sample_table().smiles.tolist()
    for number in range(PREDICTIONS):
        if number == PREDICTIONS // 10:
            before = usage()
        first = number % 2000
        model.predict(smiles[first : first + 2])
    assert_flat(before)


def train_long(folder) -> None:
    config = tiny_run.tiny_config(epochs=EPOCHS)
    os.environ[CACHE_VARIABLE] = str(folder)
    train, val = (load_split("tiny", split, config.model.encodings) for split in ("train", "val"))
    for epoch in recorder(config, train, val, folder / "run").epochs():
        if epoch.epoch == EPOCHS // 10:
            before = usage()
    assert_flat(before)


@pytest.mark.nightly
def test_ten_thousand_predictions():
    assert processes.finish(predict_often) == 0


@pytest.mark.nightly
def test_two_hundred_epochs(tmp_path):
    assert processes.finish(train_long, tmp_path) == 0
