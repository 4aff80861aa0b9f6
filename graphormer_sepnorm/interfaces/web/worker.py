"""A process that computes and that can be ended in the middle of it, when a question takes too long."""

import multiprocessing
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from graphormer_sepnorm.errors import InputError

SPAWN = multiprocessing.get_context("spawn")
SECONDS_TO_START = 600


class Lost(Exception):
    """A question has no answer; the message says why."""


class Worker:
    """Asks an object in another process, which is started anew when it was ended or has crashed.

    For one thread at a time.

    Args:
        make: gives the object; runs in the other process.
        arguments: of ``make``.

    Raises:
        InputError: that of ``make``.
    """

    def __init__(self, make: Callable[..., object], *arguments: object):
        self.recipe = make, arguments
        self.process: BaseProcess | None = None
        self.start()

    def start(self) -> None:
        self.connection, other = SPAWN.Pipe()
        self.process = SPAWN.Process(target=answer_questions, args=(other, *self.recipe), daemon=True)
        self.process.start()
        other.close()
        self.receive(SECONDS_TO_START)

    def ask(self, seconds: float, question: str, *arguments: object) -> object:
        """What a method of the object returns.

        Args:
            seconds: that the answer may take; the process is ended then.
            question: name of the method.

        Raises:
            InputError: that of the method.
            Lost: it took too long, it failed, or the process crashed.
        """
        if self.process is None:
            self.start()
        try:
            self.connection.send((question, arguments))
        except OSError:
            self.end()
            raise Lost("the computing process has ended") from None
        return self.receive(seconds)

    def receive(self, seconds: float) -> object:
        try:
            if not self.connection.poll(seconds):
                self.end()
                raise Lost(f"it took more than {seconds:g} seconds")
            answer = self.connection.recv()
        except (EOFError, OSError):
            self.end()
            raise Lost("the computing process crashed") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def interrupt(self) -> None:
        """Ends the process, whatever it is doing, for another thread: the one that asks loses its question."""
        process = self.process
        if process is not None:
            process.kill()

    def end(self) -> None:
        """Ends the process and tidies up."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
            self.process = None


def answer_questions(connection: Connection, make: Callable[..., object], arguments: tuple) -> None:
    """What the other process does, until nobody can ask any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        asked = make(*arguments)
    except InputError as error:
        connection.send(error)
        return
    connection.send(None)
    while True:
        try:
            question, details = connection.recv()
        except EOFError:
            return
        connection.send(answer(asked, question, details))


def answer(asked: object, question: str, details: tuple) -> object:
    try:
        return getattr(asked, question)(*details)
    except InputError as error:
        return InputError(str(error))
    except Exception as error:
        traceback.print_exc()
        return Lost(f"the computation failed: {type(error).__name__}")
