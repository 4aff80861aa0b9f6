"""This process: its rank among those of torchrun, 0 of 1 for a single one; SIGINT and SIGTERM become an exception."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import NoReturn

END_WITH_INPUT = "GRAPHORMER_SEPNORM_END_WITH_INPUT"  # environment variable of a command that ends with its parent


class Interrupted(BaseException):
    def __init__(self, number: int):
        super().__init__("interrupted" if number == signal.SIGINT else "terminated")
        self.exit_code = 128 + number
        self.advice = ""


@contextlib.contextmanager
def interruptible(at_once: bool = False) -> Iterator[None]:
    """Context manager for the main thread: SIGINT and SIGTERM raise ``Interrupted``, or end the process ``at_once``.

    If a library makes another exception of ``Interrupted``, it is raised in place of that one.
    """
    came: list[Interrupted] = []

    def handle(number: int, frame: FrameType | None) -> NoReturn:
        if at_once:
            os.write(2, f"{Interrupted(number)}\n".encode())
            os._exit(128 + number)
        came.append(Interrupted(number))
        raise came[-1]

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except Exception:
        if came:
            raise came[-1] from None
        raise
    finally:
        for number, former in before.items():
            signal.signal(number, former)


leaving_at_once = partial(interruptible, at_once=True)  # for imports, which might swallow an exception


def end_with_input() -> None:
    """Sends SIGTERM to this process once its standard input, a pipe of its parent, is closed."""

    def wait() -> None:
        os.read(0, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    if os.environ.pop(END_WITH_INPUT, ""):
        threading.Thread(target=wait, daemon=True).start()


@contextlib.contextmanager
def advising(advice: str | Callable[[], str]) -> Iterator[None]:
    """Context manager: adds advice on how to continue, or what a function then says, to an interruption."""
    try:
        yield
    except Interrupted as interruption:
        interruption.advice = advice if isinstance(advice, str) else advice()
        raise


def from_torchrun(variable: str, default: int) -> int:
    return int(os.environ[variable]) if "TORCHELASTIC_RUN_ID" in os.environ else default


rank, local_rank = partial(from_torchrun, "RANK", 0), partial(from_torchrun, "LOCAL_RANK", 0)
num_processes = partial(from_torchrun, "WORLD_SIZE", 1)
