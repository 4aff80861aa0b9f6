"""A finished folder: what is kept is what ``predict`` predicts; see tests/cli/test_trust.py for whole runs."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.inference.forest import forest_features, save_forest
from graphormer_sepnorm.inference.predict import kept_forest, load_predictor
from graphormer_sepnorm.runs.checkpoint import save_model
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.tables.labels import TableOptions, read_labelled, table_task
from graphormer_sepnorm.tables.prepared_table import TABLE, write_labelled
from graphormer_sepnorm.training.baseline import fit_forest
from graphormer_sepnorm.training.experiment import evaluate_run, score_runs
from graphormer_sepnorm.training.finishing import finish_table
from tests.tiny import tiny_model


@pytest.fixture
def run(tmp_path) -> RunFolder:
    """A run folder of an untrained model with a forest that counts one half."""
    sample_table().head(60).to_csv(tmp_path / "in.csv", index=False)
    options = TableOptions(str(tmp_path / "in.csv"), ("penalized_logp",), split="random")
    labelled = read_labelled(options, "mol")
    model, shape = tiny_model("mol")
    task = replace(table_task(options), mean=(0.0,), std=(1.0,))
    config = Config(TABLE, "mol", task, shape.model)
    found = RunFolder(tmp_path / "run")
    write_labelled(found.path, labelled, config, options)
    save_model(found.weights, model, config, {})
    train = labelled.of_split("train")
    y = np.array([row.labels for row in train])
    forest = fit_forest(forest_features([row.smiles for row in train]), y, "regression", 0, 5)
    save_forest(found.forest, replace(forest, weight=0.5))
    return found


def finish(run: RunFolder, known: dict) -> dict:
    val, test = (score_runs([run.path], split, forest=kept_forest(run)) for split in ("val", "test"))
    return finish_table(run, val, test, known)


@pytest.mark.slow
def test_what_is_kept_is_what_predict_predicts(run):
    result = finish(run, {"baseline": {"random_forest": {"mae": 1.0}}})
    assert json.loads(run.test.read_text()) == result
    assert result["network"]["mae"] != result["value"]
    assert result["baseline"] == {"random_forest": {"mae": 1.0}}
    assert evaluate_run(run.path)["value"] == result["value"]
    plain = evaluate_run(run.weights)
    assert plain["scores"] == result["network"]
    assert load_predictor([str(run)]).forest is not None and load_predictor([str(run.weights)]).forest is None
    for path in (run.trust, run.calibration_picture, run.distance_picture, run.report):
        assert path.exists()


@pytest.mark.slow
def test_it_is_the_same_when_it_is_done_again(run, tmp_path):
    """As by a resumed training: neither the trust that is there nor a damaged one is looked at."""
    first = finish(run, {})
    shutil.copy(run.trust, tmp_path / "kept")
    run.trust.write_bytes(b"damaged")
    assert finish(run, {}) == first
    assert run.trust.read_bytes() == (tmp_path / "kept").read_bytes()
