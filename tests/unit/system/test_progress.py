import io
import os
import signal
import subprocess
import sys

import pytest

from graphormer_sepnorm.system import progress
from graphormer_sepnorm.system.progress import AS_LINES, CURRENT, MARK, begin, phases, say, tracked
from graphormer_sepnorm.system.signals import END_WITH_INPUT, Interrupted, interruptible


@pytest.fixture
def terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    real = progress.tqdm
    monkeypatch.setattr(progress, "tqdm", lambda **options: real(**options | {"file": screen, "mininterval": 0}))
    return screen


def test_a_bar_moves_through_phases_by_their_costs(terminal):
    places = []
    with phases({"reading": 30, "fitting": 10}):
        bar = CURRENT.get().bar
        begin("reading")
        for _ in tracked(range(4), 4, share=0.5):
            places.append(bar.n)
        assert list(tracked("abc", 3, share=0.9)) == ["a", "b", "c"] and bar.n == 30, "never beyond its end"
        begin("fitting")
        places.append(bar.n)
        begin("reading")
        assert bar.n == bar.total == 40
    assert places == [0, 3.75, 7.5, 11.25, 30]
    assert "reading" in terminal.getvalue() and "left" in terminal.getvalue()
    assert CURRENT.get() is None


def test_a_program_reads_phases_as_lines(monkeypatch, capsys):
    monkeypatch.setenv(AS_LINES, "1")
    with phases({"a|b": 1, "c": 3}):
        begin("a|b")
        say(["a sentence"])
        begin("c")
    lines = [line.strip() for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert "a sentence" in lines
    found = [line.removeprefix(MARK).rsplit("|", 2)[:2] for line in lines if line.startswith(MARK)]
    assert list(dict.fromkeys(map(tuple, found))) == [("", "0"), ("a|b", "0"), ("c", "25")]


@pytest.mark.parametrize(
    ("number", "code", "words"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_signal_is_an_exception_with_the_exit_code_of_shells(number, code, words):
    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as caught, interruptible():
        os.kill(os.getpid(), number)
        signal.pause()
    assert (caught.value.exit_code, str(caught.value)) == (code, words)
    assert caught.value.advice == ""
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("name", "code", "words"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_leaving_at_once_says_so_in_a_line_and_runs_nothing_more(name, code, words):
    program = (
        "import os, signal\nfrom graphormer_sepnorm.system.signals import leaving_at_once\n"
        f"with leaving_at_once():\n    try:\n        os.kill(os.getpid(), signal.{name})\n        signal.pause()\n"
        "    finally:\n        print('finally')"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (code, "", f"{words}\n")


def test_a_command_ends_with_the_process_that_holds_its_input():
    program = "import signal\nfrom graphormer_sepnorm.system.signals import *\nend_with_input()\nsignal.pause()"
    env = os.environ | {END_WITH_INPUT: "1"}
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, env=env) as process:
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(60) == -signal.SIGTERM
