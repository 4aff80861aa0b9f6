"""Thirty SIGKILLs of each command that goes on where it was stopped: it ends equal to an uninterrupted one.

A process is killed before it opens, renames or removes a file of its output for the n-th time, n spread from the first
time to the last. The processes that train the networks of a table count on from where the command started them. The
workers of a library are killed while they write a part. ``train`` of a benchmark is killed fifty times in
``test_interruption``.
"""

import csv
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.inference import resumable_writer
from graphormer_sepnorm.interfaces import cli
from graphormer_sepnorm.runs import checkpoint
from tests.robustness import processes
from tests.tiny import save_tiny

pytestmark = pytest.mark.nightly
KILLS = 30
KILLED = (-signal.SIGKILL, 2)  # 2: the command reports that a worker process of it was killed
TINY = [f"--set=model.{field}" for field in ("layers=1", "width=16", "ffn_width=16", "heads=2")]
TABLE = ["--csv", "molecules.csv", "--target-columns", "penalized_logp", "--split", "random", *TINY]
COUNTED = ("open", "os.rename", "os.remove")


def run(folder: Path, output: str, arguments: list[str], kill_at: int = 0) -> None:
    """A command in ``folder``, killed at its ``kill_at``-th operation on a file below ``output``.

    The number of operations is kept where it was not killed.
    """
    os.chdir(folder)
    os.environ["GRAPHORMER_SEPNORM_CACHE"] = str(folder / "cache")
    resumable_writer.molecules_at_once = lambda device: 10
    done = 0

    def count(event: str, details: tuple) -> None:
        nonlocal done
        if event in COUNTED and isinstance(details[0], str | bytes | os.PathLike):
            is_ours = output in os.fsdecode(details[0])
            done += is_ours
            if is_ours and done == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    sys.argv = ["graphormer-sepnorm", *arguments]
    try:
        cli.main()
    finally:
        (folder / "operations.txt").write_text(str(done))


def lay_out(folder: Path) -> Path:
    """What the commands read."""
    folder.mkdir()
    save_tiny(folder / "model")
    table = sample_table()[:60]
    table.to_csv(folder / "molecules.csv", index=False)
    table.to_csv(folder / "few.csv", index=False)
    (folder / "library").mkdir()
    for number in range(6):
        part = sample_table()[["smiles"]][number * 200 : number * 200 + 200]
        part.to_parquet(folder / "library" / f"p{number}.parquet", index=False)
    return folder


def finish(folder: Path, output: str, arguments: list[str]) -> None:
    assert processes.finish(run, folder, output, arguments) == 0


def kill_often(tmp_path: Path, output: str, arguments: list[str], outcome: Callable[[Path], object]) -> None:
    """Kills a command ``KILLS`` times, each time in a folder of its own, and lets each go on to its end."""
    whole = lay_out(tmp_path / "whole")
    finish(whole, output, arguments)
    expected, operations = outcome(whole), int((whole / "operations.txt").read_text())
    for number in range(KILLS):
        folder = lay_out(tmp_path / str(number))
        (folder / "cache").symlink_to(whole / "cache")
        place = 1 + number * operations // KILLS
        assert processes.finish(run, folder, output, arguments, place) in KILLED
        resumed = arguments if can_only_begin(folder, arguments) else [*arguments, "--resume"]
        finish(folder, output, resumed)
        assert outcome(folder) == expected, f"killed at operation {place} of {operations}"
        assert not [path for path in folder.rglob("*") if path.suffix == ".tmp" and "cache" not in path.parts]


def can_only_begin(folder: Path, arguments: list[str]) -> bool:
    """Whether a table has no record yet, or none any more: ``predict`` and ``embed`` have nothing to go on from."""
    return arguments[0] in ("predict", "embed") and not list(folder.glob("*.partial.json"))


@pytest.mark.parametrize(("command", "name"), [("predict", "out.csv"), ("embed", "out.npz"), ("embed", "out.parquet")])
def test_a_table(tmp_path, command, name):
    kill_often(tmp_path, name, [command, "model", "few.csv", "-o", name], lambda folder: (folder / name).read_bytes())


def test_a_training_on_a_table(tmp_path):
    """All members of a table model, its intervals and its report."""

    def outcome(folder: Path) -> tuple:
        run = folder / "run"
        weights = [checkpoint.load_tensors(run / f"model-{number}" / "model.safetensors")[0] for number in range(2)]
        found = [{name: tensor.numpy().tobytes() for name, tensor in tensors.items()} for tensors in weights]
        members = ("kernel.safetensors", "forest.safetensors", "stack.safetensors")
        names = ("predictions.csv", "test.json", "table.csv", *members)
        return found, [(run / name).read_bytes() for name in names], (run / "report.html").exists()

    arguments = ["train", *TABLE, "--recipe", "slim", "--epochs", "2", "--ensemble", "2", "--out", "run/"]
    kill_often(tmp_path, "run/", arguments, outcome)


def test_a_search(tmp_path):
    def outcome(folder: Path) -> tuple:
        with open(folder / "study" / "trials.csv", newline="") as file:
            lines = [line for line in csv.DictReader(file) if line["state"] != "fail"]
        kept = [{name: line[name] for name in line.keys() - {"trial", "seconds"}} for line in lines]
        return kept, (folder / "study" / "best.json").read_bytes()

    search = ["tune", *TABLE, "--epochs", "2", "--trials", "4", "--no-compare", "--out", "study/"]
    kill_often(tmp_path, "study/", search, outcome)


def library_of(folder: Path) -> list[pa.Table]:
    paths = [*sorted((folder / "scores" / "parts").iterdir()), folder / "scores" / "top.parquet"]
    return [pq.ParquetFile(path).read().replace_schema_metadata(None) for path in paths]


def test_a_library(tmp_path):
    """Its command, and in the same computation one of its workers in the middle of a part."""
    arguments = ["predict", "model", "library/*.parquet", "-o", "scores/", "--workers", "1", "--keep-top", "3"]
    whole = lay_out(tmp_path / "whole")
    finish(whole, "scores/", arguments)
    expected, operations = library_of(whole), int((whole / "operations.txt").read_text())
    killed = 0
    for number in range(KILLS):
        folder = lay_out(tmp_path / str(number))
        if number % 2:
            process = processes.start(run, folder, "scores/", arguments)
            wait_for_parts(folder, number // 2 % 6, process)
            process.kill()
            process.join()
        else:
            processes.finish(run, folder, "scores/", arguments, 1 + number * operations // KILLS)
        process = processes.start(run, folder, "scores/", arguments)
        killed += kill_worker_in_a_part(folder, process)
        process.join()
        assert process.exitcode == 0
        assert library_of(folder) == expected
        assert json.loads((folder / "scores" / "_SUCCESS").read_text())["rows"] == 1200
    assert killed >= KILLS // 2


def wait_for_parts(folder: Path, number: int, process) -> None:
    while len(list((folder / "scores" / "parts").glob("*.parquet"))) < number and process.is_alive():
        time.sleep(0.005)


def kill_worker_in_a_part(folder: Path, process) -> bool:
    """Kills the worker of a library while it writes a part; whether it did so before all parts were there."""
    left = set((folder / "scores" / "parts").glob(".*.tmp"))  # by an earlier command
    while process.is_alive():
        if set((folder / "scores" / "parts").glob(".*.tmp")) - left:
            children = psutil.Process(process.pid).children(recursive=True)
            for child in children:
                if "spawn_main" in " ".join(child.cmdline()):
                    child.kill()
                    return True
        time.sleep(0.002)
    return False
