"""A process that computes, of pebble's: it is ended when a question takes too long, and then started again."""

import multiprocessing
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from graphormer_sepnorm.errors import InputError

SECONDS_TO_START = 600
IS_MADE = ""  # the first question, which no method answers


class NoAnswer(Exception):
    """A question has no answer; the message says why."""


class Worker:
    """Asks the object that ``make(*arguments)`` gives in another process, which is started again if it has ended.

    One thread asks; another one may ``interrupt``. If the object has an ``identity``, one with another identity answers
    nothing after a new start. Raises InputError as ``make``, or if the process crashed.
    """

    def __init__(self, make: Callable[..., object], *arguments: object):
        self.recipe = make, arguments
        self.pool = self.new_pool()
        self.asked: ProcessFuture | None = None
        self.is_open = True
        self.scheduling = threading.Lock()
        self.identity = ""
        try:
            self.identity = str(self.ask(SECONDS_TO_START, IS_MADE))
        except (InputError, NoAnswer) as error:
            self.end()
            raise error if isinstance(error, InputError) else InputError(f"the page cannot compute: {error}") from None

    def new_pool(self) -> ProcessPool:
        context = multiprocessing.get_context("spawn")
        return ProcessPool(1, initializer=make_object, initargs=self.recipe, context=context)

    def ask(self, seconds: float, question: str, *arguments: object) -> object:
        """The result of a method of the object; the process is ended after so many seconds.

        Raises InputError as the method, and NoAnswer if it took too long or failed, or the process crashed.
        """
        try:
            with self.scheduling:
                if self.is_open and not self.pool.active:
                    self.pool = self.new_pool()
                self.asked = self.pool.schedule(answer, [question, arguments, self.identity], timeout=seconds)
            return self.asked.result(seconds + SECONDS_TO_START)
        except TimeoutError:
            raise NoAnswer(f"it took more than {seconds:g} seconds") from None
        except (ProcessExpired, BrokenProcessPool):
            raise NoAnswer("the computing process crashed") from None
        except (CancelledError, RuntimeError):  # pebble's of a pool that is not active
            raise NoAnswer("the computing process has ended") from None

    def interrupt(self) -> None:
        """Lets the question that is being answered have no answer, and no other be asked; for another thread."""
        with self.scheduling:
            self.is_open = False
            self.pool.stop()
        if self.asked is not None:
            self.asked.cancel()

    def end(self) -> None:
        self.interrupt()
        self.pool.join()


made: object = None  # in the other process: the object, or the InputError instead of it


def make_object(make: Callable[..., object], arguments: tuple) -> None:
    global made
    try:
        made = make(*arguments)
    except InputError as error:
        made = error


def answer(question: str, arguments: tuple, expected: str) -> object:
    """The result of a method of the object in the other process; raises InputError or NoAnswer."""
    if isinstance(made, InputError):
        raise made
    identity = getattr(made, "identity", "")
    if question == IS_MADE:
        return identity
    if identity != expected:
        raise InputError("the model has changed since the page was started: start the page again")
    try:
        return getattr(made, question)(*arguments)
    except InputError as error:
        raise InputError(error.sentence) from None
    except Exception as error:
        traceback.print_exc()
        raise NoAnswer(f"the computation failed: {type(error).__name__}") from None
