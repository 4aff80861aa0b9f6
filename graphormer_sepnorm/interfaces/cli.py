"""Entry points: from its first moment on, an interrupted command ends with a line and the exit code of its signal."""

from graphormer_sepnorm.system.signals import leaving_at_once


def main() -> None:
    """Runs the command that the arguments name."""
    with leaving_at_once():
        from graphormer_sepnorm.interfaces.commands import app
        from graphormer_sepnorm.interfaces.guard import guarded
    guarded(app)


def run_alone(name: str) -> None:
    """Runs the command of that name as a script of its own."""
    with leaving_at_once():
        from graphormer_sepnorm.interfaces.commands import alone
        from graphormer_sepnorm.interfaces.guard import guarded
    guarded(lambda: alone(name)())
