"""Entry points: an interrupted command always ends with one line and the exit code of its signal."""

import atexit
import gc

from graphormer_sepnorm.system.signals import end_with_input, leaving_at_once

NEW_OBJECTS = 10_000  # the collector of cyclic garbage runs when so many are new; Python's default is 700


def collect_less_often() -> None:
    """Makes the collector of cyclic garbage run less often, and not at all when the process ends.

    The imports of a command create about a million objects, which the collector would search many times, and three
    times more at the end: together a third of the time of a short command.
    """
    gc.set_threshold(NEW_OBJECTS)
    atexit.register(gc.freeze)


def main() -> None:
    """Runs the command named by the arguments."""
    collect_less_often()
    end_with_input()
    with leaving_at_once():
        from graphormer_sepnorm.interfaces.commands import app
        from graphormer_sepnorm.interfaces.guard import guarded
    guarded(app)


def run_alone(name: str) -> None:
    """Runs the named command as a separate script."""
    collect_less_often()
    with leaving_at_once():
        from graphormer_sepnorm.interfaces.commands import alone
        from graphormer_sepnorm.interfaces.guard import guarded
    guarded(lambda: alone(name)())
