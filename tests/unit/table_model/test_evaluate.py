"""Scores of a table model on test rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_absolute_error

from graphormer_sepnorm.table_model.evaluate import evaluate_table, predict_all, score_test
from graphormer_sepnorm.table_model.load import load_predicting_model
from graphormer_sepnorm.table_model.model import TableModel
from tests.unit.table_model.conftest import Trained


def test_scores_are_those_of_the_predictions(trained: Trained):
    scored = score_test(trained.run, TableModel.load(trained.run.path))
    table = pd.read_csv(trained.run.path / "table.csv").query("split == 'test'")
    found = load_predicting_model([str(trained.run.path)]).predict(table.smiles.tolist())
    np.testing.assert_allclose(found.values, scored.prediction, rtol=1e-5)
    np.testing.assert_allclose(found.spread, scored.spread, rtol=1e-5)
    assert scored.result["n"] == len(table) and scored.result["value"] == pytest.approx(
        mean_absolute_error(table["target a"], found.values[:, 0]), rel=1e-5
    )
    assert list(evaluate_table(trained.run)["members"]) == ["kernel", "forest", "networks"]


def test_chunks_do_not_matter(trained: Trained, monkeypatch):
    model, smiles = TableModel.load(trained.run.path), ["CCO", "c1ccccc1O", "CCN"]
    whole = predict_all(model, smiles)
    monkeypatch.setattr("graphormer_sepnorm.system.workers.in_chunks.__defaults__", (1,))
    parts = predict_all(model, smiles)
    np.testing.assert_allclose(parts.values, whole.values, rtol=1e-5)
    np.testing.assert_allclose(parts.by_member, whole.by_member, rtol=1e-5)
