"""Entry points: an interrupted command always ends with one line and the exit code of its signal."""

import atexit
import gc

from graphormer_sepnorm.system.signals import end_with_input, leaving_at_once

NEW_OBJECTS = 100_000  # the collector of cyclic garbage runs when so many are new


def main(name: str | None = None) -> None:
    """Runs the command named by the first argument, or the named one as a separate script."""
    gc.set_threshold(NEW_OBJECTS)
    atexit.register(gc.freeze)  # saves a third of the time of a short command, whose million objects all stay
    end_with_input()
    with leaving_at_once():
        from graphormer_sepnorm.interfaces.commands import alone, app
        from graphormer_sepnorm.interfaces.guard import guarded
    guarded(lambda: (alone(name) if name else app)())
