"""Scores of a table model on test rows."""

import contextlib
import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_absolute_error

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.evaluate import (
    evaluate_new,
    evaluate_table,
    means_of,
    refuse_other_classes,
    rows_for_test,
    score_rows,
)
from graphormer_sepnorm.table_model.load import load_predicting_model
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.model import TableModel
from tests.table_models import Trained


def test_scores_are_those_of_the_predictions(trained: Trained):
    model = TableModel.load(trained.run.path)
    scored = score_rows(model, rows_for_test(trained.run, model), means_of(trained.run, model)).final
    table = pd.read_csv(trained.run.path / "table.csv").query("split == 'test'")
    found = load_predicting_model([str(trained.run.path)]).predict(table.smiles.tolist())
    np.testing.assert_allclose(found.values, scored.prediction, rtol=1e-5)
    np.testing.assert_allclose(found.spread, scored.spread, rtol=1e-5)
    assert scored.result["n"] == len(table) and scored.result["value"] == pytest.approx(
        mean_absolute_error(table["target a"], found.values[:, 0]), rel=1e-5
    )
    assert list(evaluate_table(trained.run)["members"]) == list(MEMBERS)


def test_another_table_is_scored_by_the_same_columns(trained: Trained, tmp_path):
    """The test rows as a table of their own have the scores of the test split."""
    rows = pd.read_csv(trained.run.path / "table.csv").query("split == 'test'")
    table = pd.DataFrame({"structure": [*rows.smiles, "C[C", "CCO"], "a": [*rows["target a"], 1, None]})
    table.to_csv(tmp_path / "new.csv", index=False, sep=";")
    found = evaluate_new(trained.run, str(tmp_path / "new.csv"), "structure", ";")
    assert (found["n"], found["skipped"], found["dataset"]) == (len(rows), 2, str(tmp_path / "new.csv"))
    assert found["reasons"][len(rows) + 2] == "it has no label" and len(found["reasons"]) == 2
    assert found["value"] == pytest.approx(trained.result["value"], rel=1e-5) and found["training_molecules"] == 0
    assert found["trust"]["coverage"] == trained.result["trust"]["coverage"]
    mean = found["targets"]["a"]["scores"]["mean"]["mae"]
    learnt = pd.read_csv(trained.run.path / "table.csv").query("split != 'test'")["target a"].mean()
    assert mean == pytest.approx(np.abs(rows["target a"] - learnt).mean(), rel=1e-5)
    for wrong, message in (("smiles,b\nCCO,1\n", "no column 'a'"), ("smiles,a\nC[C,1\n", "no row can be scored")):
        (tmp_path / "wrong.csv").write_text(wrong)
        with pytest.raises(InputError, match=message):
            evaluate_new(trained.run, str(tmp_path / "wrong.csv"))


def test_the_table_of_another_run_is_refused(trained: Trained, tmp_path):
    folder = RunFolder(shutil.copytree(trained.run.path, tmp_path / "run"))
    table = folder.path / "table.csv"
    kept = pd.read_csv(table)
    kept["target a"] += 1
    kept.to_csv(table, index=False)
    for evaluated in (evaluate_table, partial(evaluate_new, table=str(table))):
        with pytest.raises(InputError, match="not the table that this run was trained on"):
            evaluated(folder)
    assert TableModel.load(folder.path).predict(["C"]).errors == [""], "predictions do not need it"


@pytest.mark.parametrize(("names", "refused"), [((), False), ((("no", "Yes"),), False), ((("a", "b"),), True)])
def test_classes_that_tables_call_otherwise_are_refused(names, refused):
    task = TaskConfig("classification", "rocauc", ("t",), class_names=names)
    with pytest.raises(InputError, match="classes of t are a and b") if refused else contextlib.nullcontext():
        refuse_other_classes(task)
