"""Runs next to each other: unfinished ones of a list are trained, and the scores summarized and compared."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.recipes import RECIPES, Recipe
from graphormer_sepnorm.runs.checkpoint import load_model, save_model
from graphormer_sepnorm.tables.prepared_table import TABLE
from tests.cli.test_train_csv import tiny
from tests.unit.table_model.test_compare import Y, write_run


@pytest.fixture
def sweep(command, monkeypatch, tmp_path):
    monkeypatch.setitem(RECIPES, "tiny", Recipe(tiny, TrainConfig(epochs=1)))

    def run(*arguments):
        return command("sweep", "--dataset", "sample", "--recipe", "tiny", "--out", tmp_path, "--seeds", 2, *arguments)

    return run


@pytest.mark.slow
def test_a_list_of_runs_is_taken_up_where_it_stands(sweep, command, tmp_path):
    code, rows, _ = sweep("--norm", "sepnorm", "--norm", "sharenorm")
    assert code == 0 and [row["norm"] for row in rows] == ["sepnorm", "sharenorm"]
    folders = [tmp_path / f"sample-sepnorm-{seed}" for seed in (0, 1)]
    first, second = (json.loads((folder / "test.json").read_text())["value"] for folder in folders)
    assert rows[0]["test_mean"] == pytest.approx((first + second) / 2)
    assert rows[0]["test_std"] == pytest.approx(abs(first - second) / 2**0.5)
    assert rows[0]["seeds"] == [0, 1] and rows[0]["runs"] == 2 and rows[0]["test"] == [first, second]
    difference = rows[1]["difference"]
    assert (difference["norm"], difference["minus"]) == ("sharenorm", "sepnorm")
    assert difference["mean"] == pytest.approx(rows[1]["test_mean"] - rows[0]["test_mean"])
    assert "difference" not in rows[0]

    before = {folder: (folder / "model.safetensors").stat().st_mtime_ns for folder in tmp_path.iterdir()}
    unfinished = tmp_path / "sample-sharenorm-1"
    for path in unfinished.iterdir():
        path.unlink()
    code, again, _ = sweep("--norm", "sepnorm", "--norm", "sharenorm")
    assert code == 0 and again == rows
    after = {folder: (folder / "model.safetensors").stat().st_mtime_ns for folder in tmp_path.iterdir()}
    assert {folder for folder in after if after[folder] != before[folder]} == {unfinished}

    code, _, messages = sweep("--norm", "sepnorm", "--epochs", 2)
    assert code == 2 and f"{folders[0]} holds a run of another recipe" in messages

    code, row, _ = command("evaluate", *folders, "--leaderboard")
    assert code == 0 and row == rows[0]
    for given, problem in (
        ([*folders, "--split", "val"], "leave --split out"),
        ([folders[0], folders[0]], "seed is there twice"),
        ([folders[0], unfinished], "more than its seed"),
    ):
        code, _, messages = command("evaluate", *given, "--leaderboard")
        assert code == 2 and problem in messages
    model, config, _ = load_model(folders[0])
    save_model(tmp_path / "elsewhere.safetensors", model, config, {})
    code, _, messages = command("evaluate", tmp_path / "elsewhere.safetensors", "--leaderboard")
    assert code == 2 and "elsewhere.safetensors has no validation score" in messages


@pytest.mark.slow
def test_several_runs_are_scored_by_their_mean(sweep, command, tmp_path):
    assert sweep("--norm", "sepnorm")[0] == 0
    folders = [tmp_path / f"sample-sepnorm-{seed}" for seed in (0, 1)]
    tables = [pd.read_csv(folder / "predictions.csv") for folder in folders]
    target, predicted = "penalized_logp", "penalized_logp_predicted"
    mean = (tables[0][predicted] + tables[1][predicted]) / 2
    code, result, messages = command("evaluate", *folders)
    assert messages.startswith(f"mean prediction of {len(folders)} runs: test ")
    assert code == 0 and result["value"] == pytest.approx((mean - tables[0][target]).abs().mean(), abs=1e-5)
    assert result["parameters"] == 2 * command("evaluate", folders[0])[1]["parameters"]
    code, _, messages = command("evaluate", folders[0], "ogbg-molhiv")
    assert code == 2 and "was trained on ogbg-molhiv" in messages
    model, config, _ = load_model(folders[0])
    save_model(tmp_path / "own.safetensors", model, replace(config, dataset=TABLE), {})
    code, _, messages = command("evaluate", folders[0], tmp_path / "own.safetensors")
    assert code == 2 and "own.safetensors was trained on a table of its own" in messages


def test_unknown_names_are_refused_before_anything_is_trained(sweep, tmp_path):
    code, _, messages = sweep("--norm", "sepnorm", "--norm", "batch")
    assert code == 2 and "unknown norm 'batch'" in messages
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_two_runs_from_the_shell(command, tmp_path):
    runs = [write_run(tmp_path / "a", Y + 0.5), write_run(tmp_path / "b", np.zeros(40))]
    code, result, messages = command("compare", *runs, "--plot", tmp_path / "difference.png")
    assert code == 0 and f"{runs[0]}" in messages and list(result["targets"]["y"]["runs"]) == [str(run) for run in runs]
    assert (tmp_path / "difference.png").exists()
