"""Entry points: an interrupted command always ends with one line and the exit code of its signal."""

from graphormer_sepnorm.system.garbage import collect_less_often
from graphormer_sepnorm.system.signals import leaving_at_once


def main() -> None:
    """Runs the command named by the arguments."""
    collect_less_often()
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
