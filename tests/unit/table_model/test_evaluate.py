"""Scores of a table model on test rows."""

import contextlib
import json
import re
import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_absolute_error

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.predict import load_for
from graphormer_sepnorm.runs.folder import Parts, RunFolder
from graphormer_sepnorm.runs.info import describe_model, facts_text
from graphormer_sepnorm.table_model.evaluate import (
    describe_any,
    evaluate_new,
    evaluate_table,
    learnt_column,
    means_of,
    refuse_other_classes,
    rows_for_test,
    score_rows,
    targets_on_test,
    unfinished_words,
)
from graphormer_sepnorm.table_model.load import load_predicting_model
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_run import Plan, fit_run
from tests.table_models import Trained


@pytest.mark.slow
def test_scores_are_those_of_the_predictions(trained: Trained):
    model = TableModel.load(trained.run.path)
    scored = score_rows(model, rows_for_test(trained.run, model), means_of(trained.run, model))
    table = pd.read_csv(trained.run.path / "table.csv").query("split == 'test'")
    found = load_predicting_model([str(trained.run.path)]).predict(table.smiles.tolist())
    np.testing.assert_allclose(found.values, scored.prediction, rtol=1e-5)
    np.testing.assert_allclose(found.spread, scored.spread, rtol=1e-5)
    error = mean_absolute_error(table["target a"], found.values[:, 0])
    assert scored.result["n"] == len(table) and scored.result["value"] == pytest.approx(error, rel=1e-5)
    again, known = evaluate_table(trained.run), trained.result
    assert list(again["members"]) == list(MEMBERS) and again["value"] == pytest.approx(known["value"], rel=1e-6)
    assert again["members"]["kernel"]["rmse"] == pytest.approx(known["members"]["kernel"]["rmse"], rel=1e-6)
    with pytest.raises(InputError, match="was fitted to all rows outside the test set"):
        evaluate_table(trained.run, "val")


@pytest.mark.slow
def test_another_table_is_scored_by_the_same_columns(trained: Trained, tmp_path):
    """The test rows as a table of their own have the scores of the test split."""
    rows = pd.read_csv(trained.run.path / "table.csv").query("split == 'test'")
    table = pd.DataFrame({"structure": [*rows.smiles, "C[C", "CCO"], "a": [*rows["target a"], 1, None]})
    table.to_csv(tmp_path / "new.csv", index=False, sep=";")
    found = evaluate_new(trained.run, str(tmp_path / "new.csv"), "structure", ";")
    assert (found["n"], found["skipped"], found["dataset"]) == (len(rows), 2, str(tmp_path / "new.csv"))
    assert found["reasons"][len(rows) + 2] == "it has no label" and len(found["reasons"]) == 2
    assert found["value"] == pytest.approx(trained.result["value"], rel=1e-5) and found["tested_in_training"] == 0
    assert found["trust"]["coverage"] == trained.result["trust"]["coverage"]
    folder, facts = RunFolder(shutil.copytree(trained.run.path, tmp_path / "run")), trained.run.path / "table.json"
    (folder.path / facts.name).write_text(facts.read_text().replace('"smiles_column": null', '"smiles_column": "mol"'))
    assert learnt_column([folder.path], str(tmp_path / "new.csv"), ";") is None
    (tmp_path / "mol.csv").write_text("smiles,mol,a\nC,CCO,1\n")
    assert learnt_column([trained.run.path, folder.path], str(tmp_path / "mol.csv"), None, None) == "mol"
    mean = found["targets"]["a"]["scores"]["mean"]["mae"]
    learnt = pd.read_csv(trained.run.path / "table.csv").query("split != 'test'")["target a"].mean()
    assert mean == pytest.approx(np.abs(rows["target a"] - learnt).mean(), rel=1e-5)
    for wrong, message in (("smiles,b\nCCO,1\n", "no column 'a'"), ("smiles,a\nC[C,1\n", "no row can be scored")):
        (tmp_path / "wrong.csv").write_text(wrong)
        with pytest.raises(InputError, match=message):
            evaluate_new(trained.run, str(tmp_path / "wrong.csv"))


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_table_model_names_its_members_and_what_it_learnt_from(trained: Trained, tmp_path):
    facts = describe_any(trained.run.path)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["architecture"] == f"table model: {', '.join(MEMBERS)}"
    assert (facts["test"], facts["metric"]) == (trained.result["value"], "mae")
    whole = trained.result["targets"]["a"]
    scored = {"value": trained.result["value"], "interval": whole["interval"]["stack"], "molecules": whole["n"]}
    assert facts["test_scores"] == {"a": scored} and facts["licence"] == "that of its training data"
    assert re.search(
        rf"^test +[\d.]+, 95 % interval [\d.]+ to [\d.]+ on {whole['n']} labels$", facts_text(facts), re.MULTILINE
    )
    assert facts["test_molecules"] == trained.result["n"]
    assert facts["molecules"] == len(trained.labelled.rows) - trained.result["n"] and facts["intervals"] is True
    assert facts["sets_of_classes"] is None and re.search("^intervals +yes$", facts_text(facts), re.MULTILINE)
    assert facts["networks"] == [f"2 of {describe_model(trained.run.member(0).path)['architecture']}"]
    assert facts["training_data"] == trained.options.path and facts["targets"] == ["a"]
    assert sum(float(text.split()[-1]) for text in facts["weights"]) == pytest.approx(1, abs=0.02)
    assert re.search("weights +kernel 0", facts_text(facts))
    shutil.copytree(trained.run.path, tmp_path / "run")
    (tmp_path / "run" / "table.json").unlink()
    with pytest.raises(InputError, match=r"table\.json is missing or damaged"):
        describe_any(tmp_path / "run")


@pytest.mark.slow
def test_a_kernel_that_waits_for_networks_is_told_from_a_finished_one(trained: Trained, tmp_path, capsys):
    quick, table = RunFolder(tmp_path / "quick"), trained.labelled
    fit_run(table, trained.options, trained.config, quick, Plan(2, quick=True))
    assert unfinished_words(trained.run) is unfinished_words(quick) is describe_any(quick.path)["training"] is None
    quick.begin_parts(Parts("model", 2))
    words = unfinished_words(quick)
    assert words and "only the kernel predicts" in words and "--resume" in words
    assert describe_any(quick.path)["training"] == words
    capsys.readouterr()
    load_for([str(quick.path)], strip_salts=False, conditions={})
    assert capsys.readouterr().err == f"{words}\n"
    quick.write_test(quick.saved_test() | {"left_out_members": {"networks": "too few molecules"}})
    assert unfinished_words(quick) is None, "a network that cannot be fitted"
    quick.record.unlink()
    quick.test.unlink()
    assert unfinished_words(quick) == words, "killed before the networks began"
    (quick.path / "table.csv").unlink()
    assert unfinished_words(quick) is None, "as an estimator saves it"


def test_scores_of_targets_are_those_of_the_whole_model():
    scores = {"stack": {"mae": 0.5, "rmse": 1.0}, "kernel": {"mae": 0.6}}
    first = {"n": 9, "scores": scores, "interval": {"stack": [0.25, 0.75], "kernel": [0, 1]}}
    others = {"b": {"n": 1, "scores": scores}, "c": {"n": 0, "scores": {"stack": {"mae": None}}}}
    found = targets_on_test({"metric": "mae", "targets": {"a": first, **others}})
    assert found == {
        name: {"value": 0.5, "interval": ends, "molecules": n}
        for name, ends, n in (("a", [0.25, 0.75], 9), ("b", None, 1))
    }
    assert targets_on_test({}) == {}
