"""One trial of a search in a process of its own: what it takes down with it is itself alone."""

import contextlib
import multiprocessing
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext

import torch

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.load import load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.device import Compute, computing
from graphormer_sepnorm.training.trainer import Trainer


@dataclass(frozen=True)
class Reached:
    """A completed epoch; the process waits for an answer, whether to go on."""

    epoch: int
    val_metric: float


@dataclass(frozen=True)
class Ended:
    """The trial is over.

    Attributes:
        problem: why it went no further; "" if it was trained to the end or told to stop.
        by_signal: whether its process was killed.
    """

    problem: str = ""
    by_signal: bool = False


@dataclass(frozen=True)
class Refused:
    """The trial could not begin, and no other could: bad input."""

    problem: str


class TrialProcess:
    """A process that trains one config and tells of its epochs.

    Args:
        table: path of a prepared table.
        config: what to train.
        compute: where.
        threads: of the process.

    Attributes:
        connection: readable when ``receive`` has something.
    """

    def __init__(self, table: str, config: Config, compute: Compute, threads: int):
        context = starting()
        self.connection, theirs = context.Pipe()
        arguments = (theirs, table, config, compute, threads)
        self.process = context.Process(target=run_apart, args=arguments, daemon=True)
        with sigint_blocked():
            self.process.start()
        theirs.close()

    def receive(self) -> Reached | Ended | Refused:
        """The next message of the process, or how it ended without one.

        Raises:
            RuntimeError: an exception ended it, whose traceback it has printed.
        """
        try:
            return self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode or 0
            if code >= 0:
                raise RuntimeError(f"a trial ended with exit code {code}") from None
            return Ended(f"killed by {signal.Signals(-code).name}", by_signal=True)

    def answer(self, go_on: bool) -> None:
        """Lets a process that has ``Reached`` an epoch go on, or end."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(go_on)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def starting() -> SpawnContext | ForkServerContext:
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


def run_apart(connection: Connection, table: str, config: Config, compute: Compute, threads: int) -> None:
    """``run_trial`` in a process that Ctrl-C leaves alone: from a terminal it goes to all, and one answers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run_trial(connection, table, config, compute, threads)


def run_trial(connection: Connection, table: str, config: Config, compute: Compute, threads: int) -> None:
    """What the process does; it ends quietly when nobody listens any more."""
    torch.set_num_threads(threads)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError), computing(compute):
        try:
            train, val = (load_split(table, split, config.model.encodings) for split in ("train", "val"))
            trainer = Trainer(config, train, val)
        except InputError as error:
            connection.send(Refused(str(error)))
            return
        try:
            for epoch in trainer.epochs():
                connection.send(Reached(epoch.epoch, epoch.val_metric))
                if not connection.recv():
                    break
            connection.send(Ended())
        except InputError as error:
            connection.send(Ended(str(error)))
        except (MemoryError, RuntimeError) as error:
            if not is_lack_of_memory(error):
                raise
            connection.send(Ended("out of memory"))


def is_lack_of_memory(error: Exception) -> bool:
    """Also of the CPU, for which PyTorch has no exception of its own."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)
