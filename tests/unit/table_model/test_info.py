"""Facts about table models."""

import json
import re
import shutil

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.predict import load_for
from graphormer_sepnorm.runs.folder import Parts, RunFolder
from graphormer_sepnorm.runs.info import as_text, describe_model
from graphormer_sepnorm.table_model.info import describe_any, targets_on_test, unfinished_words
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_run import Plan, fit_run
from tests.table_models import Trained


def test_a_table_model_names_its_members_and_what_it_learnt_from(trained: Trained, tmp_path):
    facts = describe_any(trained.run.path)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["architecture"] == f"table model: {', '.join(MEMBERS)}"
    assert (facts["test"], facts["metric"]) == (trained.result["value"], "mae")
    whole = trained.result["targets"]["a"]
    scored = {"value": trained.result["value"], "interval": whole["interval"]["stack"], "molecules": whole["n"]}
    assert facts["test_scores"] == {"a": scored} and facts["licence"] == "that of its training data"
    assert re.search(rf"^test +[\d.]+ \([\d.]+ to [\d.]+, {whole['n']} molecules\)$", as_text(facts), re.MULTILINE)
    assert facts["molecules"] == len(trained.labelled.rows) - trained.result["n"] and facts["intervals"] is True
    assert facts["sets_of_classes"] is None and re.search("^intervals +yes$", as_text(facts), re.MULTILINE)
    assert facts["networks"] == [f"2 of {describe_model(trained.run.member(0).path)['architecture']}"]
    assert facts["training_data"] == trained.options.path and facts["targets"] == ["a"]
    assert sum(float(text.split()[-1]) for text in facts["weights"]) == pytest.approx(1, abs=0.02)
    assert re.search("weights +kernel 0", as_text(facts))
    shutil.copytree(trained.run.path, tmp_path / "run")
    (tmp_path / "run" / "table.json").unlink()
    with pytest.raises(InputError, match=r"table\.json is missing or damaged"):
        describe_any(tmp_path / "run")


def test_a_kernel_that_waits_for_networks_is_told_from_a_finished_one(trained: Trained, tmp_path, capsys):
    quick, table = RunFolder(tmp_path / "quick"), trained.labelled
    fit_run(table, trained.options, trained.config, quick, Plan(2, quick=True))
    assert (
        unfinished_words(trained.run) is unfinished_words(quick) is None
        and describe_any(quick.path)["training"] is None
    )
    quick.begin_parts(Parts("model", 2))
    words = unfinished_words(quick)
    assert words and words.endswith(
        "not finished, so only the kernel predicts: if it was interrupted, repeat its command with --resume"
    )
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
    targets = {
        "a": {"n": 9, "scores": scores, "interval": {"stack": [0.25, 0.75], "kernel": [0, 1]}},
        "b": {"n": 1, "scores": scores},
        "c": {"n": 0, "scores": {"stack": {"mae": None}}},
    }
    found = targets_on_test({"metric": "mae", "targets": targets})
    assert found == {
        "a": {"value": 0.5, "interval": [0.25, 0.75], "molecules": 9},
        "b": {"value": 0.5, "interval": None, "molecules": 1},
    }
    assert targets_on_test({}) == {}
