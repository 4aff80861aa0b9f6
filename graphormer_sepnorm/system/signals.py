"""SIGINT and SIGTERM as an exception, so that every ``with`` and ``finally`` on the way out is kept."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn


class Interrupted(BaseException):
    """The process was asked to end.

    Attributes:
        exit_code: 128 plus the number of the signal, as shells have it.
        advice: how to go on, "" if nothing is known.
    """

    def __init__(self, number: int):
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = 128 + number
        self.advice = ""


def interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted(number)


def leave(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, f"{Interrupted(number)}\n".encode())
    os._exit(128 + number)


def interruptible() -> contextlib.AbstractContextManager[None]:
    """Within it, SIGINT and SIGTERM raise ``Interrupted`` in the main thread, which this must be."""
    return handling(interrupt)


def leaving_at_once() -> contextlib.AbstractContextManager[None]:
    """Within it, SIGINT and SIGTERM end the process with a line.

    For imports: they leave nothing behind that would have to be tidied up, and an exception in the middle of another
    package's initialisation may come out as anything.
    """
    return handling(leave)


@contextlib.contextmanager
def handling(handler: Callable[[int, FrameType | None], NoReturn]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextlib.contextmanager
def advising(advice: str) -> Iterator[None]:
    """Gives an interruption within it the advice on how to go on."""
    try:
        yield
    except Interrupted as interruption:
        interruption.advice = advice
        raise
