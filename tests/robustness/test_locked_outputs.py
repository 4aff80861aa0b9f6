"""Two processes that would write one output: the first has it, the second is refused with one sentence.

The second resumes where a folder of the first would be refused before the lock is tried.
"""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.interfaces import cli
from tests.robustness import processes
from tests.tiny import save_tiny

TUNE = ["tune", "--csv", "molecules.csv", "--target-columns", "logp", "--out", "study", "--set", "model.layers=1"]
RESUMED = ("tune", "pretrain")
COMMANDS = {
    "predict": (["predict", "model", "molecules.csv", "-o", "out.csv"], ".out.csv.lock"),
    "embed": (["embed", "model", "molecules.csv", "-o", "out.npz"], ".out.npz.lock"),
    "library": (["predict", "model", "library/*.csv", "-o", "scores", "--workers", "1"], "scores/library.lock"),
    "tune": (TUNE, "study/run.lock"),
    "pretrain": (["pretrain", "--smiles", "molecules.csv", "--size", "mini", "--out", "body"], "body/run.lock"),
}


def run(folder: Path, messages: Path, arguments: list[str]) -> None:
    """A command in ``folder``; what it says goes to a file."""
    os.chdir(folder)
    os.environ["GRAPHORMER_SEPNORM_CACHE"] = str(folder / "cache")
    with open(messages, "wb") as file:
        os.dup2(file.fileno(), 2)
    sys.argv = ["graphormer-sepnorm", *arguments]
    cli.main()


@contextmanager
def stopped_at(lock: Path, folder: Path, arguments: list[str]) -> Iterator[None]:
    """Within it, a process that holds its lock stands still."""
    process = processes.start(run, folder, folder / "first.txt", arguments)
    try:
        while not stops_with(lock, process.pid):
            os.kill(process.pid, signal.SIGCONT)
            time.sleep(0.001)
            assert process.is_alive(), (folder / "first.txt").read_text()
        yield
    finally:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        process.join()


def stops_with(lock: Path, process: int) -> bool:
    """Stops a process and says whether the lock is held; the process cannot notice that the lock was tried."""
    os.kill(process, signal.SIGSTOP)
    while psutil.Process(process).status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
        time.sleep(0.0001)
    if not lock.exists():
        return False
    with open(lock) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_the_second_process_is_refused_and_leaves_the_first_ones_files(tmp_path, name):
    arguments, lock = COMMANDS[name]
    save_tiny(tmp_path / "model")
    table = sample_table()[:100].rename(columns={"penalized_logp": "logp"})
    table.to_csv(tmp_path / "molecules.csv", index=False)
    (tmp_path / "library").mkdir()
    table.to_csv(tmp_path / "library" / "part.csv", index=False)
    with stopped_at(tmp_path / lock, tmp_path, arguments):
        before = contents(tmp_path)
        resume = ["--resume"] * (name in RESUMED)
        second = processes.start(run, tmp_path, tmp_path / "second.txt", [*arguments, *resume])
        second.join(120)
        said = (tmp_path / "second.txt").read_text()
        assert second.exitcode == 2, said
        assert said.splitlines()[-1].startswith("error: another process is "), said
        assert "Traceback" not in said and contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes]:
    """The outputs below a folder, whole or growing."""
    outputs = [path for path in folder.iterdir() if path.name not in ("cache", "first.txt", "second.txt")]
    files = [file for path in outputs for file in (path.rglob("*") if path.is_dir() else [path])]
    return {str(path): path.read_bytes() for path in files if path.is_file()}
