import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from functools import partial

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from graphormer_sepnorm.system import workers
from graphormer_sepnorm.system.workers import (
    CHUNK,
    available_cores,
    in_chunks,
    in_processes,
    map_chunks,
    one_thread_for_small,
)


def described(smiles: list[str], suffix: str = "") -> tuple[list[str], int, int]:
    return [text + suffix for text in smiles], torch.get_num_threads(), os.getpid()


def smiles_of(chunk: tuple[int, list[str]]) -> list[str]:
    return chunk[1]


def test_chunks_are_full_but_for_the_last():
    chunks = list(in_chunks(str(number) for number in range(2 * CHUNK + 1)))
    assert [len(chunk) for chunk in chunks] == [CHUNK, CHUNK, 1]
    assert chunks[1][0] == str(CHUNK) and chunks[2] == [str(2 * CHUNK)]
    assert list(in_chunks([])) == []


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
def test_results_come_in_order_from_one_thread_each(count):
    chunks = [(number, [f"C{number}", f"N{number}"]) for number in range(count)]
    found = list(map_chunks(partial(described, suffix="!"), iter(chunks), smiles_of))
    assert [chunk for chunk, _ in found] == chunks
    assert [texts for _, (texts, _, _) in found] == [[f"C{number}!", f"N{number}!"] for number in range(count)]
    assert all(threads == 1 for _, (_, threads, _) in found)
    assert all((process == os.getpid()) is (count <= 2) for _, (_, _, process) in found)


def processes_of_chunks(count: int) -> tuple[list[int], int]:
    return [process for _, (_, _, process) in map_chunks(described, [["C"]] * count, list)], os.getpid()


def test_a_process_of_a_pool_works_on_all_chunks_itself():
    """A daemonic process may have no children."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        processes, own = pool.apply(processes_of_chunks, [5])
    assert processes == [own] * 5 and own != os.getpid()


def where(number: int) -> tuple[int, int, int]:
    return number, torch.get_num_threads(), os.getpid()


def test_numbers_are_worked_on_in_processes_of_one_thread(monkeypatch):
    found = in_processes(where, 3)
    assert [(number, threads) for number, threads, _ in found] == [(0, 1), (1, 1), (2, 1)]
    assert os.getpid() not in {process for _, _, process in found}
    assert in_processes(where, 1) == [(0, torch.get_num_threads(), os.getpid())]
    monkeypatch.setattr(workers, "num_processes", lambda: 2)
    assert {process for _, _, process in in_processes(where, 3)} == {os.getpid()}


def fail_or_wait(number: int) -> None:
    if number == 0:
        raise ValueError("the first")
    threading.Event().wait()


def test_an_error_in_one_process_ends_all():
    before = set(multiprocessing.active_children())
    with pytest.raises(ValueError, match="the first"):
        in_processes(fail_or_wait, 2)
    for process in set(multiprocessing.active_children()) - before:
        process.join()


COMMAND = """
import itertools, os, signal, sys, time
from graphormer_sepnorm.interfaces.guard import guarded
from graphormer_sepnorm.system.workers import map_chunks

def work(smiles):
    if sys.argv[1] == "killed" and smiles[0] == "5":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(3600 if sys.argv[1] == "long" and smiles[0] == "5" else 0.05)

def command():
    for number, _ in map_chunks(work, itertools.count(), lambda number: [str(number)]):
        print(number, flush=True)

guarded(command)
"""


def start(fate: str) -> subprocess.Popen:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", COMMAND, fate], start_new_session=True, text=True, **pipes)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied, with what they are to do")
def test_a_group_of_processes_that_is_ended_together_says_one_sentence():
    with start("ended") as process:
        for number in range(available_cores()):  # each process has answered once
            assert process.stdout.readline() == f"{number}\n"
        os.killpg(process.pid, signal.SIGTERM)
        _, messages = process.communicate(timeout=60)
    assert (process.returncode, messages) == (128 + signal.SIGTERM, "terminated\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied, with what they are to do")
def test_a_killed_process_gives_a_sentence():
    with start("killed") as process:
        _, messages = process.communicate(timeout=60)
    assert process.returncode == 2
    assert messages.startswith("error: a worker process was killed, perhaps for lack of memory")
    assert "Traceback" not in messages


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied, with what they are to do")
def test_no_process_outlives_one_that_is_killed():
    """The output ends only when all processes have ended."""
    with start("long") as process:
        while process.stdout.readline() != "4\n":
            pass
        process.kill()
        process.communicate(timeout=60)


def test_linear_algebra_of_few_rows_has_one_thread():
    def threads() -> set[int]:
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        with one_thread_for_small(2000):
            assert threads() == {1}
        with one_thread_for_small(2001):
            assert threads() == {2}
