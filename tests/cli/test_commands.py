import json
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from graphormer_sepnorm.interfaces.cli import main
from graphormer_sepnorm.interfaces.commands import app
from graphormer_sepnorm.runs.checkpoint import load_tensors
from tests.robustness import processes


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("cli") / "run"
    regularization = ("--dropout", 0.01, "--attention-dropout", 0.02, "--weight-decay", 0.03)
    done = processes.command("train.py", "--epochs", 1, "--seed", 3, *regularization, "--out", out)
    assert done.returncode == 0, done.stderr
    return out, done


@pytest.mark.slow
def test_train_writes_the_run_folder_and_prints_json_last(finished):
    out, done = finished
    result = json.loads(done.stdout.splitlines()[-1])
    assert {path.name for path in out.iterdir()} == {
        "config.json", "model.safetensors", "state.safetensors", "metrics.jsonl", "curves.png", "parity.png",
        "test.json", "predictions.csv", "command.json",
    }  # fmt: skip
    assert result == {"out": str(out), **json.loads((out / "test.json").read_text())}
    assert result["dataset"] == "sample" and result["n"] == 500 and result["seed"] == 3
    assert 0 < result["value"] < 1.7  # the training median alone gives 1.7
    config = json.loads((out / "config.json").read_text())
    assert (config["model"]["dropout"], config["model"]["attention_dropout"]) == (0.01, 0.02)
    assert config["train"]["weight_decay"] == 0.03


@pytest.mark.slow
def test_evaluate_recomputes_the_test_score(finished, command):
    out, done = finished
    scored = processes.command("evaluate.py", out)
    assert scored.returncode == 0, scored.stderr
    result = json.loads(scored.stdout.splitlines()[-1])
    assert {"out": str(out), **result} == json.loads(done.stdout.splitlines()[-1])
    assert {"dataset", "split", "metric", "value", "n", "parameters", "seed"} <= set(result)
    validation = command("evaluate", out, "--split", "val")[1]
    line = json.loads((out / "metrics.jsonl").read_text().splitlines()[0])
    assert validation["value"] == pytest.approx(line["val_metric"], abs=1e-5)


@pytest.mark.slow
def test_a_finished_run_is_not_overwritten(finished, command):
    out, _ = finished
    before = (out / "model.safetensors").read_bytes()
    code, _, messages = command("train", "--epochs", 1, "--seed", 3, "--out", out)
    assert code == 2 and "--resume" in messages
    code, _, messages = command("train", "--epochs", 2, "--out", out, "--resume")
    assert code == 2 and "begun with 1" in messages
    assert (out / "model.safetensors").read_bytes() == before
    code, result, _ = command("train", "--out", out, "--resume")
    assert code == 0 and result == json.loads(finished[1].stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (["--dataset", "qm9"], "unknown dataset 'qm9'"),
        (["--epochs", "0"], "epochs"),
        (["--root"], "Option '--root' needs a value"),
        (["--split", "random"], "--split: options of a table need one: name it first"),
        (["nowhere.csv", "--target-columns", "a"], "nowhere.csv"),
        (["tests"], "tests is a folder, not a table: name the file"),
        (["--resume"], "keeps no options of a training: name its table"),
        (["--dataset", "zinc", "--root", "/nowhere"], "--root"),
        (["--norm", "sepnorm", "--set", "model.norm=sharenorm"], "--set model.norm=sharenorm differ: leave one out"),
    ],
)
def test_bad_options_end_with_one_sentence_and_nothing_written(tmp_path, monkeypatch, capsys, arguments, problem):
    out = tmp_path / "run"
    monkeypatch.setattr(sys, "argv", ["train.py", *arguments, "--out", str(out)])
    monkeypatch.delenv("GRAPHORMER_SEPNORM_ROOT", raising=False)
    with pytest.raises(SystemExit) as stopped:
        main("train")
    assert stopped.value.code == 2
    assert problem in capsys.readouterr().err
    assert not out.exists() and not Path("/nowhere").exists()


@pytest.mark.slow
def test_statistics_are_those_of_from(finished, command, tmp_path):
    options = ["--from", finished[0], "--frozen-statistics", "--lr", 1e-9, "--averaging", 0, "--out", tmp_path / "run"]
    code, _, messages = command("train", "--epochs", 1, *options)
    assert code == 0, messages
    before, _, _ = load_tensors(finished[0] / "model.safetensors")
    after, config, _ = load_tensors(tmp_path / "run" / "model.safetensors")
    assert config.train.start_from == str(finished[0])
    names = [name for name in before if "running" in name]
    assert names and all(torch.equal(before[name], after[name]) for name in names)


def test_a_mistyped_command_gets_a_suggestion(command):
    code, _, messages = command("trian", "assay.csv")
    assert code == 2 and "No such command 'trian'; did you mean 'train'?\n" in messages


def test_h_shows_the_help_of_all_commands_and_of_one():
    for arguments, text in ((["-h"], "Your molecules:"), (["train", "-h"], "Your table:")):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0 and text in result.output


START = {
    "console script": "from graphormer_sepnorm.interfaces.cli import main; main()",
    "train.py": "import runpy; runpy.run_path('train.py', run_name='__main__')",
    "evaluate.py": "import runpy; runpy.run_path('evaluate.py', run_name='__main__')",
}
ARGUMENTS = {"console script": ["predict", "m", "in.csv", "-o", "out.csv"], "train.py": [], "evaluate.py": ["m"]}


@pytest.mark.parametrize("start", START)
@pytest.mark.parametrize(
    "module", ["torch", *(pytest.param(name, marks=pytest.mark.slow) for name in ("typer", "numpy"))]
)
def test_an_interruption_of_the_imports_is_a_line(start, module):
    """The process interrupts itself when it begins to import a module."""
    hook = f"lambda event, what: event == 'import' and what[0] == {module!r} and os.kill(os.getpid(), signal.SIGINT)"
    done = processes.command(
        "-c", f"import os, signal, sys; sys.addaudithook({hook}); {START[start]}", *ARGUMENTS[start]
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
