"""Copies of this process, one per core, that do one piece of work together and add tensors up in memory they share.

For processors: several times as fast as messages between processes, which go through sockets. Only where a process can
be copied as it is, with all that it has read and imported: on Linux.
"""

import contextlib
import io
import mmap
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from multiprocessing.process import BaseProcess
from typing import TypeVar

import torch
from torch import Tensor

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.workers import one_thread

Result = TypeVar("Result")
PART_BYTES = 1 << 20
PATIENCE_TO_LOOK, PATIENCE_TO_TELL = 2000, 5
FAILED = 2


class Lost(Exception):
    """Another process of the group has ended too early."""


class Replica:
    """This process among its copies.

    A line carries a byte for each meeting, and tells of the end of the process at its other end; sums travel through
    the memory.

    Args:
        rank: its number among them.
        memory: uint8 [2, size, PART_BYTES] that all of them see.
        lines: to each of the others.

    Attributes:
        size: number of processes.
    """

    def __init__(self, rank: int, memory: Tensor, lines: list[socket.socket]):
        self.rank, self.memory, self.lines = rank, memory, lines
        self.size = memory.shape[1]
        self.turn = 0

    def add_up(self, x: Tensor) -> None:
        """Replaces a contiguous tensor by its sum over all processes, of the same bits in each; raises Lost."""
        for part in x.view(-1).split(PART_BYTES // x.element_size()):
            places = self.memory[self.turn].view(x.dtype)[:, : len(part)]  # [size, numbers]
            places[self.rank] = part
            self.meet()
            torch.sum(places, dim=0, out=part)
            self.turn = 1 - self.turn  # who writes there again has met all others since, so they have read

    def meet(self) -> None:
        """Returns when all processes have come here; what they wrote before is seen then."""
        try:
            for line in self.lines:
                line.send(b".")
            for line in self.lines:
                if not receive(line):
                    raise Lost
        except ConnectionError:
            raise Lost from None


def receive(line: socket.socket) -> bytes:
    """The next byte, none from a process that has ended; looks for a while before it sleeps, as waking takes long."""
    for _ in range(PATIENCE_TO_LOOK):
        try:
            return line.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            os.sched_yield()
    return line.recv(1)


_CURRENT: ContextVar[Replica | None] = ContextVar("replica", default=None)


def current() -> Replica | None:
    """This process among its copies; None outside ``run_together``."""
    return _CURRENT.get()


def run_together(size: int, work: Callable[[], Result]) -> Result:
    """What ``work`` returns in this process, number 0 of ``size`` that do it; in each, ``current`` says which it is.

    Each computes on one thread. The others end with this process however it ends, print nothing, leave signals to
    it, and are gone when this returns or raises.

    Raises:
        InputError: one of the others was lost.
    """
    if size == 1:
        return work()
    memory = torch.frombuffer(mmap.mmap(-1, 2 * size * PART_BYTES), dtype=torch.uint8).view(2, size, PART_BYTES)
    ends = connect(size)
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=assist, args=(rank, memory, ends, work), daemon=True) for rank in range(1, size)]
    try:
        with signals_kept_waiting():
            for process in others:
                process.start()
        lines = own_lines(ends, 0)
        with one_thread(), being(Replica(0, memory, lines)):
            return work()
    except Lost:
        raise InputError(
            f"{what_happened(others)}: --resume goes on from the last completed epoch, "
            "and --processes 1 needs the least memory"
        ) from None
    finally:
        for process in others:
            if process.pid is not None:
                process.kill()
                process.join()
        for line in (line for row in ends for line in row.values()):
            line.close()


def assist(rank: int, memory: Tensor, ends: list[dict[int, socket.socket]], work: Callable[[], object]) -> None:
    """The life of a copy; its exceptions are its own unless the first process meets them too."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    torch.set_num_threads(1)
    try:
        with being(Replica(rank, memory, own_lines(ends, rank))), contextlib.redirect_stdout(io.StringIO()):
            work()
    except (InputError, Lost):
        sys.exit(FAILED)


def connect(size: int) -> list[dict[int, socket.socket]]:
    """A line between any two processes: ``ends[a][b]`` is what a holds of the line to b."""
    ends: list[dict[int, socket.socket]] = [{} for _ in range(size)]
    for a in range(size):
        for b in range(a):
            ends[a][b], ends[b][a] = socket.socketpair()
    return ends


def own_lines(ends: list[dict[int, socket.socket]], rank: int) -> list[socket.socket]:
    """This process's ends; it closes those of the others, so that a line ends with the process at its other end."""
    for owner, lines in enumerate(ends):
        if owner != rank:
            for line in lines.values():
                line.close()
    return list(ends[rank].values())


@contextlib.contextmanager
def being(replica: Replica) -> Iterator[None]:
    """Within it, ``current`` is ``replica``."""
    token = _CURRENT.set(replica)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextlib.contextmanager
def signals_kept_waiting() -> Iterator[None]:
    """Within it, SIGINT and SIGTERM wait; so they do in processes that start in it, until these say otherwise."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def what_happened(others: Sequence[BaseProcess]) -> str:
    """How the process that was lost first ended: the others that are gone ended because of it."""
    for process in others:
        process.join(PATIENCE_TO_TELL / len(others))
    for rank, process in enumerate(others, 1):
        if process.exitcode not in (None, FAILED):
            code = process.exitcode
            end = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            return f"process {rank} of {len(others) + 1} {end}"
    return f"one of {len(others) + 1} processes was lost"
