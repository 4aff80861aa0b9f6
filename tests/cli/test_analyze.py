"""The command that compares how the CLS embeddings of several models lie in space."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from graphormer_sepnorm import Graphormer
from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.datasets.benchmarks import DATASETS, sample_table
from graphormer_sepnorm.explain.cls_geometry import uniformity
from graphormer_sepnorm.recipes import dataset_config
from graphormer_sepnorm.tasks import make_task


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two small models of the sample, untrained, that differ in their norm."""
    folders = []
    for norm in ("sepnorm", "sharenorm"):
        config = dataset_config("sample", TrainConfig(), norm)
        config = replace(config, model=replace(config.model, layers=2, width=16, ffn_width=16, heads=2))
        torch.manual_seed(0)
        model = Graphormer(config.model)
        model.run_config = replace(config, task=make_task(config.task).fitted(np.array([[-1.0], [1.0]])))
        folders.append(tmp_path_factory.mktemp(norm))
        model.save_pretrained(folders[-1])
    return folders


@pytest.mark.slow
def test_two_models_side_by_side(models, command, tmp_path):
    code, results, _ = command("analyze", *models, "-o", tmp_path / "cls.png")
    assert code == 0 and (tmp_path / "cls.png").read_bytes().startswith(b"\x89PNG")
    assert [result["norm"] for result in results] == ["sepnorm", "sharenorm"]
    table = sample_table()
    embeddings = Graphormer.from_pretrained(models[1]).embed(table.smiles[table.split == "test"].tolist())
    assert results[1]["uniformity"] == pytest.approx(uniformity(torch.from_numpy(embeddings)), abs=1e-4)
    assert all(result["molecules"] == 500 and len(result["singular_values"]) == 16 for result in results)


@pytest.mark.slow
def test_models_of_several_datasets_are_refused(models, command, tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "mine", DATASETS["sample"])
    model, other = Graphormer.from_pretrained(models[0]), tmp_path / "other"
    model.run_config = replace(model.run_config, dataset="mine")
    model.save_pretrained(other)
    code, _, messages = command("analyze", models[0], other, "-o", tmp_path / "cls.png")
    assert code == 2 and f"{models[0]} is a model of sample and {other} of mine: compare models of one" in messages
    assert not (tmp_path / "cls.png").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"), [(["-o", "x.svg"], "ends in .png"), (["-o", "x.png", "--split", "all"], "unknown split")]
)
def test_bad_input_is_refused(models, command, tmp_path, monkeypatch, arguments, problem):
    monkeypatch.chdir(tmp_path)
    code, _, messages = command("analyze", models[0], *arguments)
    assert code == 2 and problem in messages
    assert not list(tmp_path.iterdir())
