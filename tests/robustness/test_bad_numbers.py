"""Targets, losses and gradients that training cannot use end with a sentence."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset, in_memory
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.system.files import CACHE_VARIABLE
from graphormer_sepnorm.training.trainer import Trainer
from tests.robustness import tiny_run
from tests.tiny import recorder

HIV = TaskConfig(kind="classification", metric="rocauc", targets=("active",))
LOGP = TaskConfig(kind="regression", metric="mae", targets=("logp",))
NAN, INF = np.nan, np.inf


@pytest.fixture(scope="module")
def molecules(tmp_path_factory):
    """All training molecules, to be given targets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        return tiny_run.read_tiny("train", Path())


def dataset(molecules, y: list[float]) -> MoleculeDataset:
    targets = np.array(y, np.float32).reshape(-1, 1)
    part = replace(molecules.take(np.arange(len(y))), y=targets)
    return in_memory(part, tiny_run.tiny_config().model.encodings)


def config_of(task: TaskConfig):
    config = tiny_run.tiny_config(epochs=2)
    return replace(config, task=task, model=replace(config.model, num_tasks=1))


@pytest.mark.parametrize(
    "task, train, val, sentence",
    [
        (LOGP, [1, 2, INF, 4], [1, 2], "target logp of training molecule 2 .* is infinite"),
        (LOGP, [1, 2, 3, 4], [1, -INF], "target logp of validation molecule 1 .* is infinite"),
        (LOGP, [NAN] * 4, [1, 2], "target logp has no labels in the training split"),
        (LOGP, [1, 2, 3, 4], [NAN, NAN], "target logp has no labels in the validation split"),
        (LOGP, [], [1, 2], "at least 2 molecules, the training split has 0"),
        (LOGP, [1, 2], [], "the validation split has no molecules"),
        (HIV, [0, 1, 1, 0], [1, 1], "validation split: ROC-AUC needs both classes"),
        (HIV, [1, 1, 1, 1], [0, 1], "target active is 1 for every training molecule"),
    ],
)
def test_targets_are_refused_before_anything_is_written(molecules, task, train, val, sentence):
    with pytest.raises(InputError, match=sentence):
        Trainer(config_of(task), dataset(molecules, train), dataset(molecules, val))


@pytest.mark.parametrize("scale, problem", [(NAN, "loss nan"), (1e25, "gradient norm inf")])
def test_a_loss_or_gradient_that_is_not_finite_keeps_the_last_epoch(tmp_path, molecules, scale, problem):
    data = dataset(molecules, list(range(16)))
    run = recorder(config_of(LOGP), data, data, tmp_path)
    next(run.epochs())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with torch.no_grad():
        run.trainer.model.head[2].weight.mul_(scale)
    with pytest.raises(InputError, match=rf"{problem}.* in epoch 2, step 1, molecules \[\d+.*is intact"):
        next(run.epochs())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    checkpoint.load_model(tmp_path)
