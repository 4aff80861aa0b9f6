"""Libraries on Dask: workers, a scheduler and the command killed, partitions damaged, the disk full."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest

from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.library.part_writer import best_rows
from tests.robustness import processes
from tests.tiny import save_tiny

ROWS = 1000
MAIN = "from graphormer_sepnorm.interfaces.cli import main; main()"
OUT = "scores"


@pytest.fixture
def folder(tmp_path) -> Path:
    """A model, and a library of six partitions."""
    save_tiny(tmp_path / "model")
    (tmp_path / "library").mkdir()
    for number in range(6):
        rows = sample_table()[["smiles"]][number * 500 : number * 500 + ROWS]
        rows.to_parquet(tmp_path / "library" / f"p{number}.parquet", index=False)
    return tmp_path


def predict(*options) -> list[str]:
    return [sys.executable, "-c", MAIN, "predict", "model", "library/*.parquet", "-o", OUT, *map(str, options)]


def place(folder: Path) -> dict:
    return {**processes.surroundings(), "cwd": folder}


def start(folder: Path, *options) -> subprocess.Popen:
    return subprocess.Popen(predict(*options), **place(folder), stderr=subprocess.PIPE, text=True)


def finish(folder: Path, *options) -> tuple[dict, str]:
    done = subprocess.run(predict(*options), **place(folder), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def parts(folder: Path) -> dict[str, Path]:
    return {path.name: path for path in (folder / OUT / "parts").glob("*") if not path.name.startswith(".")}


def wait_for_a_part(folder: Path, process: subprocess.Popen) -> None:
    while not parts(folder):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)


def assert_complete(folder: Path) -> None:
    """All parts, the best of them, the sign of success, and nothing else."""
    found = parts(folder)
    assert sorted(found) == [f"p{number}.parquet" for number in range(6)]
    assert {path.name for path in (folder / OUT).iterdir()} == {"manifest.json", "_SUCCESS", "parts", "top.parquet"}
    assert [path for path in (folder / OUT / "parts").iterdir() if path.name.startswith(".")] == []
    tables = [pq.ParquetFile(path).read() for _, path in sorted(found.items())]
    assert [len(table) for table in tables] == [3] * 6
    expected = best_rows(tables, "logp", 3, False, tables[0].schema)
    top = pq.ParquetFile(folder / OUT / "top.parquet").read()
    assert top.column_names == ["smiles", "logp", "row", "partition"]
    assert top.select(["smiles", "logp", "row"]).to_pydict() == expected.to_pydict()
    assert np.all(np.diff(top["logp"].to_numpy()) <= 0)


@pytest.mark.slow
def test_a_killed_worker_and_a_damaged_partition_cost_their_own_work_alone(folder):
    damaged = folder / "library" / "p4.parquet"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2])
    process = start(folder, "--workers", 2, "--keep-top", 3)
    wait_for_a_part(folder, process)
    workers = [child for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())]
    workers[0].kill()
    messages = process.communicate()[1]
    assert process.returncode == 2, messages
    assert "lost the worker tcp://127.0.0.1:" in messages
    assert "1 of 6 partitions failed: p4.parquet (cannot read" in messages.splitlines()[-1]
    before = {name: path.stat().st_mtime_ns for name, path in parts(folder).items()}
    assert sorted(before) == [f"p{number}.parquet" for number in (0, 1, 2, 3, 5)]
    assert not (folder / OUT / "_SUCCESS").exists()
    damaged.write_bytes(whole)
    result, messages = finish(folder, "--workers", 2, "--keep-top", 3)
    assert (result["rows"], result["unreadable"], result["kept"]) == (6 * ROWS, 0, 18)
    assert "computing in 1 process" in messages
    assert before.items() <= {name: path.stat().st_mtime_ns for name, path in parts(folder).items()}.items()
    assert_complete(folder)


@pytest.mark.nightly
def test_a_killed_scheduler_is_named_and_what_is_done_is_kept(folder):
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    file = folder / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file]
    scheduler = subprocess.Popen([*dask, *map(str, options)], **place(folder), stderr=subprocess.DEVNULL)
    while not file.exists() or not file.read_text():
        time.sleep(0.05)
    address = json.loads(file.read_text())["address"]
    work = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
    worker = subprocess.Popen(work, **place(folder), stderr=subprocess.DEVNULL)
    try:
        process = start(folder, "--scheduler", address, "--keep-top", 3)
        wait_for_a_part(folder, process)
        scheduler.kill()
        messages = process.communicate()[1]
    finally:
        scheduler.kill()
        worker.terminate()
        worker.wait()
    assert process.returncode == 2, messages
    assert f"error: the connection to the scheduler {address} is lost" in messages.splitlines()[-1]
    assert "Traceback" not in messages
    before = {name: path.stat().st_mtime_ns for name, path in parts(folder).items()}
    assert before and not (folder / OUT / "_SUCCESS").exists()
    finish(folder, "--workers", 1, "--keep-top", 3)
    assert before.items() <= {name: path.stat().st_mtime_ns for name, path in parts(folder).items()}.items()
    assert_complete(folder)


@pytest.mark.slow
def test_a_full_disk_is_named_and_nothing_half_written_stays(folder):
    """A file system of its own, with room for one part or two."""
    disk = folder / OUT
    disk.mkdir()
    mount, keep = f"mount -t tmpfs -o size=100k none {disk}", f"cp -r {disk} {folder}/kept"
    done = processes.mounted(mount, predict("--workers", 1), keep, **place(folder))
    error = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 2, done.stderr
    assert error.startswith("error: cannot write") and "No space left on device; make room" in error
    assert not [path for path in (folder / "kept" / "parts").iterdir() if path.name.startswith(".")]
    assert not (folder / "kept" / "_SUCCESS").exists() and (folder / "kept" / "manifest.json").exists()
