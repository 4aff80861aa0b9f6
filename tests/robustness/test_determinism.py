"""The same seed gives the same run in a fresh process."""

import pytest

from tests.robustness import processes
from tests.robustness.test_interruption import assert_same_end, losses


@pytest.mark.slow
def test_fresh_processes_and_other_numbers_of_preparing_threads_give_the_same_run(tmp_path):
    for threads in (1, 2, 5):
        folder = tmp_path / str(threads)
        done = processes.command(
            "tests/robustness/tiny_run.py", "--out", folder / "run", "--cache", folder / "cache", "--threads", threads
        )
        assert done.returncode == 0, done.stderr
    for threads in (2, 5):
        assert_same_end(tmp_path / str(threads) / "run", tmp_path / "1" / "run")
    assert len(losses(tmp_path / "1" / "run")) == 4
