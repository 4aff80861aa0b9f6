"""From a table to a run folder that predicts, is scored and reports."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.output.columns import PredictionColumns
from graphormer_sepnorm.predict.predictors import Predictor
from graphormer_sepnorm.runs.checkpoint import load_model
from graphormer_sepnorm.runs.folder import Parts, RunFolder
from graphormer_sepnorm.table_model.evaluate import describe_any, evaluate_table
from graphormer_sepnorm.table_model.load import load_model as load_from_python
from graphormer_sepnorm.table_model.load import load_predicting_model
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_run import Plan, check_beginning, fit_run, labels_of, train_folds, train_table
from graphormer_sepnorm.tables.formats.table import Row
from graphormer_sepnorm.tables.labels import TableOptions, read_labelled, read_usable, table_task
from graphormer_sepnorm.tables.writers.base import DelimitedWriter
from tests.table_models import Trained

FILES = {
    "stack.safetensors", "kernel.safetensors", "body.safetensors", "table.csv", "table.json",
    "skipped.csv", "duplicates.csv", "measurements.csv", "test.json", "predictions.csv", "parity.png",
    "report.html", "out_of_fold.csv",
}  # fmt: skip


def test_a_run_folder_has_all_of_a_table_model(trained: Trained):
    run, result = trained.run, trained.result
    networks = {"forest.safetensors", "tuned_kernel.safetensors", "parts.json", "model-0", "model-1"}
    assert {path.name for path in run.path.iterdir()} - {"run.lock"} == FILES | networks
    assert list(result["members"]) == list(result["weights"]) == list(MEMBERS)
    assert list(result["out_of_fold"]) == [*MEMBERS, "stack"]
    assert sum(weights["a"] for weights in result["weights"].values()) == pytest.approx(1, abs=1e-3)
    assert result["baseline"]["random_forest"] == result["members"]["forest"]
    assert json.loads(run.test.read_text()) == json.loads(json.dumps(result))
    found = pd.read_csv(run.predictions)
    assert np.abs(found.a - found.a_predicted).mean() == pytest.approx(result["value"], rel=1e-4)
    others = pd.read_csv(run.out_of_fold)
    assert np.abs(others.a - others.a_predicted).mean() == pytest.approx(
        result["out_of_fold"]["stack"]["mae"], rel=1e-4
    )
    assert set(others.row) | set(found.row) == set(range(1, 61)) and (others.a_low < others.a_high).all()
    report = run.report.read_text()
    assert "only the kernel" in report and "out-of-fold" in report


def test_test_rows_are_not_learnt_from(trained: Trained):
    kept, rows = TableModel.load(trained.run.path).trust.domain.smiles, trained.labelled.rows
    assert kept == [row.smiles for row in rows if row.split != "test"] and len(kept) + trained.result["n"] == len(rows)


@pytest.mark.slow
def test_a_final_model_learns_all_rows_and_is_scored_out_of_fold(trained: Trained, tmp_path):
    options, run = replace(trained.options, final=True), RunFolder(tmp_path / "run")
    result = train_table(options, trained.config, run.path, Plan(3, quick=True))
    labelled, model = read_labelled(options, trained.config.featurizer), TableModel.load(run.path)
    assert {row.split for row in labelled.rows} == {"train", "val"} and result["n"] == len(labelled.rows)
    assert sorted(model.trust.domain.smiles) == sorted(row.smiles for row in labelled.rows)
    assert result["split"] == "out of fold" and result["scores"] == result["out_of_fold"]["stack"]
    found = pd.read_csv(run.predictions)
    assert np.abs(found.a - found.a_predicted).mean() == pytest.approx(result["value"], rel=1e-4)
    assert set(found.split) == {"fold-0", "fold-1", "fold-2"} and list(found.row) == list(range(1, 61))
    assert 0.75 < result["trust"]["coverage"]["0.9"]["a"] <= 1
    inside = np.mean((found.a_low <= found.a) & (found.a <= found.a_high))
    assert inside == pytest.approx(result["trust"]["coverage"]["0.9"]["a"], abs=0.001), "of the other folds"
    report = run.report.read_text()
    assert json.loads(run.test.read_text())["value"] == result["value"] and "fitted to all 60" in report
    assert "test label" not in report and "test molecule" not in report and "There are no test rows" in report
    assert "too good" not in report and "Lines: 90 %" not in report and report.count("of 60 training labels") == 20
    facts = describe_any(run.path)
    assert "60 usable rows of" in report and "Limits of the domain" in report and facts["digest"] in report
    assert (facts["test"], facts["out_of_fold"], facts["molecules"]) == (None, result["value"], 60)
    with pytest.raises(InputError, match="has no test molecules"):
        evaluate_table(run)
    with pytest.raises(InputError, match="one network keeps validation rows"):
        train_table(options, trained.config, tmp_path / "one", Plan(1))
    for other in ({"folds": 2}, {"test_csv": "b.csv"}, {"split": "column", "split_column": "s"}):
        with pytest.raises(InputError, match="--final keeps no test rows"):
            replace(options, **other)


@pytest.mark.slow
def test_a_final_classification_is_scored_too(smiles, logp, trained: Trained, tmp_path):
    table = pd.DataFrame({"smiles": smiles[:60], "a": (logp[:60, 0] > np.median(logp[:60, 0])).astype(int)})
    table.to_csv(tmp_path / "in.csv", index=False)
    options = TableOptions(str(tmp_path / "in.csv"), ("a",), "classification", split="random", final=True)
    config = replace(trained.config, task=table_task(options))
    result = train_table(options, config, tmp_path / "run", Plan(3, quick=True))
    assert result["metric"] == "rocauc" and 0.5 < result["value"] <= 1 and result["n"] == 60


@pytest.mark.parametrize("resume", [False, True])
def test_folds_and_one_division_do_not_share_a_folder(trained: Trained, tmp_path, resume):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    options, plan = TableOptions("nowhere.csv", ("a",), folds=2), Plan(2, resume=resume)
    RunFolder(tmp_path / "a").begin_parts(Parts("fold", 3))
    RunFolder(tmp_path / "b").begin_parts(Parts("model", 2))
    with pytest.raises(InputError, match="already holds a model: continue it with --resume"):
        check_beginning(trained.run, trained.config, Plan(2))
    for train_any, name, message in (
        (train_table, "a", "holds 3 folds: continue with --folds 3"),
        (train_folds, "a", "holds 3 folds: continue with --folds 3"),
        (train_folds, "b", "holds 2 networks: continue with --ensemble 2"),
    ):
        with pytest.raises(InputError, match=message):
            train_any(options, trained.config, tmp_path / name, plan)


def test_nothing_is_written_into_a_folder_that_another_process_trains_in(trained: Trained, tmp_path):
    run = RunFolder(tmp_path / "run")
    with run.locked(), pytest.raises(InputError, match="another process is training in"):
        fit_run(trained.labelled, trained.options, trained.config, run, Plan(2))
    assert list(run.path.iterdir()) == []


def test_a_table_that_cannot_be_used_leaves_nothing(trained: Trained, tmp_path):
    (tmp_path / "table.csv").write_text("smiles,y\nCCO,1\n")
    with pytest.raises(InputError, match="has no column 'a'"):
        train_table(TableOptions(str(tmp_path / "table.csv"), ("a",)), trained.config, tmp_path / "run", Plan())
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.slow
def test_networks_are_not_continued_with_other_options(trained: Trained, tmp_path, monkeypatch):
    """A table model would be without its networks, and nobody would know that they could have been there."""
    run, plan = RunFolder(tmp_path / "run"), Plan(2, forest=False)
    config = replace(trained.config, train=replace(trained.config.train, epochs=1))
    fit_run(trained.labelled, trained.options, config, run, plan)
    before = run.stack.read_bytes()
    sentence = r"model-0/state.safetensors was written by another configuration \(train.epochs: 1, now 8\): resume with"
    with pytest.raises(InputError, match=sentence), monkeypatch.context() as patch:
        patch.setattr("graphormer_sepnorm.table_run.fit_table", None)  # refused before anything is fitted
        fit_run(trained.labelled, trained.options, trained.config, run, replace(plan, resume=True))
    monkeypatch.setattr("graphormer_sepnorm.table_run.check_resumable", lambda *arguments: None)
    run.report.unlink()  # as if it were not finished
    with pytest.raises(InputError, match=sentence):
        fit_run(trained.labelled, trained.options, trained.config, run, replace(plan, resume=True))
    assert run.stack.read_bytes() == before, "the whole model stays until another one is whole"
    monkeypatch.undo()
    again = fit_run(trained.labelled, trained.options, config, run, replace(plan, resume=True))
    assert again["value"] == run.saved_test().get("value")


@pytest.mark.slow
def test_one_network_learns_from_the_training_rows_and_is_judged_by_the_validation_rows(trained: Trained, tmp_path):
    run = RunFolder(tmp_path / "run")
    result = fit_run(trained.labelled, trained.options, trained.config, run, Plan(1))
    val = [row for row in trained.labelled.rows if row.split == "val"]
    assert [path.name for path in run.path.glob("model-*")] == ["model-0"]
    assert result["trust"]["calibrated_on"] == len(val) and "validation molecules" in run.report.read_text()
    network = Predictor([load_model(run.member(0).path)[:2]])
    found = network.predict([row.smiles for row in val]).values
    error = np.abs(found - [row.labels for row in val]).mean()
    assert result["out_of_fold"]["networks"]["mae"] == pytest.approx(error, rel=1e-4)
    assert load_predicting_model([str(run)]).trust.intervals.scores.shape == (len(val), 1)


@pytest.mark.slow
def test_quick_stops_after_the_kernel_and_networks_join_when_it_is_resumed(trained: Trained, tmp_path, capsys):
    run = RunFolder(tmp_path / "run")
    first = fit_run(trained.labelled, trained.options, trained.config, run, Plan(2, quick=True))
    assert {path.name for path in run.path.iterdir()} == FILES
    assert list(first["members"]) == ["kernel"]
    assert first["members"]["kernel"] == pytest.approx(trained.result["members"]["kernel"])
    before = {path: path.stat().st_mtime_ns for path in (run.stack, run.test, run.report)}
    assert fit_run(trained.labelled, trained.options, trained.config, run, Plan(2, quick=True, resume=True)) == first
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert capsys.readouterr().err.endswith(f"{run} is finished: to train again, choose another --out\n")
    second = fit_run(trained.labelled, trained.options, trained.config, run, Plan(3, quick=True, resume=True))
    assert run.test.stat().st_mtime_ns > before[run.test], "other folds calibrate in another way"
    other = replace(trained.config, train=replace(trained.config.train, start_from="foundation-mini"))
    assert fit_run(trained.labelled, trained.options, other, run, Plan(3, quick=True, resume=True)) != second
    whole = fit_run(trained.labelled, trained.options, trained.config, run, Plan(2, resume=True))
    assert whole["value"] == pytest.approx(trained.result["value"], rel=1e-6)
    before = run.report.stat().st_mtime_ns
    assert fit_run(trained.labelled, trained.options, trained.config, run, Plan(2, resume=True)) == whole
    assert run.report.stat().st_mtime_ns == before and "finished" in capsys.readouterr().err.splitlines()[-1]


def test_bounds_become_numbers(tmp_path):
    pd.DataFrame({"smiles": ["CCO", "CCN", "CCC"], "a": ["1", "<2", ""]}).to_csv(tmp_path / "a.csv", index=False)
    options = TableOptions(str(tmp_path / "a.csv"), ("a",))
    labels = labels_of(read_usable(options, "mol").rows, table_task(options))
    np.testing.assert_array_equal(labels.y, [[1], [np.nan]])
    np.testing.assert_array_equal(labels.bounds, [[[-np.inf, np.inf]], [[-np.inf, 2]]])


@pytest.mark.slow
def test_labels_far_from_zero_are_learnt_as_well_as_others(trained: Trained, tmp_path):
    far = 1e6
    rows = [replace(row, labels=[row.labels[0] + far]) for row in trained.labelled.rows]
    run = RunFolder(tmp_path / "run")
    result = fit_run(replace(trained.labelled, rows=rows, measured=[]), trained.options, trained.config, run, Plan(2))
    assert result["value"] == pytest.approx(trained.result["value"], abs=1e-4)
    smiles = [row.smiles for row in trained.labelled.rows]
    near, found = (load_from_python(folder.path).predict(smiles, interval=0.8) for folder in (trained.run, run))
    for name in ("a", "a_low", "a_high"):
        np.testing.assert_allclose(found[name] - far, near[name], atol=1e-3)
    lines = pd.read_csv(run.predictions)
    earlier = pd.read_csv(trained.run.predictions)
    np.testing.assert_allclose(lines.a_predicted - far, earlier.a_predicted, atol=1e-3)
    _, config, _ = load_model(run.member(0).path)
    assert config.task.mean[0] == pytest.approx(far, rel=1e-5), "by itself it predicts the labels, not differences"
    predictor = TableModel.load(run.path)
    columns, found = PredictionColumns(predictor), predictor.predict(["C"])
    written = DelimitedWriter(["smiles"], columns.all).encode([Row(["C"], "C")], columns.cells(found, [""]))
    assert float(written.decode().split(",")[1]) == pytest.approx(found.values[0, 0], abs=1e-5, rel=0)
