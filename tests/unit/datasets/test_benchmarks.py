"""The contract of a named dataset, over all of them."""

import os
from pathlib import Path

import numpy as np
import pytest

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.datasets.benchmarks import DATASETS, read_sample, sample_source, sample_table, state_of_files
from graphormer_sepnorm.tasks import METRICS

CARDS = (Path(__file__).parents[3] / "data" / "README.md").read_text()
SHIPPED = [name for name in DATASETS if name != "tiny"]  # tests/robustness/tiny_run.py adds its own


@pytest.mark.parametrize("name", SHIPPED)
def test_a_dataset_is_complete_and_has_a_card(name, tmp_path):
    dataset = DATASETS[name]
    assert dataset.featurizer in FEATURIZERS and dataset.task.metric in METRICS
    assert dataset.task.mean == dataset.task.std == (), "the scale is that of the training split"
    assert isinstance(dataset.source(tmp_path), str), "without data too"
    assert f"| `{name}` |" in CARDS


def test_the_sample_is_read_with_its_targets():
    table = sample_table()
    molecules = read_sample("val", Path("no root"))
    assert len(molecules) == 500
    assert molecules.y[:, 0].tolist() == table[table.split == "val"].penalized_logp.to_numpy("float32").tolist()
    assert len(sample_source(Path("no root"))) == 64


def test_the_source_changes_when_a_raw_file_does(tmp_path):
    source = state_of_files("SET/raw")
    assert source(tmp_path) == ""
    raw = tmp_path / "SET" / "raw"
    raw.mkdir(parents=True)
    for name, content in (("b", "12"), ("a", "345")):
        (raw / name).write_text(content)
        os.utime(raw / name, ns=(7, 7))
    assert source(tmp_path) == "a:3:7 b:2:7"
    os.utime(raw / "b", ns=(8, 8))
    assert source(tmp_path) == "a:3:7 b:2:8"


@pytest.mark.parametrize("name", [name for name, dataset in DATASETS.items() if dataset.evaluate])
def test_the_evaluator_of_a_benchmark_gives_what_its_metric_gives(name):
    dataset, rng = DATASETS[name], np.random.default_rng(0)
    y = rng.normal(size=(50, 1)) if dataset.task.kind == "regression" else rng.integers(0, 2, (50, 1)).astype(float)
    prediction = rng.random((50, 1))
    assert dataset.evaluate(y, prediction) == pytest.approx(METRICS[dataset.task.metric](y, prediction), rel=1e-12)
