"""The search as users run it, with real processes."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from graphormer_sepnorm.datasets.benchmarks import sample_table
from tests.robustness import processes
from tests.tables import records

TINY = [f"--set=model.{field}" for field in ("layers=1", "width=16", "ffn_width=16", "heads=2")]
MAIN = "from graphormer_sepnorm.interfaces.cli import main; main()"
FILES = {
    "best.json", "duplicates.csv", "history.png", "importance.png", "skipped.csv", "study.db", "study.json",
    "measurements.csv", "table.csv", "table.json", "trials.csv",
}  # fmt: skip


@pytest.fixture
def table(tmp_path) -> list:
    sample_table()[:60].to_csv(tmp_path / "mols.csv", index=False)
    return [tmp_path / "mols.csv", "--target-columns", "penalized_logp", "--split", "random"]


def lines(study: Path) -> list[dict]:
    return records(study / "trials.csv")


@pytest.mark.slow
def test_a_search_from_the_shell_gives_a_recipe_that_train_takes(command, table, tmp_path):
    study = tmp_path / "study"
    options = [*table, *TINY, "--epochs", 2, "--trials", 3, "--processes", 2, "--out", study]
    code, result, messages = command("tune", *options)
    assert code == 0, messages
    compared = {"best", "recipe"} if result["test"]["best"] != result["test"]["recipe"] else {"best"}
    assert {path.name for path in study.iterdir()} == FILES | compared
    assert result["trials"] == 3 and result["metric"] == "mae"
    scores = {name: json.loads((study / name / "test.json").read_text())["value"] for name in compared}
    assert result["test"] == {"recipe": scores["best"]} | scores
    assert result["better"] == (result["test"]["best"] < result["test"]["recipe"])
    assert len(lines(study)) == 3

    arguments = [*table, "--recipe", study / "best.json", "--no-baseline", "--out", tmp_path / "run"]
    code, again, messages = command("train", *arguments)
    assert code == 0, messages
    assert np.isfinite(again["value"]) and again["metric"] == "mae"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--metric", "rocauc"], "'rocauc' does not score a regression"),
        (["--trials", "0"], "--trials 0"),
        (["--recipe", "zinc"], "reads 'zinc' features"),
        (["--set", "train.lr=0"], "train.lr"),
    ],
)
def test_a_search_takes_the_options_of_a_table_and_of_a_training(command, table, tmp_path, options, sentence):
    code, _, messages = command("tune", *table, "--out", tmp_path / "study", *options)
    assert code == 2 and sentence in messages and not (tmp_path / "study").exists()


class Command:
    def __init__(self, *options):
        self.process = subprocess.Popen(
            processes.command_line("-c", MAIN, "tune", *options),
            **processes.surroundings(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def trial(self) -> psutil.Process:
        while self.process.poll() is None:
            for server in psutil.Process(self.process.pid).children():
                for trial in server.children():
                    return trial
            time.sleep(0.01)
        raise AssertionError(self.process.communicate()[1])

    def wait_for(self, condition) -> None:
        while not condition():
            assert self.process.poll() is None, self.process.communicate()[1]
            time.sleep(0.01)


@pytest.mark.slow
def test_a_trial_that_is_killed_is_lost_alone(table, tmp_path):
    study = tmp_path / "study"
    running = Command(*table, *TINY, "--epochs", 2, "--trials", 3, "--no-compare", "--out", study)
    running.wait_for((study / "trials.csv").exists)
    trial = running.trial()
    trial.kill()
    output, messages = running.process.communicate()
    assert running.process.returncode == 0, messages
    states = [line["state"] for line in lines(study)]
    assert sorted(states) == ["complete", "complete", "pruned"]
    assert lines(study)[states.index("pruned")]["problem"] == "killed by SIGKILL"
    assert json.loads(output.splitlines()[-1])["complete"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_search_that_is_stopped_keeps_its_trials_and_goes_on(table, tmp_path, number):
    """The command alone is killed; Ctrl-C goes to all processes. No trial stays behind."""
    study = tmp_path / "study"
    options = [*table, *TINY, "--epochs", 2, "--trials", 3, "--no-compare", "--out", study]
    running = Command(*options)
    running.wait_for((study / "trials.csv").exists)
    trial = running.trial()
    if number == signal.SIGKILL:
        running.process.kill()
    else:
        os.killpg(running.process.pid, number)
    _, messages = running.process.communicate()
    if number == signal.SIGINT:
        assert running.process.returncode == 128 + number
        assert messages.splitlines()[-1].startswith("interrupted; ") and "--resume" in messages
    else:
        assert running.process.returncode == -number
    assert "Traceback" not in messages
    psutil.wait_procs([trial], timeout=300)
    assert not trial.is_running()
    kept = lines(study)
    assert kept[0]["state"] == "complete" and (study / "best.json").exists()
    done = processes.command("-c", MAIN, "tune", *options, "--resume")
    assert done.returncode == 0, done.stderr
    assert lines(study)[0] == kept[0]
    assert [line["state"] for line in lines(study)].count("complete") == 3
