from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.benchmarks import load_split, read_sample
from graphormer_sepnorm.datasets.store import in_memory
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import predict_dataset
from graphormer_sepnorm.tasks import METRICS, make_task
from graphormer_sepnorm.training.objectives.base import LabelObjective
from tests.robustness.tiny_run import tiny_config

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def splits():
    encodings = tiny_config().model.encodings
    return load_split("tiny", "train", encodings), load_split("tiny", "val", encodings)


@pytest.fixture(scope="module")
def network() -> Network:
    torch.manual_seed(0)
    return Network(tiny_config().model).eval()


def test_the_scale_is_that_of_the_training_labels(splits):
    train, val = splits
    fitted = LabelObjective(tiny_config().task, train, val, CPU).task
    np.testing.assert_allclose(fitted.mean, np.nanmean(train.y, axis=0), rtol=1e-6)
    np.testing.assert_allclose(fitted.std, np.nanstd(train.y, axis=0), rtol=1e-6)


def test_positives_are_weighted_by_sample_weights():
    graphs = read_sample("val", Path()).take(np.arange(4))
    y, weight = np.array([[1], [0], [0], [0]], np.float32), np.array([0.5, 1, 1, 0], np.float32)
    known = in_memory(replace(graphs, weight=weight).with_targets(y), ())
    task = TaskConfig("classification", "rocauc", ("a",), balance=True)
    assert LabelObjective(task, known, known, CPU).task.pos_weight == (4.0,), "2 against 0.5"


def test_loss_and_score_are_those_of_the_task(splits, network):
    train, val = splits
    labels = LabelObjective(tiny_config().task, train, val, CPU)
    batch, task = train.batch(np.arange(9)), make_task(labels.task)
    assert labels.loss(network, batch).equal(task.loss(network(batch), batch.y))
    assert labels.score(network) == METRICS["mae"](val.y, predict_dataset(network, val, task))
    assert labels.improves(0.4, 0.5) and not labels.improves(0.5, 0.4)


def test_each_label_has_the_weight_of_its_target(splits):
    train, val = splits
    task = replace(tiny_config().task, weights=(1.0, 0.5))
    counts = LabelObjective(task, train, val, CPU).counts(np.array([0, 1]))
    assert counts.tolist() == [[1.0, 0.0], [1.0, 0.5]]  # every third label of the second target is missing


def test_non_finite_predictions_are_reported(splits):
    broken = Network(tiny_config().model).eval()
    with torch.no_grad():
        broken.head[2].bias.fill_(torch.nan)
    with pytest.raises(InputError, match=r"predictions for validation molecules \[0, 1, 2.* are not finite"):
        LabelObjective(tiny_config().task, *splits, CPU).score(broken)
