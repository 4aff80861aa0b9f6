import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.recipes import RECIPES, Recipe, slim
from graphormer_sepnorm.runs.checkpoint import load_model
from graphormer_sepnorm.table_model.load import load_model as load_any_model
from graphormer_sepnorm.table_model.members import forest
from tests.cli.test_starting import NOT_FOR_PREDICTING, modules_after

pytestmark = pytest.mark.slow

NETWORK_FILES = {"config.json", "curves.png", "metrics.jsonl", "model.safetensors", "state.safetensors"}
FILES = {
    "table.csv", "table.json", "skipped.csv", "duplicates.csv", "parts.json", "stack.safetensors",
    "test.json", "predictions.csv", "measurements.csv", "report.html", "command.json",
    "out_of_fold.csv",
}  # fmt: skip


def tiny(atom_sizes, bond_sizes, num_tasks):
    shape = slim(atom_sizes, bond_sizes, num_tasks)
    return replace(shape, layers=1, width=16, ffn_width=16, heads=2)


@pytest.fixture
def train(command, monkeypatch, tmp_path, blank_pictures):
    """Runs the command on a table with one tiny network and nothing else; gives exit code, result and messages."""
    monkeypatch.setitem(RECIPES, "tiny", Recipe(tiny, TrainConfig()))

    def run(table: pd.DataFrame, *arguments, file: str = "mols.csv"):
        table.to_csv(tmp_path / "mols.csv", index=False)
        options = ["--recipe", "tiny", "--epochs", 2, "--ensemble", 1, "--no-blend", "--out", tmp_path / "run"]
        return command("train", tmp_path / file, *options, *arguments)

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
    assert code == 0 and "3 rows were skipped" in messages and "\nb: MAE " in messages
    assert (result["rows"], result["skipped"], result["metric"]) == (117, 3, "mae")
    assert set(result["scores"]) == {"mae", "rmse", "r2", "spearman"} and result["scores"]["mae"] == result["value"]
    run = tmp_path / "run"
    assert (result["out"], result["table"]) == (str(run), str(tmp_path / "mols.csv"))
    assert names(run) == FILES | {"parity.png", "model-0"} and names(run / "model-0") == NETWORK_FILES
    skipped = pd.read_csv(run / "skipped.csv")
    assert skipped.row.tolist() == [4, 6, 8]
    assert [word in error for word, error in zip(["SMILES", "no label", "'high'"], skipped.error, strict=True)]
    _, config, facts = load_model(run / "model-0")
    training = pd.read_csv(run / "table.csv").query("split == 'train'")
    assert config.task.targets == ("a", "b") and facts["epoch"] == 2, "the last epoch counts"
    np.testing.assert_allclose(config.task.mean, [training["target a"].mean(), training["target b"].mean()], rtol=1e-5)

    run.rename(tmp_path / "moved")
    code, again, messages = command("evaluate", tmp_path / "moved")
    assert "\na: MAE " in messages and f" on {again['targets']['b']['n']} labels\n" in messages
    assert code == 0 and again["value"] == pytest.approx(result["value"], rel=1e-5)
    code, predicted, _ = command("predict", tmp_path / "moved", tmp_path / "mols.csv", "-o", tmp_path / "out.csv")
    assert code == 0 and predicted["unreadable"] == 1
    added = ["a_predicted", "a_std", "b_predicted", "b_std", "error"]
    assert list(pd.read_csv(tmp_path / "out.csv"))[-5:] == added


@pytest.fixture
def few_trees(monkeypatch):
    monkeypatch.setattr(forest, "TREES", 20)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the columns to predict (the columns of "),
        (["--target-columns", "c"], "no column 'c'. Its columns: smiles, a, b, long, rare"),
        (["--target-columns", "a", "--optimizer", "sgd"], "unknown optimizer 'sgd', choose one of adamw, muon"),
        (["--target-columns", "long", "--split", "column", "--split-column", "rare"], "no row can be used; 120 rows"),
    ],
)
def test_tables_that_cannot_be_learnt_leave_nothing(train, molecules, tmp_path, arguments, message):
    code, _, messages = train(molecules, *arguments)
    assert code == 2 and message in messages
    assert names(tmp_path) == {"mols.csv"}


def test_three_classes_get_a_probability_each(train, command, molecules, tmp_path, few_trees):
    words = np.array(["low", "mid", "high"])[molecules.smiles.str.len().rank(pct=True).mul(2.99).astype(int)]
    table = molecules.assign(grade=words)
    code, result, messages = train(table, "--target-columns", "grade", "--split", "random", "--blend")
    assert code == 0, messages
    assert "grade has 3 classes ('high', 'low', 'mid'), so each gets its own probability" in messages
    assert set(result["scores"]) == {"rocauc", "multiclass-accuracy", "multiclass-logloss"}
    assert set(result["baseline"]["random_forest"]) == set(result["scores"])
    assert command("evaluate", tmp_path / "run")[1]["value"] == pytest.approx(result["value"], rel=1e-5)
    options = "-o", tmp_path / "out.csv", "--interval", 0.8
    assert command("predict", tmp_path / "run", tmp_path / "mols.csv", *options)[0] == 0
    predicted = pd.read_csv(tmp_path / "out.csv")
    assert set("; ".join(predicted.class_set).split("; ")) == {"high", "low", "mid"}
    np.testing.assert_allclose(predicted[["grade_high", "grade_low", "grade_mid"]].sum(axis=1), 1, rtol=1e-5)


def test_bounds_are_learnt_from_and_left_out_of_errors(train, command, molecules, tmp_path):
    labels = [f"<{number:.2f}" if row % 3 == 0 else f"{number}" for row, number in enumerate(molecules.a)]
    table = molecules[["smiles"]].assign(a=labels)
    arguments = ["--target-columns", "a", "--split", "random", "--epochs", 1]
    code, result, messages = train(table, *arguments)
    assert code == 0 and result["skipped"] == 0, messages
    found = pd.read_csv(tmp_path / "run" / "predictions.csv", dtype=str)
    censored = found.a.str.startswith("<")
    assert result["censored"] == {"a": censored.sum()} and 0 < censored.sum() < len(found) == result["n"]
    assert f"{censored.sum()} bounds among the labels of a are not in this score" in messages
    kept = pd.read_csv(tmp_path / "run" / "table.csv", dtype=str)
    labelled_val = (kept.split == "val") & kept["target a"].notna()
    assert result["trust"]["calibrated_on"] == labelled_val.sum(), "bounds count on their known side"
    bounds = result["targets"]["a"]["bounds"]["stack"]
    predicted, ends = found.a_predicted[censored].astype(float), found.a[censored].str[1:].astype(float)
    assert bounds["bounds"] == censored.sum() and bounds["right_side"] == pytest.approx((predicted <= ends).mean())
    assert {"coverage_of_bounds", "coverage_of_all"} <= result["trust"].keys()
    exact = found[~censored].astype({"a": float, "a_predicted": float})
    assert (exact.a - exact.a_predicted).abs().mean() == pytest.approx(result["value"], rel=1e-4)
    assert command("evaluate", tmp_path / "run")[1]["censored"] == result["censored"]
    code, again, messages = train(table, *arguments, "--resume")
    assert code == 0 and again["value"] == result["value"], messages


def test_folds_predict_every_molecule_by_models_that_did_not_see_it(train, molecules, tmp_path, few_trees):
    arguments = ["--target-columns", "a", "--folds", 3, "--blend", "--epochs", 1, "--split", "random"]
    code, result, messages = train(molecules, *arguments)
    assert code == 0, messages
    run = tmp_path / "run"
    tests = [pd.read_csv(run / f"fold-{fold}" / "table.csv").query("split == 'test'") for fold in range(3)]
    assert sorted(pd.concat(tests).row) == list(range(1, len(molecules) + 1))
    found = pd.read_csv(run / "predictions.csv")
    assert found.row.tolist() == list(range(1, len(molecules) + 1))
    of_folds = {f"fold-{fold}": set(part.row) for fold, part in enumerate(tests)}
    assert {fold: set(part.row) for fold, part in found.groupby("split")} == of_folds
    errors = [(part.a - part.a_predicted).abs().mean() for _, part in found.groupby("split")]
    assert result["folds"] == pytest.approx(errors, rel=1e-5) and result["value"] == pytest.approx(np.mean(errors))
    assert result["deviation"] == pytest.approx(np.std(errors, ddof=1), rel=1e-4)
    assert set(result["baseline"]["random_forest"]) == {"mae", "deviation", "folds"}
    assert (result["n"], result["tested_in_training"], result["tested_related_to_training"]) == (len(molecules), 0, 0)
    assert json.loads(Path(result["scores_in"]).read_text())["value"] == result["value"]
    assert (run / "report.html").exists() and f"open {run / 'report.html'}" in messages


def test_a_kernel_is_there_in_seconds_and_predicts_as_every_table_model(command, molecules, tmp_path):
    molecules.head(60).to_csv(tmp_path / "mols.csv", index=False)
    arguments = [tmp_path / "mols.csv", "--target-columns", "a", "--split", "random", "--out", tmp_path / "run"]
    ignored = ["--epochs", 3, "--no-baseline", "--dropout", 0.1, "--set", "model.width=8"]
    code, result, messages = command("train", *arguments, "--quick", *ignored)
    assert code == 0 and list(result["members"]) == ["kernel"], messages
    assert {"out_of_fold", "weights"} <= json.loads(Path(result["scores_in"]).read_text()).keys() - result.keys()
    said = "--no-baseline, --epochs, --dropout and --set model.width have no effect"
    assert f"--quick fits only the kernel machine: {said}\n" in messages
    assert command("evaluate", tmp_path / "run")[1]["value"] == pytest.approx(result["value"], rel=1e-6)
    options = ["--interval", 0.8, "--domain", "-o", tmp_path / "out.csv"]
    code, counts, messages = command("predict", tmp_path / "run", tmp_path / "mols.csv", *options)
    assert code == 0 and counts["rows"] == 60, messages
    found = pd.read_csv(tmp_path / "out.csv").set_index("smiles")
    added = ["a_predicted", "a_low", "a_high", "a_std", "a_percentile", "nearest", "nearest_id", "nearest_a"]
    added += ["similarity", "cls_distance", "warning", "error"]
    assert list(found)[-len(added) :] == added
    assert ((found.a_low < found.a_predicted) & (found.a_predicted < found.a_high)).all()
    kept = pd.read_csv(tmp_path / "run" / "predictions.csv").set_index("smiles")
    np.testing.assert_allclose(found.loc[kept.index, "a_predicted"], kept.a_predicted, rtol=1e-4, atol=1e-5)


def test_a_table_as_a_chemist_has_it(command, molecules, tmp_path):
    """With names, salts, replicates, concentrations in nM and temperatures, which predictions ask for."""
    table = molecules[["smiles"]].rename(columns={"smiles": "Canonical_SMILES"})
    table.insert(0, "compound_id", [f"C{row:03}" for row in range(len(table))])
    table["T"] = np.where(table.index % 2, 25, 60)
    table["IC50_nM"] = 10 ** (2 + molecules.a / 10 + table["T"] / 30)
    table = pd.concat([table, table.tail(3).assign(IC50_nM=table.IC50_nM.tail(3) * 1.2)])
    table.iloc[0, table.columns.get_loc("Canonical_SMILES")] += ".[Na+]"
    table.to_csv(tmp_path / "mols.csv", index=False)
    arguments = ["--target-columns", "IC50_nM", "--negative-log-molar", "nM", "--feature-columns", "T", "--quick"]
    options = [*arguments, "--split", "random", "--out", tmp_path / "run"]
    code, result, messages = command("train", tmp_path / "mols.csv", *options)
    assert code == 0, messages
    assert "3 combinations of a molecule and conditions appear in several rows" in messages
    assert "1 molecule is a salt or mixture" in messages
    assert result["repeatability"] == {"pIC50": pytest.approx(math.log10(1.2) / 2**0.5, rel=1e-4)}
    assert result["value"] < 0.5 * result["targets"]["pIC50"]["scores"]["mean"]["mae"]
    assert pd.read_csv(tmp_path / "run" / "predictions.csv").name.str.fullmatch(r"C\d\d\d").all()

    code, _, messages = command("predict", tmp_path / "run", tmp_path / "mols.csv", "-o", tmp_path / "out.csv")
    assert code == 0, messages
    found = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(found.pIC50_in_nM, 10 ** (9 - found.pIC50), rtol=1e-4)
    assert found.pIC50[found["T"] == 25].mean() > found.pIC50[found["T"] == 60].mean() + 0.5
    in_python = load_any_model(tmp_path / "run").predict(table.drop(columns="IC50_nM"))
    np.testing.assert_allclose(in_python.pIC50, found.pIC50, rtol=1e-5)
    check_conditions_for_all_molecules(command, tmp_path, table, found)

    check_one_chemistry(command, tmp_path, table, ["train", tmp_path / "mols.csv", *options[:-1]])


def check_one_chemistry(command, tmp_path, table, train) -> None:
    """A salt and its free form get the same prediction by models of parents."""
    for way in ("parent", "chembl"):
        run, out = tmp_path / way, tmp_path / f"{way}.csv"
        code, _, messages = command(*train, run, "--standardize", way)
        assert code == 0 and "salts" not in messages, messages
        code, _, messages = command("predict", run, tmp_path / "mols.csv", "-o", out)
        assert code == 0, messages
        salt, *_ = pd.read_csv(out).pIC50
        free = table.iloc[[0]].assign(Canonical_SMILES=lambda rows: rows.Canonical_SMILES.str.removesuffix(".[Na+]"))
        np.testing.assert_allclose(load_any_model(run).predict(free).pIC50, [salt], rtol=1e-5)


def check_conditions_for_all_molecules(command, tmp_path, table, found) -> None:
    """The commands with --condition predict as for the table with the column."""
    run, warm = tmp_path / "run", ["--condition", "T=25"]
    assert command("predict", run, *found.Canonical_SMILES[1:4:2], *warm, "-o", tmp_path / "two.csv")[0] == 0
    np.testing.assert_allclose(pd.read_csv(tmp_path / "two.csv").pIC50, found.pIC50[1:4:2], rtol=1e-4)
    code, (drawn,), _ = command("explain", run, found.Canonical_SMILES[1], *warm, "-o", tmp_path / "a.svg")
    assert code == 0 and drawn["prediction"] == pytest.approx(found.pIC50[1], rel=1e-4)
    library = table.drop(columns=["T", "IC50_nM"]).assign(Canonical_SMILES="C" + table.Canonical_SMILES)
    library.to_csv(tmp_path / "library.csv")
    out = tmp_path / "next.csv"
    code, _, messages = command("suggest", run, tmp_path / "library.csv", *warm, "-n", 3, "-o", out)
    assert code == 0, messages
    chosen = pd.read_csv(out)
    alike = load_any_model(run).predict(chosen.Canonical_SMILES.tolist(), conditions={"T": 25})
    np.testing.assert_allclose(chosen.pIC50, alike.pIC50, rtol=1e-4)


def test_coverage_is_what_the_written_intervals_hold(command, monkeypatch, tmp_path):
    """Of a target with a hostile name, in painted pictures too."""
    monkeypatch.setitem(RECIPES, "tiny", Recipe(tiny, TrainConfig()))
    name, run = '<script>alert("1")</script> & $\\frac{x}$', tmp_path / "run"
    sample_table().head(150).rename(columns={"penalized_logp": name}).to_csv(tmp_path / "mols.csv", index=False)
    options = ["--recipe", "tiny", "--epochs", 1, "--ensemble", 1, "--no-blend", "--split-sizes", "60:20:20"]
    code, result, messages = command("train", tmp_path / "mols.csv", "--target-columns", name, *options, "--out", run)
    assert code == 0, messages
    table, kept = pd.read_csv(run / "table.csv"), result["trust"]
    test = table[table.split == "test"]
    test[["smiles"]].to_csv(tmp_path / "in.csv", index=False)
    for confidence in (0.5, 0.8, 0.9):
        asked = [run, tmp_path / "in.csv", "-o", tmp_path / "out.csv", "--interval", confidence]
        assert command("predict", *asked)[0] == 0
        low, high = pd.read_csv(tmp_path / "out.csv")[[f"{name}_low", f"{name}_high"]].to_numpy().T
        inside = (test[f"target {name}"] >= low) & (test[f"target {name}"] <= high)
        assert kept["coverage"][str(confidence)][name] == pytest.approx(inside.mean())
        assert kept["mean_width"][str(confidence)][name] == pytest.approx((high - low).mean(), rel=1e-3)
    assert kept["calibrated_on"] == (table.split == "val").sum() >= 20
    modules = modules_after("predict", run, "CCO", "--domain", "--interval", 0.5)
    assert sorted(modules & NOT_FOR_PREDICTING) == ["scipy.sparse"]  # for the fingerprints of the kernel
