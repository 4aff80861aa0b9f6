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
from graphormer_sepnorm.datasets.load import load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.search.study import PROBLEM, StudyFolder, storage_problems
from graphormer_sepnorm.system.device import Compute, computing
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.training.trainer import Trainer

SECONDS_TO_END = 10  # of a process that has sent its outcome


class TrialKilled(Exception):
    """The process of a trial was killed; the message names the signal."""


class TrialProcess:
    """A process that trains one config.

    Args:
        arguments: arguments of ``train_trial``.

    Attributes:
        connection: readable when the trial has ended.
    """

    def __init__(self, *arguments: object):
        context = starting()
        self.connection, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=train_apart, args=(theirs, *arguments), daemon=True)
        with sigint_blocked():
            self.process.start()
        theirs.close()

    def outcome(self) -> Exception | None:
        """Outcome of the trial: None if it was completed, otherwise TrialPruned, InputError or TrialKilled.

        Raises:
            RuntimeError: another exception ended it, whose traceback it has printed.
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

    Raises TrialPruned if the trial is worse than earlier ones, diverged or ran out of memory; the attribute ``PROBLEM``
    of the trial names the cause in the last two cases.
    """
    torch.set_num_threads(threads)
    with computing(compute), storage_problems(folder.study):
        train, val = (load_split(str(folder.path / TABLE), split, config.model.encodings) for split in ("train", "val"))
        with lost_by_lack_of_memory(trial):
            trainer = Trainer(config, train, val)
        try:
            with lost_by_lack_of_memory(trial):
                for epoch in trainer.epochs():
                    if is_orphan():
                        return
                    trial.report(epoch.val_metric, epoch.epoch)
                    if epoch.epoch < trainer.config.train.epochs and trial.should_prune():
                        raise TrialPruned
        except InputError as error:  # it diverges: later trials avoid its values
            trial.set_user_attr(PROBLEM, str(error))
            raise TrialPruned from None


def is_orphan() -> bool:
    """Whether the search that started this process has ended."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


@contextlib.contextmanager
def lost_by_lack_of_memory(trial: Trial) -> Iterator[None]:
    """Context manager: prunes a trial that runs out of memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_lack_of_memory(error):
            raise
        trial.set_user_attr(PROBLEM, "out of memory")
        raise TrialPruned from None


def is_lack_of_memory(error: Exception) -> bool:
    """Whether an error means out of memory; PyTorch has no exception of its own for the CPU and for cuBLAS."""
    words = ("can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(text in str(error) for text in words)


def starting() -> SpawnContext | ForkServerContext:
    """How to start processes: forked from a server that has imported PyTorch once, if supported."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


@contextlib.contextmanager
def sigint_blocked() -> Iterator[None]:
    """Context manager: a process server started within it never receives SIGINT, not even while it imports."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # unblocks SIGINT when it starts, otherwise with the first process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
