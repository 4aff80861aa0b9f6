"""Tries mutations in a copy of the project, each in a process of its own.

Importing PyTorch and the like takes most of the time of a small test, so this process imports them once, and each
mutation runs in a fork of it, which imports the mutated package and its tests alone.
"""

import contextlib
import importlib
import itertools
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

import numba
import pytest

from tests.mutations.mutation import Mutation

REPOSITORY = Path(__file__).parents[2]
PACKAGE = "graphormer_sepnorm"
COPIED = (PACKAGE, "tests", "data", "docs", "examples", "train.py", "evaluate.py", "setup.cfg", "pyproject.toml")
OURS = (PACKAGE, "tests")
OTHERS = (
    "captum.attr",
    "hypothesis",
    "lightning_fabric",
    "matplotlib.pyplot",
    "ogb.graphproppred",
    "ogb.lsc",
    "ogb.utils.features",
    "pandas",
    "pydantic",
    "rdkit.Chem.Descriptors",
    "rdkit.Contrib.SA_Score.sascorer",
    "safetensors.torch",
    "scipy.sparse.csgraph",
    "scipy.special",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.metrics",
    "sklearn.model_selection",
    "torch.optim.swa_utils",
    "torch_geometric.data",
    "torch_geometric.loader",
    "torch_geometric.transforms",
    "torch_geometric.utils",
    "typer.testing",
)
# Numba knows by a function's own file whether the compiled one is of today: what is compiled into others has no cache.
COMPILED_INTO_OTHERS = ("encodings/base.py", "kernels/", "system/compiling.py")
TRIALS = itertools.count(1)


class End(StrEnum):
    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    NOT_APPLIED = "did not apply"
    NOT_TRIED = "its tests fail without it"


@dataclass(frozen=True)
class Outcome:
    """How a mutation ended.

    Attributes:
        mutation, end: which, and how.
        seen_by: the first test that failed, or why it was not tried.
    """

    mutation: Mutation
    end: End
    seen_by: str = ""


@dataclass(frozen=True)
class Workshop:
    """A folder in which mutations are tried, one at a time.

    Attributes:
        folder: with the copy of the project, compiled code of the copy without mutations, and what a trial leaves.
        limit: seconds of a processor's time that a trial may take; ten times as many on the clock.
    """

    folder: Path
    limit: int

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def compiled(self) -> Path:
        return self.folder / "compiled"

    def prepare(self) -> None:
        """Copies the project."""
        self.project.mkdir()
        leave_out = shutil.ignore_patterns("__pycache__", ".*")
        for name in COPIED:
            if (REPOSITORY / name).is_dir():
                shutil.copytree(REPOSITORY / name, self.project / name, ignore=leave_out)
            else:
                shutil.copy2(REPOSITORY / name, self.project / name)
        self.compiled.mkdir()

    def attempt(self, mutation: Mutation) -> Outcome:
        """How a mutation ends."""
        path = self.project / PACKAGE / mutation.file
        try:
            text = mutation.applied(path.read_text())
        except ValueError as error:
            return Outcome(mutation, End.NOT_APPLIED, str(error))
        if not self.passes(mutation.tests):
            return Outcome(mutation, End.NOT_TRIED, self.first_failure())
        compiled = self.folder / "compiled-with-it"
        shutil.rmtree(compiled, ignore_errors=True)
        if mutation.file.startswith(COMPILED_INTO_OTHERS):
            compiled.mkdir()
        else:
            shutil.copytree(self.compiled, compiled)
        with replaced(path, text):
            code = self.run(mutation.tests, compiled)
        if code in (None, -signal.SIGXCPU):
            return Outcome(mutation, End.TIMED_OUT)
        return Outcome(mutation, End.KILLED, self.first_failure()) if code else Outcome(mutation, End.SURVIVED)

    @cache  # noqa: B019  # one workshop per process
    def passes(self, tests: tuple[str, ...]) -> bool:
        """Whether tests pass without a mutation."""
        return self.run(tests, self.compiled) == 0

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def run(self, tests: tuple[str, ...], compiled: Path) -> int | None:
        """Runs tests on the copy in a fork of this process; returns the exit code, None if it hangs."""
        child = os.fork()
        if child == 0:
            code = 70
            try:
                code = self.test(tests, compiled)
            finally:
                os._exit(code)
        deadline = time.monotonic() + 10 * self.limit
        while not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        in_time = time.monotonic() <= deadline
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # with whatever the tests have left running
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) if in_time else None

    def test(self, tests: tuple[str, ...], compiled: Path) -> int:
        """Runs tests on the copy in this process, which is of no other use afterwards."""
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (self.limit, self.limit + 1))
        for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
            del sys.modules[name]
        sys.path = [str(self.project), *(path for path in sys.path if Path(path or ".").resolve() != REPOSITORY)]
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ |= {"PYTHONPATH": str(self.project), "NUMBA_CACHE_DIR": str(compiled)}
        numba.config.CACHE_DIR = str(compiled)
        os.chdir(self.project)
        with open(self.log, "wb") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        options = ["-m", "", "-x", "-q", "-p", "no:cacheprovider", "--rootdir=.", f"--basetemp={self.folder / 'tests'}"]
        code = pytest.main([*options, *(f"tests/{name}" for name in tests)])
        assert str(self.project) in sys.modules[PACKAGE].__file__, "another copy of the package was imported"
        return int(code)

    def first_failure(self) -> str:
        """What pytest said of the first test that failed."""
        lines = self.log.read_text(errors="replace").splitlines()
        found = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
        return found[0].split(" - ")[0].partition(" ")[2] if found else (lines or [""])[-1][:100]


@contextlib.contextmanager
def replaced(path: Path, text: str) -> Iterator[None]:
    """Within it a file has another text and a time that it never had; afterwards it is as it was.

    By the time Python and Numba tell whether what they compiled is of today.
    """
    before, times = path.read_bytes(), path.stat()
    path.write_text(text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + next(TRIALS) * 10**9))
    try:
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def open_workshop(parent: Path, limit: int) -> None:
    """Makes this process one that tries mutations, in a folder of its own."""
    global workshop
    workshop = Workshop(Path(tempfile.mkdtemp(dir=parent)), limit)
    workshop.prepare()


def attempt(mutation: Mutation) -> Outcome:
    return workshop.attempt(mutation)


def run(mutations: Sequence[Mutation], jobs: int = 1, limit: int = 120) -> Iterator[Outcome]:
    """Tries mutations, ``jobs`` at a time; gives the outcomes in order.

    Args:
        mutations: to be tried.
        jobs: number of processes that try them.
        limit: seconds of a processor's time that a trial may take; ten times as many on the clock.
    """
    for name in OTHERS:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        fork = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(jobs, fork, open_workshop, (Path(folder), limit)) as pool:
            yield from pool.map(attempt, mutations)
