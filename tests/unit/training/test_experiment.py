import json
from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.benchmarks import DATASETS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.checkpoint import save_model
from graphormer_sepnorm.runs.folder import WEIGHTS
from graphormer_sepnorm.training.experiment import Scores, evaluate_run, train_run
from tests.tiny import save_tiny, tiny_model


def test_a_folder_with_a_run_is_left_alone(tmp_path):
    (tmp_path / "config.json").write_text("something else")
    with pytest.raises(InputError, match=r"already holds a run: continue it with --resume \(in Python resume=True\)"):
        train_run(tiny_model(featurizer="zinc")[1], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
    assert (tmp_path / "config.json").read_text() == "something else"


def test_a_model_of_other_features_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="the model reads 'ogb' features, sample has 'zinc' ones"):
        train_run(replace(tiny_model(featurizer="ogb")[1], dataset="sample"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_score_describes_the_run(tmp_path):
    result = evaluate_run(save_tiny(tmp_path, featurizer="zinc"), "val")
    assert (result["dataset"], result["split"], result["metric"], result["n"]) == ("sample", "val", "mae", 500)
    assert result["value"] == result["scores"]["mae"] > 0 and result["epoch"] == 3
    assert json.loads(json.dumps(result)) == result


def test_the_evaluator_of_a_benchmark_is_for_its_own_metric(tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "sample", replace(DATASETS["sample"], evaluate=lambda y, prediction: -1.0))
    model, config = tiny_model(featurizer="zinc")
    for metric in ("mae", "rmse"):
        changed = replace(config, task=replace(config.task, metric=metric))
        save_model(tmp_path / metric / WEIGHTS, model, changed, {"epoch": 3})
    assert evaluate_run(tmp_path / "mae", "val")["value"] == -1
    result = evaluate_run(tmp_path / "rmse", "val")
    assert result["metric"] == "rmse" and result["value"] == pytest.approx(result["scores"]["rmse"])


def test_predictions_of_a_named_dataset_are_counted(tmp_path):
    task = TaskConfig("regression", "mae", ("a", "b"))
    y, prediction = np.array([[0.5, float("nan")], [2.0, 1.0]], np.float32), np.array([[0.25, 3.0], [2.5, 1.0]])
    assert Scores({"split": "test"}, task, y, prediction, prediction[None]).lines() == [
        ["row", "smiles", "split", "a", "b", "a_predicted", "b_predicted"],
        [1, "", "test", "0.5", "", "0.25", "3"],
        [2, "", "test", "2.0", "1.0", "2.5", "1"],
    ]
