"""Real processes to kill: forked from a server that has imported everything, so that each starts at once."""

import multiprocessing
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SERVER = multiprocessing.get_context("forkserver")
TARGETS = ["tiny_run", "tiny_table", "test_caches", "test_distributed", "test_locked_outputs"]
# What a run imports when it first needs it, which is three quarters of its seconds.
LATE = ["graphormer_sepnorm.kernels.cpu", "matplotlib.backends.backend_agg", "ogb.lsc"]
LATE += ["pyarrow.parquet", "sklearn.metrics"]
SERVER.set_forkserver_preload([f"tests.robustness.{name}" for name in TARGETS] + LATE)


def start(function: Callable, *arguments, **options) -> multiprocessing.Process:
    process = SERVER.Process(target=function, args=arguments, kwargs=options)
    process.start()
    return process


def finish(function: Callable, *arguments, **options) -> int:
    process = start(function, *arguments, **options)
    process.join(300)
    return process.exitcode


def all_succeed(started: list[multiprocessing.Process]) -> None:
    for process in started:
        process.join(120)
    assert [process.exitcode for process in started] == [0] * len(started)


def mounted(mount: str, command: list[str], then: str = "true", **options) -> subprocess.CompletedProcess:
    """Runs a command under a mount that nothing else sees, and then a line of the shell that sees it, too."""
    alone = ["unshare", "-m", "sh", "-c"]
    if os.geteuid() != 0 or subprocess.run([*alone, mount]).returncode:
        pytest.skip("mounting is not permitted")
    script = f"{mount} && {{ {shlex.join(command)}; code=$?; {then}; exit $code; }}"
    return subprocess.run([*alone, script], **options, capture_output=True, text=True)


def command(*arguments, processes: int = 0, timeout: int = 300) -> subprocess.CompletedProcess:
    """Runs a script of this repository, under torchrun where ``processes`` are given."""
    return subprocess.run(
        command_line(*arguments, processes=processes), **surroundings(), capture_output=True, text=True, timeout=timeout
    )


def command_line(*arguments, processes: int = 0) -> list[str]:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", processes] if processes else []
    return [sys.executable, *map(str, [*torchrun, *arguments])]


def surroundings() -> dict:
    return {"cwd": REPOSITORY, "env": {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}}
