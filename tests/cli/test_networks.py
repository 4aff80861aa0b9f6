"""The commands on networks: pretraining on descriptors, and how the CLS embeddings of several models lie."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from graphormer_sepnorm import Graphormer
from graphormer_sepnorm.chem.descriptors import NAMES
from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.datasets.benchmarks import DATASETS, sample_table
from graphormer_sepnorm.explain.cls_geometry import uniformity
from graphormer_sepnorm.recipes import Recipe, dataset_config, foundation_small
from graphormer_sepnorm.runs.checkpoint import load_model
from graphormer_sepnorm.system.files import CACHE_VARIABLE
from graphormer_sepnorm.tasks import make_task
from graphormer_sepnorm.training.pretrain import SIZES

pytestmark = pytest.mark.slow


def tiny(atom_sizes, bond_sizes, num_tasks):
    shape = foundation_small(atom_sizes, bond_sizes, num_tasks)
    return replace(shape, layers=2, width=16, ffn_width=16, heads=2, bias_hidden=8)


@pytest.fixture
def start(command, monkeypatch, tmp_path):
    train = TrainConfig(epochs=4, batch_size=16, lr=3e-3, optimizer="muon")
    monkeypatch.setitem(SIZES, "small", Recipe(tiny, train))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    smiles = sample_table().smiles[:60]
    smiles[:30].to_frame("SMILES").to_csv(tmp_path / "a.csv", index=False)
    lines = "".join(f"{text} x\n" for text in [*smiles[30:], "C(C", "C" * 1001])
    (tmp_path / "b.smi").write_bytes(lines.encode() + b"C\xe9 x\n")
    tables = [tmp_path / "a.csv", "--smiles", tmp_path / "b.smi"]
    return lambda out, *arguments: command("pretrain", *tables, "--out", tmp_path / out, *arguments)


def test_a_body_learns_descriptors_and_a_table_starts_from_it(start, command, tmp_path):
    code, result, errors = start("body")
    assert code == 0
    assert (result["molecules"], result["validation"], result["skipped"]) == (59, 1, 3)
    assert 150 < result["targets"] < len(NAMES) and "3 rows were skipped" in errors
    lines = [json.loads(line) for line in (tmp_path / "body" / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == 4 and lines[-1]["train_loss"] < lines[0]["train_loss"]
    _, config, _ = load_model(tmp_path / "body")
    assert (config.featurizer, config.task.loss, len(config.task.targets)) == ("mol", "mse", result["targets"])
    sample_table()[:60].to_csv(tmp_path / "table.csv", index=False)
    table, run = [tmp_path / "table.csv", "--split", "random", "--target-columns", "penalized_logp"], tmp_path / "run"
    options = ["--no-baseline", "--epochs", 1, "--ensemble", 1, "--out", run]
    code, result, _ = command("train", *table, "--from", tmp_path / "body", *options)
    assert code == 0 and np.isfinite(result["value"])
    assert load_model(run / "model-0")[1].featurizer == "mol" and "kernel" in result["members"]
    code, facts, _ = command("info", tmp_path / "body")
    assert code == 0 and facts["training_data"] == "RDKit's descriptors of a.csv, b.smi"


def test_a_body_learns_the_embeddings_of_another(start, command, tmp_path):
    assert start("teacher", "--epochs", 1)[0] == 0
    code, _, errors = start("pupil", "--teacher", tmp_path / "teacher")
    assert code == 2 and "teacher" in errors and not (tmp_path / "pupil").exists()
    code, *_ = command("embed", tmp_path / "teacher", tmp_path / "a.csv", "-o", tmp_path / "e.npz")
    assert code == 0
    code, result, errors = start("pupil", "--teacher", tmp_path / "e.npz")
    assert code == 0 and "33 rows were skipped: they have no embedding in" in errors
    assert (result["molecules"], result["validation"], result["skipped"], result["targets"]) == (29, 1, 33, 16)
    _, config, _ = load_model(tmp_path / "pupil")
    assert config.dataset == "the embeddings in e.npz of a.csv, b.smi" and config.task.targets[15] == "teacher 15"
    lines = [json.loads(line) for line in (tmp_path / "pupil" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["train_loss"] < lines[0]["train_loss"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
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


def test_two_models_side_by_side(models, command, tmp_path):
    code, results, _ = command("analyze", *models, "-o", tmp_path / "cls.png")
    assert code == 0 and (tmp_path / "cls.png").read_bytes().startswith(b"\x89PNG")
    assert [result["norm"] for result in results] == ["sepnorm", "sharenorm"]
    table = sample_table()
    embeddings = Graphormer.from_pretrained(models[1]).embed(table.smiles[table.split == "test"].tolist())
    assert results[1]["uniformity"] == pytest.approx(uniformity(torch.from_numpy(embeddings)), abs=1e-4)
    for result in results:
        values = result["singular_values"]
        assert result["molecules"] == 500 and len(values) == 16 and values == sorted(values, reverse=True)
        assert 1 <= result["effective_rank"] <= 16 and 0 < result["isotropy"] <= 1


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
