import os
import sys
from functools import partial

import pytest
import torch

from graphormer_sepnorm.system.workers import CHUNK, available_cores, in_chunks, map_chunks, one_thread, way_to_start


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


def parent(smiles: list[str]) -> int:
    return os.getppid()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes are never copied")
def test_processes_are_not_copied_where_a_gpu_is_in_use(monkeypatch):
    chunks = [(number, [f"C{number}"]) for number in range(3)]
    assert way_to_start() == "fork"
    assert {process for _, process in map_chunks(parent, iter(chunks), smiles_of)} == {os.getpid()}
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert os.getpid() not in {process for _, process in map_chunks(parent, iter(chunks), smiles_of)}


def test_threads_are_those_of_before_after_an_error_too():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(KeyError), one_thread():
            assert torch.get_num_threads() == 1
            raise KeyError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_cores_are_those_of_this_process():
    assert 1 <= available_cores() <= (os.cpu_count() or 1)
