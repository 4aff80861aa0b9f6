"""From a table to a run folder that predicts, is scored and reports."""

import json

import numpy as np
import pandas as pd
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model import train
from graphormer_sepnorm.table_model.evaluate import evaluate_table
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.train import labels_of, rows_to_learn, steps, train_stack
from graphormer_sepnorm.tables.labels import TableOptions, read_usable, table_task
from graphormer_sepnorm.training.own_table import Plan
from tests.unit.table_model.conftest import Trained

FILES = {
    "stack.safetensors", "kernel.safetensors", "body.safetensors", "trust.safetensors", "table.csv", "table.json",
    "skipped.csv", "duplicates.csv", "test.json", "predictions.csv", "parity.png", "calibration.png", "distance.png",
    "report.html",
}  # fmt: skip


def test_a_run_folder_has_all_of_a_table_model(trained: Trained):
    run, result = trained.run, trained.result
    networks = {"forest.safetensors", "parts.json", "model-0", "model-1"}
    assert {path.name for path in run.path.iterdir()} - {"run.lock"} == FILES | networks
    assert list(result["members"]) == list(result["weights"]) == ["kernel", "forest", "networks"]
    assert list(result["out_of_fold"]) == ["kernel", "forest", "networks", "stack"]
    assert sum(weights["a"] for weights in result["weights"].values()) == pytest.approx(1, abs=1e-3)
    assert result["baseline"]["random_forest"] == result["members"]["forest"]
    assert json.loads(run.test.read_text()) == json.loads(json.dumps(result))
    found = pd.read_csv(run.predictions)
    assert np.abs(found.a - found.a_predicted).mean() == pytest.approx(result["value"], rel=1e-4)
    report = run.report.read_text()
    assert "kernel alone" in report and "predicted out of fold" in report


def test_it_is_scored_again_alike(trained: Trained):
    again = evaluate_table(trained.run)
    assert again["value"] == pytest.approx(trained.result["value"], rel=1e-6)
    assert again["members"]["kernel"]["rmse"] == pytest.approx(trained.result["members"]["kernel"]["rmse"], rel=1e-6)
    with pytest.raises(InputError, match="learnt from all rows but those for test"):
        evaluate_table(trained.run, "val")


def test_test_rows_are_not_learnt_from(trained: Trained):
    learnt, structures = rows_to_learn(trained.labelled)
    assert {row.split for row in learnt} == {"train", "val"}
    assert structures.smiles == [row.smiles for row in learnt]
    kept = TableModel.load(trained.run.path).trust.domain.smiles
    assert kept == structures.smiles and len(kept) + trained.result["n"] == len(trained.labelled.rows)


def test_a_model_is_not_written_over(trained: Trained):
    with pytest.raises(InputError, match="already holds a model"):
        train_stack(trained.labelled, trained.options, trained.config, trained.run, Plan(2))


def test_quick_stops_after_the_kernel_and_networks_join_when_it_is_resumed(trained: Trained, tmp_path):
    run = RunFolder(tmp_path / "run")
    first = train_stack(trained.labelled, trained.options, trained.config, run, Plan(2), quick=True)
    assert {path.name for path in run.path.iterdir()} == FILES
    assert list(first["members"]) == ["kernel"]
    assert first["members"]["kernel"] == pytest.approx(trained.result["members"]["kernel"])
    whole = train_stack(trained.labelled, trained.options, trained.config, run, Plan(2, resume=True))
    assert whole["value"] == pytest.approx(trained.result["value"], rel=1e-6)


def test_the_kernel_predicts_while_the_networks_are_trained(trained: Trained, tmp_path, monkeypatch):
    seen = []
    fit = train.fit_members

    def watched(*arguments):
        seen.append(RunFolder(tmp_path / "run").stack.exists())
        return fit(*arguments)

    monkeypatch.setattr(train, "fit_members", watched)
    train_stack(trained.labelled, trained.options, trained.config, RunFolder(tmp_path / "run"), Plan(2, baseline=False))
    assert seen == [False, True]


def test_which_members_are_fitted():
    assert steps(Plan(5), quick=True) == [["kernel"]]
    assert steps(Plan(5), quick=False) == [["kernel"], ["forest", "networks"]]
    assert steps(Plan(5, baseline=False), quick=False) == [["kernel"], ["networks"]]
    assert steps(Plan(5, blend=False), quick=False) == [["networks"]]


def test_bounds_become_numbers(tmp_path):
    pd.DataFrame({"smiles": ["CCO", "CCN", "CCC"], "a": ["1", "<2", ""]}).to_csv(tmp_path / "a.csv", index=False)
    options = TableOptions(str(tmp_path / "a.csv"), ("a",))
    labels = labels_of(read_usable(options, "mol").rows, table_task(options))
    np.testing.assert_array_equal(labels.y, [[1], [np.nan]])
    np.testing.assert_array_equal(labels.bounds, [[[-np.inf, np.inf]], [[-np.inf, 2]]])
