"""Runs that are killed, stopped by a signal or run out of disk lose no completed epoch."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch

from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import CONFIG, METRICS_FILE, STATE, WEIGHTS
from tests.robustness import processes, tiny_run

pytestmark = pytest.mark.slow

SCRIPT = "tests/robustness/tiny_run.py"
RUN_FILES = {"config.json", "curves.png", "metrics.jsonl", "model.safetensors", "state.safetensors", "test.json"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, float]:
    folder = tmp_path_factory.mktemp("whole")
    processes.finish(tiny_run.run, folder / "first", folder / "cache")
    started = time.perf_counter()
    assert processes.finish(tiny_run.run, folder / "run", folder / "other") == 0
    return folder / "run", time.perf_counter() - started


def assert_same_end(run: Path, whole: Path) -> None:
    assert_complete(run)
    for name in (WEIGHTS, STATE):
        (ours, _, facts), (theirs, _, expected) = (checkpoint.load_tensors(folder / name) for folder in (run, whole))
        assert facts == expected and ours.keys() == theirs.keys()
        assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert (run / "test.json").read_bytes() == (whole / "test.json").read_bytes()
    assert losses(run) == losses(whole)


def assert_complete(run: Path) -> None:
    names = {path.name for path in run.iterdir()}
    assert names >= RUN_FILES
    assert not any(name.startswith(".") for name in names)


def losses(run: Path) -> list[tuple]:
    lines = map(json.loads, (run / METRICS_FILE).read_text().splitlines())
    return [(line["epoch"], line["train_loss"], line["val_metric"], line["lr"]) for line in lines]


def assert_loads(run: Path) -> None:
    for name in (WEIGHTS, STATE):
        if (run / name).exists():
            checkpoint.load_tensors(run / name)
    if (run / METRICS_FILE).exists():
        losses(run)


def temporary_files(folder: Path) -> set[str]:
    """Unlike Path.rglob, os.walk passes over what vanishes under its hands."""
    found = {os.path.join(parent, name) for parent, *names in os.walk(folder) for name in (*names[0], *names[1])}
    return {path for path in found if re.search(r"/\.[^/]*\.tmp$", path)}


def start_and_kill(folder: Path, kind: str, seconds: float) -> int | None:
    """Starts or resumes a run and kills it within ``seconds`` or in a write to a folder; returns its exit code."""
    process = processes.start(tiny_run.run, folder / "run", folder / "cache", resume=True)
    if kind == "anywhere":
        process.join(random.uniform(0, seconds))
    else:
        seen, writes = set(), random.randint(1, 6)
        while process.is_alive() and len(seen) < writes:
            seen |= temporary_files(folder / kind)
    process.kill()
    process.join()
    return process.exitcode


def kill_and_resume(folder: Path, kinds: list[str], whole: tuple[Path, float]) -> None:
    finished, seconds = whole
    run, cache = folder / "run", folder / "cache"
    for kind in kinds:
        while start_and_kill(folder, kind, seconds) != -signal.SIGKILL:  # it ended first: begin again
            shutil.rmtree(folder)
        assert_loads(run)
    assert processes.finish(tiny_run.run, run, cache, resume=True) == 0
    assert_same_end(run, finished)


def test_kills_in_writes_and_at_a_random_moment_lose_nothing(tmp_path, whole):
    random.seed(20)
    kill_and_resume(tmp_path / "killed", ["cache", "run", "anywhere"], whole)


def test_a_signal_stops_with_advice_and_the_run_goes_on(tmp_path, whole):
    arguments = [SCRIPT, "--out", tmp_path / "run", "--cache", tmp_path / "cache"]
    process = subprocess.Popen(
        processes.command_line(*arguments), **processes.surroundings(), stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "run" / STATE).exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + signal.SIGINT
    assert error.splitlines()[-1].startswith("interrupted; ") and "--resume" in error and "Traceback" not in error
    assert not list((tmp_path / "run").glob(".*"))
    assert processes.finish(tiny_run.run, tmp_path / "run", tmp_path / "cache", resume=True) == 0
    assert_same_end(tmp_path / "run", whole[0])


def test_a_full_disk_ends_with_one_sentence_and_the_last_checkpoint_intact(tmp_path, whole):
    """A file system of its own, too small for the second write of the state."""
    disk = tmp_path / "disk"
    disk.mkdir()
    once = sum((whole[0] / name).stat().st_size for name in (STATE, WEIGHTS))
    mount = f"mount -t tmpfs -o size={once + 60_000} none {disk}"
    train = processes.command_line(SCRIPT, "--out", disk / "run", "--cache", tmp_path / "cache")
    done = processes.mounted(mount, train, f"cp -r {disk}/run {tmp_path}/kept", **processes.surroundings())
    assert done.returncode == 2, done.stderr
    error = done.stderr.strip().splitlines()[-1]
    assert error.startswith("error: cannot write") and "No space left" in error and "Traceback" not in done.stderr
    assert checkpoint.load_tensors(tmp_path / "kept" / WEIGHTS)[2]["epoch"] >= 1
    assert_loads(tmp_path / "kept")
    assert not list((tmp_path / "kept").glob(".*"))
    assert processes.finish(tiny_run.run, tmp_path / "kept", tmp_path / "cache", resume=True) == 0
    assert_same_end(tmp_path / "kept", whole[0])


def test_weights_whose_state_is_gone_are_not_overwritten(tmp_path, whole):
    model, config, facts = checkpoint.load_model(whole[0])
    checkpoint.save_model(tmp_path / "run" / WEIGHTS, model, config, {**facts, "epoch": 3})
    before = (tmp_path / "run" / WEIGHTS).read_bytes()
    assert processes.finish(tiny_run.run, tmp_path / "run", tmp_path / "cache", resume=True) == 2
    assert (tmp_path / "run" / WEIGHTS).read_bytes() == before


def test_an_ensemble_on_a_table_that_is_killed_before_its_first_state_goes_on(tmp_path):
    """Killed when the config of one of its models is there, and no state of that model yet."""
    sample_table()[:300].to_csv(tmp_path / "mols.csv", index=False)
    folders = [tmp_path / "run" / f"model-{number}" for number in range(2)]
    train = ["train.py", "--csv", tmp_path / "mols.csv", "--target-columns", "penalized_logp", "--epochs", 1]
    train += ["--recipe", "slim", "--set", "model.layers=1", "--no-blend", "--ensemble", 2]
    train += ["--out", tmp_path / "run"]
    process = subprocess.Popen(processes.command_line(*train), **processes.surroundings())
    while not (folders[1] / CONFIG).exists():
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert not (folders[1] / STATE).exists()
    done = processes.command(*train, "--resume")
    assert done.returncode == 0, done.stderr
    for folder in folders:
        assert {path.name for path in folder.iterdir()} == RUN_FILES - {"test.json"}
    assert (tmp_path / "run" / "stack.safetensors").exists() and (tmp_path / "run" / "report.html").exists()


def test_fresh_processes_and_other_numbers_of_preparing_threads_give_the_same_run(tmp_path):
    for threads in (1, 2, 5):
        folder = tmp_path / str(threads)
        options = ["--out", folder / "run", "--cache", folder / "cache", "--threads", threads]
        done = processes.command(SCRIPT, *options)
        assert done.returncode == 0, done.stderr
    for threads in (2, 5):
        assert_same_end(tmp_path / str(threads) / "run", tmp_path / "1" / "run")
    assert len(losses(tmp_path / "1" / "run")) == 4
