"""Ends a command with its results, or with one sentence and an exit code."""

import contextlib
import functools
import io
import sys
from collections.abc import Callable

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.signals import Interrupted, interruptible, rank


def guarded(command: Callable[[], None]) -> None:
    """Runs a command; bad input gives one sentence on standard error and exit code 2, a signal 128 plus its number.

    Of several processes of torchrun, only the first prints results.
    """
    try:
        with interruptible(), contextlib.redirect_stdout(sys.stdout if rank() == 0 else io.StringIO()):
            command()
    except Interrupted as interruption:
        print("; ".join(filter(None, (str(interruption), interruption.advice))), file=sys.stderr)
        sys.exit(interruption.exit_code)
    except (ValueError, RuntimeError) as error:
        where = f" in process {rank()}" if rank() else ""
        print(f"error{where}: {sentence_of(error)}", file=sys.stderr)
        sys.exit(2)


def sentence_of(error: Exception) -> str:
    """The problem that a user can solve: input, memory, or a killed process; re-raises any other error."""
    if isinstance(error, InputError):
        return error.with_options(lambda option: f"--{option.replace('_', '-')}")
    from pydantic import ValidationError  # a quick command imports neither

    from graphormer_sepnorm.config import first_problem

    if isinstance(error, ValidationError):
        return first_problem(error)
    if str(error).startswith("DataLoader worker (pid"):  # PyTorch's words, for which it has no type
        advice = "free memory and run the same command again, with --resume if it left unfinished results"
        return f"a worker process was killed, perhaps for lack of memory: {advice}"
    if type(error).__name__ != "OutOfMemoryError":  # PyTorch's, which a quick command never imports
        raise error
    advice = "leave out the largest molecules, or compute on another --device, such as cpu"
    return f"the GPU is out of memory: choose a smaller batch (--batch-size), {advice}"


def in_first_process(command: Callable[..., None]) -> Callable[..., None]:
    """A command that runs only in the first of several processes."""

    @functools.wraps(command)
    def run(**options: object) -> None:
        if rank() == 0:
            command(**options)

    return run
