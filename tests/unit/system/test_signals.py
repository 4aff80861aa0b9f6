import os
import signal
import subprocess
import sys

import pytest

from graphormer_sepnorm.system.signals import END_WITH_INPUT, Interrupted, advising, interruptible


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


def test_advice_may_depend_on_what_is_done_by_then():
    done = []
    with pytest.raises(Interrupted) as caught, advising(lambda: f"{len(done)} done"):
        done.append("a")
        raise Interrupted(signal.SIGTERM)
    assert caught.value.advice == "1 done"


def test_a_command_ends_with_the_process_that_holds_its_input():
    program = "import signal\nfrom graphormer_sepnorm.system.signals import *\nend_with_input()\nsignal.pause()"
    env = os.environ | {END_WITH_INPUT: "1"}
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, env=env) as process:
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(60) == -signal.SIGTERM
