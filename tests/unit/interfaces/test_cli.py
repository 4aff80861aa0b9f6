import subprocess
import sys

PROGRAM = """
import gc
from graphormer_sepnorm.interfaces.cli import collect_less_often

class Noisy:
    def __init__(self):
        self.me = self
    def __del__(self):
        print("collected")

collect_less_often()
Noisy()
print(gc.isenabled(), gc.get_threshold()[0])
%s
"""


def printed(last_line: str) -> list[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM % last_line], capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_garbage_is_collected_when_10_000_objects_are_new():
    assert printed("kept = [[] for _ in range(11_000)]\nprint('end')") == ["True 10000", "collected", "end"]
    assert printed("kept = [[] for _ in range(5_000)]\nprint('end')") == ["True 10000", "end"]
