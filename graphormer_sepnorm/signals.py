"""SIGINT and SIGTERM as an exception, so that every ``with`` and ``finally`` on the way out is kept."""

import contextlib
import signal
from collections.abc import Iterator
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


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within it, SIGINT and SIGTERM raise ``Interrupted`` in the main thread, which this must be."""
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def advising(advice: str) -> Iterator[None]:
    """Gives an interruption within it the advice on how to go on."""
    try:
        yield
    except Interrupted as interruption:
        interruption.advice = advice
        raise
