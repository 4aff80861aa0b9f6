"""One trial of a search in a process of its own, of pebble's: what it takes down with it is only itself."""

import contextlib
import multiprocessing
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from multiprocessing import resource_tracker
from multiprocessing.context import BaseContext
from pathlib import Path

import torch
from optuna.trial import Trial
from pebble import ProcessExpired, ProcessFuture, ProcessPool

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.load import load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.search.study import open_study
from graphormer_sepnorm.system.device import Compute, computing
from graphormer_sepnorm.training.trainer import Trainer


class TrialLost(Exception):
    """A trial went no further; the message says why."""


class TrialKilled(TrialLost):
    """The process of a trial was killed."""


class SearchOver(Exception):
    """A trial was given up, because time is over or the search is interrupted."""


class TrialProcesses:
    """The processes that train trials, a new one for each.

    Args:
        table: path of a prepared table.
        storage: path of the study, to which a process reports its epochs.
        compute: where to train.
        processes: trials at the same time.
        threads: of a process.
    """

    def __init__(self, table: Path, storage: Path, compute: Compute, processes: int, threads: int):
        self.settings = table, storage, compute, threads
        self.pool = ProcessPool(processes, max_tasks=1, context=starting())
        self.running: set[ProcessFuture] = set()
        self.is_open = True
        self.changing = threading.Lock()
        with sigint_blocked():
            self.pool.active  # noqa: B018  # which starts the processes

    def train(self, trial: Trial, config: Config, seconds: float | None) -> None:
        """Trains a config, whose epochs become those of the trial, until it is pruned.

        Args:
            seconds: after which it is given up; None: never.

        Raises:
            TrialLost: the training failed, or its process was killed.
            InputError: it could not begin, and no other could.
            SearchOver: it was given up.
            RuntimeError: an exception ended it, whose traceback is printed.
        """
        future = self.schedule(trial._trial_id, config, seconds)
        try:
            future.result()
        except (TimeoutError, CancelledError):
            raise SearchOver from None
        except ProcessExpired as end:
            if end.exitcode >= 0:
                raise RuntimeError(f"a trial ended with exit code {end.exitcode}") from None
            raise TrialKilled(f"killed by {signal.Signals(-end.exitcode).name}") from None
        finally:
            self.running.discard(future)

    def schedule(self, trial_id: int, config: Config, seconds: float | None) -> ProcessFuture:
        with self.changing:
            if not self.is_open:
                raise SearchOver
            future = self.pool.schedule(train_trial, [*self.settings, config, trial_id], timeout=seconds)
            self.running.add(future)
        return future

    def give_up(self) -> None:
        """Ends all trials, in the middle of it."""
        with self.changing:
            self.is_open = False
        for future in list(self.running):
            future.cancel()
        self.pool.stop()
        self.pool.join()


def starting() -> BaseContext:
    """How processes are started: forked from a server that has imported PyTorch once, where there is such a thing."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


@contextlib.contextmanager
def sigint_blocked() -> Iterator[None]:
    """A server of processes that is started within it never sees SIGINT, also while it imports."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it unblocks SIGINT where it starts, as it would with the first process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def train_trial(table: Path, storage: Path, compute: Compute, threads: int, config: Config, trial_id: int) -> None:
    """What the process does: each epoch is reported to the study, which says when it is enough.

    It ends when the process of the search is no more.

    Raises:
        TrialLost: the training failed, or there was too little memory for it.
        InputError: it cannot begin.
    """
    torch.set_num_threads(threads)
    search = multiprocessing.parent_process()
    assert search is not None
    trial = Trial(open_study(storage, config), trial_id)
    with computing(compute):
        train, val = (load_split(str(table), split, config.model.encodings) for split in ("train", "val"))
        trainer = Trainer(config, train, val)
        try:
            for epoch in trainer.epochs():
                trial.report(epoch.val_metric, epoch.epoch)
                is_last = epoch.epoch == config.train.epochs
                if not search.is_alive() or (not is_last and trial.should_prune()):
                    return
        except InputError as error:
            raise TrialLost(str(error)) from None
        except (MemoryError, RuntimeError) as error:
            if not is_lack_of_memory(error):
                raise
            raise TrialLost("out of memory") from None


def is_lack_of_memory(error: Exception) -> bool:
    """Also of the CPU, for which PyTorch has no exception of its own."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)
