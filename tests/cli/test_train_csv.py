import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graphormer_sepnorm.chem.properties import murcko_scaffold
from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.data import labels
from graphormer_sepnorm.data.benchmarks import sample_table
from graphormer_sepnorm.data.labels import read_label
from graphormer_sepnorm.data.splits import random_split, scaffold_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import RECIPES, Recipe, slim
from graphormer_sepnorm.runs.checkpoint import load_model

MODEL_FILES = {"config.json", "curves.png", "metrics.jsonl", "model.safetensors", "state.safetensors", "test.json"}
TABLE_FILES = {"table.csv", "table.json", "skipped.csv"}


def tiny(atom_sizes, bond_sizes, num_tasks):
    shape = slim(atom_sizes, bond_sizes, num_tasks)
    return replace(shape, layers=1, width=16, ffn_width=16, heads=2)


@pytest.fixture
def train(command, monkeypatch, tmp_path):
    """Runs the command on a table with a tiny model; gives exit code, result and messages."""
    monkeypatch.setitem(RECIPES, "tiny", Recipe(tiny, TrainConfig()))

    def run(table: pd.DataFrame, *arguments):
        table.to_csv(tmp_path / "mols.csv", index=False)
        options = ["--recipe", "tiny", "--epochs", 2, "--out", tmp_path / "run"]
        return command("train", "--csv", tmp_path / "mols.csv", *options, *arguments)

    return run


@pytest.fixture(scope="module")
def molecules() -> pd.DataFrame:
    """120 molecules with two numbers and two classes, some labels missing."""
    table = sample_table().head(120)[["smiles", "penalized_logp"]].rename(columns={"penalized_logp": "a"})
    length = table.smiles.str.len()
    table["b"] = length.astype(float).where(length % 5 != 0)
    table["long"] = (length > length.median()).astype(int)
    table["rare"] = (length % 4 == 0).astype(float).where(length % 7 != 0)
    return table


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_regression_of_several_targets_with_missing_labels(train, command, molecules, tmp_path):
    table = molecules.copy()
    table.loc[3, "smiles"] = "C[C"
    table.loc[5, ["a", "b"]] = math.nan
    table["a"] = table["a"].astype(object)
    table.loc[7, "a"] = "high"
    code, result, messages = train(table, "--target-columns", "a", "b", "--task", "regression", "--split", "scaffold")
    assert code == 0 and "3 rows were skipped" in messages
    assert (result["rows"], result["skipped"], result["metric"]) == (117, 3, "mae")
    assert set(result["scores"]) == {"mae", "rmse", "r2"} and result["scores"]["mae"] == result["value"]
    run = tmp_path / "run"
    assert names(run) == MODEL_FILES | TABLE_FILES | {"parity.png"}
    skipped = pd.read_csv(run / "skipped.csv")
    assert skipped.row.tolist() == [4, 6, 8]
    assert [word in error for word, error in zip(["SMILES", "no label", "'high'"], skipped.error, strict=True)]
    _, config, _ = load_model(run)
    training = pd.read_csv(run / "table.csv").query("split == 'train'")
    assert config.task.targets == ("a", "b")
    np.testing.assert_allclose(config.task.mean, [training["target a"].mean(), training["target b"].mean()], rtol=1e-5)

    run.rename(tmp_path / "moved")
    code, again, _ = command("evaluate", tmp_path / "moved")
    assert code == 0 and again["value"] == pytest.approx(result["value"], rel=1e-5)
    code, predicted, _ = command("predict", tmp_path / "moved", tmp_path / "mols.csv", "-o", tmp_path / "out.csv")
    assert code == 0 and predicted["unreadable"] == 1
    assert list(pd.read_csv(tmp_path / "out.csv"))[-3:] == ["a_predicted", "b_predicted", "error"]


def test_classification_ensemble_with_balance(train, command, molecules, tmp_path):
    options = ["--task", "classification", "--split", "random", "--balance", "--ensemble", 2, "--seed", 4]
    code, result, messages = train(molecules, "--target-columns", "long", "--target-columns", "rare", *options)
    assert code == 0, messages
    assert set(result["scores"]) == {"rocauc", "prauc", "accuracy"}
    run = tmp_path / "run"
    assert names(run) == {"model-0", "model-1", "test.json", "roc.png"}
    assert names(run / "model-1") == MODEL_FILES | TABLE_FILES | {"roc.png"}
    configs = [load_model(run / f"model-{member}")[1] for member in range(2)]
    assert [config.train.seed for config in configs] == [4, 5]
    tables = [(run / f"model-{member}" / "table.csv").read_bytes() for member in range(2)]
    assert tables[0] == tables[1]
    training = pd.read_csv(run / "model-0" / "table.csv").query("split == 'train'")
    counts = training["target rare"].value_counts()
    assert configs[0].task.pos_weight[1] == pytest.approx(counts[0] / counts[1])
    assert command("evaluate", run)[1]["value"] == pytest.approx(result["value"])
    command("predict", run, tmp_path / "mols.csv", "-o", tmp_path / "out.csv")
    columns = list(pd.read_csv(tmp_path / "out.csv"))[-5:]
    assert columns == ["long_predicted", "rare_predicted", "long_std", "rare_std", "error"]


def test_split_by_a_column(train, molecules, tmp_path):
    table = molecules.assign(part=["train", "Valid", "test"] * 40)
    table.loc[0, "part"] = "holdout"
    code, result, _ = train(table, "--target-columns", "a", "--split", "column", "--split-column", "part")
    assert code == 0 and (result["n"], result["skipped"]) == (40, 1)
    found = pd.read_csv(tmp_path / "run" / "table.csv").split.tolist()
    assert found == (["train", "val", "test"] * 40)[1:]


def test_training_goes_on_with_resume_and_refuses_another_table(train, molecules, tmp_path):
    arguments = ["--target-columns", "a", "--split", "random"]
    assert train(molecules, *arguments)[0] == 0
    code, _, messages = train(molecules, *arguments)
    assert code == 2 and "already holds a run" in messages
    assert train(molecules, *arguments, "--resume")[0] == 0
    code, _, messages = train(molecules.head(100), *arguments, "--resume")
    assert code == 2 and "another table" in messages


def test_patience_stops_training(train, molecules, tmp_path, monkeypatch):
    monkeypatch.setattr("graphormer_sepnorm.training.trainer.Trainer.evaluate", lambda trainer, epoch: float(epoch))
    code, result, _ = train(molecules, "--target-columns", "a", "--epochs", 9, "--patience", 2)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert code == 0 and result["epoch"] == 1 and [json.loads(line)["epoch"] for line in lines] == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the columns to predict"),
        (["--target-columns", "c"], "0 columns 'c'; its columns are smiles, a, b, long, rare"),
        (["--target-columns", "a", "a"], "named twice"),
        (["--target-columns", "a", "--split", "column"], "--split-column NAME go together"),
        (["--target-columns", "a", "--balance"], "--balance is for"),
        (["--target-columns", "a", "--optimizer", "sgd"], "unknown optimizer 'sgd', choose one of adamw, muon"),
        (["--target-columns", "a", "--task", "classification"], "not 0 or 1"),
        (["--target-columns", "a", "--smiles-column", "mol"], "no column 'mol'"),
        (["--target-columns", "long", "--split", "column", "--split-column", "rare"], "is in the train split"),
    ],
)
def test_tables_that_cannot_be_learnt_leave_nothing(train, molecules, tmp_path, arguments, message):
    code, _, messages = train(molecules, *arguments)
    assert code == 2 and message in messages
    assert names(tmp_path) == {"mols.csv"}


def test_a_table_of_too_many_rows_is_refused(train, molecules, tmp_path, monkeypatch):
    monkeypatch.setattr(labels, "MAX_ROWS", 50)
    code, _, messages = train(molecules, "--target-columns", "a")
    assert code == 2 and "more than 50 rows" in messages
    assert not (tmp_path / "run").exists()


def test_targets_without_a_table_are_refused(command):
    code, _, messages = command("train", "--dataset", "sample", "--target-columns", "a")
    assert code == 2 and "belong to --csv" in messages


def test_scaffold_split_is_deterministic_and_shares_no_scaffold(molecules):
    scaffolds = [murcko_scaffold(smiles) for smiles in molecules.smiles]
    splits = scaffold_split(scaffolds)
    assert splits == scaffold_split(scaffolds)
    by_split = {name: {s for s, split in zip(scaffolds, splits, strict=True) if split == name} for name in set(splits)}
    assert not by_split["train"] & by_split["val"] and not by_split["train"] & by_split["test"]
    assert not by_split["val"] & by_split["test"]
    assert splits.count("train") == 96 and splits.count("val") == 12
    largest = max(set(scaffolds), key=scaffolds.count)
    assert largest in by_split["train"]


def test_random_split_depends_on_its_seed_alone():
    assert random_split(50, 1) == random_split(50, 1) != random_split(50, 2)
    assert [random_split(50, 1).count(name) for name in ("train", "val", "test")] == [40, 5, 5]


@pytest.mark.parametrize("text", ["", " ", "NaN", "NA", "none"])
def test_missing_labels(text):
    assert math.isnan(read_label(text, "a", "regression"))


@pytest.mark.parametrize(("text", "kind"), [("inf", "regression"), ("x", "regression"), ("2", "classification")])
def test_labels_that_a_task_cannot_have(text, kind):
    with pytest.raises(InputError, match="a is"):
        read_label(text, "a", kind)


def test_patience_is_never_by_default():
    assert TrainConfig().patience == 0
