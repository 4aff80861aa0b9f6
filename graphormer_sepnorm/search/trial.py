"""One trial of a search, in a separate process, so that a crash costs the search only this trial."""

import contextlib
import multiprocessing
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import Any

import torch
from optuna import TrialPruned
from optuna.trial import Trial

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.search.study import PROBLEM, StudyFolder, storage_problems
from graphormer_sepnorm.system.device import Compute, computing
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.training.trainer import Trainer

SECONDS_TO_END = 10  # of a process that has sent its outcome
# PyTorch has no exception of its own for lack of memory on the CPU and in cuBLAS.
LACK_OF_MEMORY = ("can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


class TrialKilled(Exception):
    """The process of a trial was killed; the message names the signal."""


class TrialProcess:
    """A process that runs ``train_trial``; its ``connection`` is readable when the trial has ended."""

    def __init__(self, *arguments: object):
        context = starting()
        self.connection, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=train_apart, args=(theirs, *arguments), daemon=True)
        with sigint_blocked():
            self.process.start()
        theirs.close()

    def outcome(self) -> Exception | None:
        """None if the trial was completed, otherwise the TrialPruned, InputError or TrialKilled that ended it.

        Another exception, whose traceback the process has printed, becomes a RuntimeError.
        """
        try:
            outcome = self.connection.recv()
            self.process.join(SECONDS_TO_END)  # Python warns of the semaphores of a process that is killed
            return outcome
        except (EOFError, ConnectionResetError):
            self.process.join()
        code = self.process.exitcode or 0
        if code >= 0:
            raise RuntimeError(f"a trial ended with exit code {code}")
        return TrialKilled(f"killed by {signal.Signals(-code).name}")

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def train_apart(connection: Connection, *arguments: Any) -> None:
    """Runs ``train_trial`` in a process that ignores Ctrl-C, which a terminal sends to all; the parent handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    outcome: Exception | None = None
    try:
        train_trial(*arguments)
    except (TrialPruned, InputError) as error:
        outcome = error
    if not is_orphan():
        connection.send(outcome)


def train_trial(trial: Trial, folder: StudyFolder, config: Config, compute: Compute, threads: int) -> None:
    """Trains one config and reports the validation metric of every epoch to the study.

    Raises TrialPruned if the trial is worse than earlier ones; or if it diverges or lacks memory, so that later trials
    avoid its values. Then its attribute ``PROBLEM`` names the cause.
    """
    torch.set_num_threads(threads)
    with computing(compute), storage_problems(folder.study):
        train, val = (load_split(str(folder.path / TABLE), split, config.model.encodings) for split in ("train", "val"))
        trainer = None
        try:
            trainer = Trainer(config, train, val)
            for epoch in trainer.epochs():
                if is_orphan():
                    return
                trial.report(epoch.val_metric, epoch.epoch)
                if epoch.epoch < trainer.config.train.epochs and trial.should_prune():
                    raise TrialPruned
        except (InputError, MemoryError, RuntimeError) as error:
            diverges = isinstance(error, InputError) and trainer is not None
            if not diverges and not is_lack_of_memory(error):
                raise
            trial.set_user_attr(PROBLEM, str(error) if diverges else "out of memory")
            raise TrialPruned from None


def is_orphan() -> bool:
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


def is_lack_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(map(str(error).__contains__, LACK_OF_MEMORY))


def starting() -> SpawnContext | ForkServerContext:
    """How to start processes: forked from a server that has imported PyTorch once, if supported."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


@contextlib.contextmanager
def sigint_blocked() -> Iterator[None]:
    """A process server that is started within it never receives SIGINT, not even while it imports."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # unblocks SIGINT when it starts, otherwise with the first process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
