import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.data import labels
from graphormer_sepnorm.data.benchmarks import sample_table
from graphormer_sepnorm.data.labels import read_label
from graphormer_sepnorm.data.splits import SPLITTERS, Sizes, read_structures
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.forest import forest_features
from graphormer_sepnorm.interfaces import cli
from graphormer_sepnorm.recipes import RECIPES, Recipe, slim
from graphormer_sepnorm.runs.checkpoint import load_model
from graphormer_sepnorm.training import baseline

MODEL_FILES = {"config.json", "curves.png", "metrics.jsonl", "model.safetensors", "state.safetensors", "test.json"}
WHOLE_FILES = {"trust.safetensors", "calibration.png", "distance.png", "report.html"}
TABLE_FILES = {"table.csv", "table.json", "skipped.csv", "duplicates.csv"}


def tiny(atom_sizes, bond_sizes, num_tasks):
    shape = slim(atom_sizes, bond_sizes, num_tasks)
    return replace(shape, layers=1, width=16, ffn_width=16, heads=2)


@pytest.fixture
def train(command, monkeypatch, tmp_path):
    """Runs the command on a table with a tiny model, without a forest; gives exit code, result and messages."""
    monkeypatch.setitem(RECIPES, "tiny", Recipe(tiny, TrainConfig()))

    def run(table: pd.DataFrame, *arguments):
        table.to_csv(tmp_path / "mols.csv", index=False)
        options = ["--recipe", "tiny", "--epochs", 2, "--no-baseline", "--out", tmp_path / "run"]
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
    assert names(run) == MODEL_FILES | TABLE_FILES | WHOLE_FILES | {"parity.png"}
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
    assert names(run) == {"model-0", "model-1", "test.json", "roc.png"} | WHOLE_FILES
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


@pytest.mark.parametrize("name", SPLITTERS)
def test_every_split_divides_the_table_by_the_sizes_that_are_asked_for(train, molecules, tmp_path, name):
    code, _, messages = train(
        molecules, "--target-columns", "a", "--split", name, "--split-sizes", "60:20:20", "--seed", 3, "--epochs", 1
    )
    assert code == 0, messages
    found = pd.read_csv(tmp_path / "run" / "table.csv")
    structures = read_structures(molecules.smiles.tolist())
    assert found.split.tolist() == SPLITTERS[name](structures, None, Sizes(0.6, 0.2, 0.2), 3)
    assert found.split.tolist() != SPLITTERS[name](structures, None, Sizes(), 3)


def test_scaffolds_are_split_by_the_seed_if_nothing_else_is_said(train, molecules, tmp_path):
    assert train(molecules, "--target-columns", "a", "--seed", 5)[0] == 0
    structures = read_structures(molecules.smiles.tolist())
    found = pd.read_csv(tmp_path / "run" / "table.csv").split.tolist()
    assert found == SPLITTERS["scaffold"](structures, None, Sizes(), 5)
    assert found != SPLITTERS["scaffold"](structures, None, Sizes(), 6)


def test_classes_that_go_with_common_scaffolds_are_split_by_default(train, tmp_path):
    """As in bace and bbbp: the molecules of rare scaffolds, which the split of DeepChem tests on, are of one class."""
    chains = ["C" * length for length in range(1, 21)]
    common = [
        (f"c1ccccc1{chain}C1CCCCC1{tail}", int("N" in tail)) for chain in chains for tail in ("C", "N", "CC", "CN")
    ]
    rare = [(f"C1{'C' * size}1", 0) for size in range(8, 28)]
    table = pd.DataFrame(common + rare, columns=["smiles", "active"])
    arguments = ["--target-columns", "active", "--task", "classification", "--epochs", 1]
    code, _, messages = train(table, *arguments, "--split", "scaffold-deepchem")
    assert code == 2 and "needs both classes" in messages
    assert train(table, *arguments)[0] == 0


def test_a_random_split_gives_every_split_its_share_of_a_class(train, molecules, tmp_path):
    table = molecules.assign(active=[1] * 10 + [0] * 110)
    code, _, messages = train(
        table, "--target-columns", "active", "--task", "classification", "--split", "random", "--epochs", 1
    )
    assert code == 0, messages
    found = pd.read_csv(tmp_path / "run" / "table.csv")
    assert found.groupby("split")["target active"].sum().to_dict() == {"train": 8, "val": 1, "test": 1}


def test_the_latest_rows_are_tested_on(train, molecules, tmp_path):
    table = molecules.assign(day=[f"{2000 + (row * 7) % 120}-01-01" for row in range(120)])
    table.loc[[4, 9], "day"] = ["soon", None]
    code, result, messages = train(table, "--target-columns", "a", "--split", "time", "--split-column", "day")
    assert code == 0 and result["skipped"] == 2, messages
    assert "its time is 'soon', neither" in (tmp_path / "run" / "skipped.csv").read_text()
    found = pd.read_csv(tmp_path / "run" / "table.csv").merge(table, on="smiles").groupby("split").day
    assert found.max()["train"] < found.min()["val"] <= found.max()["val"] < found.min()["test"]


def test_molecules_in_several_rows_stay_together_and_are_named(train, molecules, tmp_path):
    table = molecules[["smiles", "long"]].copy()
    extra = pd.DataFrame({"smiles": ["OCC", "C(O)C", "NC", "CN"], "long": [0, 1, 1, 1]})
    table = pd.concat([table, extra], ignore_index=True)
    code, result, messages = train(table, "--target-columns", "long", "--task", "classification", "--split", "random")
    assert code == 0 and (result["duplicates"], result["conflicting"]) == (2, 1)
    assert "2 molecules stand in several rows, 1 of them with labels that contradict each other" in messages
    found = pd.read_csv(tmp_path / "run" / "duplicates.csv", keep_default_na=False)
    assert found.row.tolist() == [121, 122, 123, 124] and found.smiles.tolist() == extra.smiles.tolist()
    assert found["conflicting targets"].tolist() == ["long", "long", "", ""]
    assert found.groupby("molecule").split.nunique().tolist() == [1, 1]


def test_training_goes_on_with_resume_and_refuses_another_table(train, molecules, tmp_path):
    arguments = ["--target-columns", "a", "--split", "random"]
    assert train(molecules, *arguments)[0] == 0
    code, _, messages = train(molecules, *arguments)
    assert code == 2 and "already holds a run" in messages
    assert train(molecules, *arguments, "--resume")[0] == 0
    code, _, messages = train(molecules.head(100), *arguments, "--resume")
    assert code == 2 and "another table" in messages


@pytest.fixture
def few_trees(monkeypatch):
    monkeypatch.setattr(baseline.fit_forest, "__defaults__", (20,))


def test_a_forest_is_scored_on_the_same_molecules(train, molecules, tmp_path, few_trees, command):
    """The forest beside it is scikit-learn's, fitted here to the training rows of the run folder."""
    code, result, messages = train(molecules, "--target-columns", "b", "a", "--baseline", "--seed", 3)
    assert code == 0, messages
    found = pd.read_csv(tmp_path / "run" / "table.csv")
    training, test = found[found.split == "train"], found[found.split == "test"]
    errors = []
    for target in ("target b", "target a"):
        known, asked = training.dropna(subset=target), test.dropna(subset=target)
        forest = RandomForestRegressor(20, max_features=1 / 3, random_state=3, max_samples=len(known))
        forest.fit(forest_features(known.smiles.tolist()), known[target])
        predicted = forest.predict(forest_features(asked.smiles.tolist()))
        errors.append(np.abs(predicted - asked[target]).mean())
    scores = result["baseline"]["random_forest"]
    assert set(scores) == {"mae", "rmse", "r2"} and scores["mae"] == pytest.approx(np.mean(errors), rel=1e-5)
    kept = json.loads((tmp_path / "run" / "test.json").read_text())
    assert kept["baseline"] == result["baseline"] and kept["value"] == result["value"] != scores["mae"]
    assert command("evaluate", tmp_path / "run")[1]["value"] == pytest.approx(result["value"], rel=1e-5)


def test_the_forest_of_an_ensemble_is_kept_once_and_printed_beside_it(
    train, molecules, tmp_path, few_trees, monkeypatch, capsys
):
    molecules.to_csv(tmp_path / "mols.csv", index=False)
    run = tmp_path / "run"
    options = ["--task", "classification", "--split", "random", "--ensemble", "2", "--epochs", "1", "--recipe", "tiny"]
    table = ["--csv", str(tmp_path / "mols.csv"), "--target-columns", "long", "--out", str(run)]
    monkeypatch.setattr(sys, "argv", ["graphormer-sepnorm", "train", *table, *options])
    with pytest.raises(SystemExit) as end:
        cli.main()
    line, last = capsys.readouterr().out.splitlines()[-2:]
    assert not end.value.code
    kept = json.loads((run / "test.json").read_text())
    forest = kept["baseline"]["random_forest"]
    assert json.loads(last)["baseline"] == kept["baseline"] and set(forest) == {"rocauc", "prauc", "accuracy"}
    assert f"test rocauc {kept['value']:.4f} (a random forest: {forest['rocauc']:.4f}), " in line
    assert "baseline" not in (run / "model-1" / "test.json").read_text()


def test_a_run_without_a_forest_gets_one_when_it_is_resumed(train, molecules, tmp_path, few_trees):
    arguments = ["--target-columns", "a", "--epochs", 1]
    code, before, _ = train(molecules, *arguments)
    assert code == 0 and "baseline" not in before and "baseline" not in (tmp_path / "run" / "test.json").read_text()
    code, after, _ = train(molecules, *arguments, "--resume", "--baseline")
    assert code == 0 and after["value"] == before["value"] and "mae" in after["baseline"]["random_forest"]


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
        (["--target-columns", "a", "--split", "time"], "--split-column NAME go together"),
        (["--target-columns", "a", "--split-column", "b"], "--split-column NAME go together"),
        (["--target-columns", "a", "--split", "time", "--split-column", "day"], "0 columns 'day'"),
        (["--target-columns", "a", "--split-sizes", "80:30"], "the split sizes are '80:30': give three"),
        (
            ["--target-columns", "a", "--split", "column", "--split-column", "b", "--split-sizes", "60:20:20"],
            "does not go",
        ),
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


@pytest.mark.parametrize(
    "arguments", [["--target-columns", "a"], ["--split", "random"], ["--split-sizes", "80:10:10"], ["--no-baseline"]]
)
def test_options_of_a_table_without_one_are_refused(command, arguments):
    code, _, messages = command("train", "--dataset", "sample", *arguments)
    assert code == 2 and "belong to --csv" in messages


def test_the_split_of_deepchem_has_no_seed_and_shares_no_scaffold(molecules):
    structures = read_structures(molecules.smiles.tolist())
    scaffolds = structures.scaffolds
    splits = SPLITTERS["scaffold-deepchem"](structures, None, Sizes(), 0)
    assert splits == SPLITTERS["scaffold-deepchem"](structures, None, Sizes(), 1)
    by_split = {name: {s for s, split in zip(scaffolds, splits, strict=True) if split == name} for name in set(splits)}
    assert not by_split["train"] & by_split["val"] and not by_split["train"] & by_split["test"]
    assert not by_split["val"] & by_split["test"]
    assert splits.count("train") == 96 and splits.count("val") == 12
    largest = max(set(scaffolds), key=scaffolds.count)
    assert largest in by_split["train"]


@pytest.mark.parametrize("text", ["", " ", "NaN", "NA", "none"])
def test_missing_labels(text):
    assert math.isnan(read_label(text, "a", "regression"))


@pytest.mark.parametrize(("text", "kind"), [("inf", "regression"), ("x", "regression"), ("2", "classification")])
def test_labels_that_a_task_cannot_have(text, kind):
    with pytest.raises(InputError, match="a is"):
        read_label(text, "a", kind)


def test_patience_is_never_by_default():
    assert TrainConfig().patience == 0
