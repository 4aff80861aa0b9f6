"""Distributes chunks of SMILES among single-threaded processes, so results do not depend on their number."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from graphormer_sepnorm.system.progress import tracked
from graphormer_sepnorm.system.signals import num_processes

CHUNK = 1000
PR_SET_PDEATHSIG = 1  # Linux: the signal that a process receives when its parent dies
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc: parameters of mallopt
MOST_KEPT, LARGEST_KEPT = 256 * 2**20, 32 * 2**20  # bytes; 32 MiB is the most that glibc accepts
Chunk = TypeVar("Chunk")
Item = TypeVar("Item")
Result = TypeVar("Result")
Part = TypeVar("Part")
Smiles = Sequence[Any]  # SMILES or None, or what stands for a molecule in their place


def in_chunks(items: Iterable[Item], size: int = CHUNK) -> Iterator[list[Item]]:
    """Lists of ``size`` items, such as SMILES; the last one may be shorter."""
    items = iter(items)
    while chunk := list(islice(items, size)):
        yield chunk


def map_chunks(
    work: Callable[[Part], Result],
    chunks: Iterable[Chunk],
    part_of: Callable[[Chunk], Part],
    alone: int = 2,
    prepare: Callable[[], object] = lambda: None,  # loads what each process would load otherwise
) -> Iterator[tuple[Chunk, Result]]:
    """Each chunk with the result of ``work`` for a part of it, in order; few chunks, or a daemon's, run here."""
    chunks = iter(chunks)
    first = list(islice(chunks, alone + 1))
    if len(first) <= alone or multiprocessing.current_process().daemon:
        for chunk in chain(first, chunks):
            with one_thread():
                result = work(part_of(chunk))
            yield chunk, result
        return
    with one_thread():
        prepare()
    taken: deque[Chunk] = deque()

    def take() -> Iterator[Part]:
        for chunk in chain(first, chunks):
            taken.append(chunk)
            yield part_of(chunk)

    parts: dict[str, Any] = {"sampler": take(), "batch_size": None, "collate_fn": work}
    start = "forkserver" if torch.cuda.is_initialized() else "fork"  # the fastest, but not while a GPU is in use
    context = start if sys.platform == "linux" else None
    processes: dict[str, Any] = {"num_workers": available_cores(), "multiprocessing_context": context}
    for result in DataLoader(PartDataset(), worker_init_fn=start_worker, **parts, **processes):
        yield taken.popleft(), result


def in_processes(work: Callable[[int], Result], count: int, part: slice = slice(None)) -> list[Result]:
    """Results of ``work`` for part of the numbers below ``count``, in processes; here with a GPU or under torchrun."""
    numbers = range(count)[part]
    if count == 1 or num_processes() > 1 or torch.accelerator.is_available():
        return [work(number) for number in numbers]
    others = set(multiprocessing.active_children())
    try:
        return [result for _, result in tracked(map_chunks(work, numbers, int, alone=0), count)]
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            with contextlib.suppress(RuntimeError):  # raised by PyTorch, wherever this is, for a killed worker
                process.terminate()
                process.join()
        raise


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class PartDataset(Dataset):
    """Parts of chunks as a dataset, for PyTorch's DataLoader to distribute among its workers."""

    def __getitem__(self, part: object) -> object:
        return part


def start_worker(worker: int) -> None:
    """Makes a worker end silently with its parent, and glibc keep freed memory, a tenth of the time of a prediction."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # PyTorch's loader reports any other exit as an error
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if hasattr(library, "mallopt"):
            library.mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT)
            library.mallopt(M_TRIM_THRESHOLD, MOST_KEPT)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def one_thread_for_small(rows: int) -> Iterator[None]:
    """Context manager: one thread for the linear algebra of matrices with few rows, where several would only wait."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1 if rows <= 2000 else None, user_api="blas"):
        yield


def joined_results(parts: Sequence[Result]) -> Result:
    """The results of parts of a table as those of the whole: arrays and lists of all rows, one after another."""

    def join(values: Sequence[Any]) -> Any:
        if values[0] is None:
            return None
        if isinstance(values[0], np.ndarray):
            return np.concatenate(values)
        if isinstance(values[0], list):
            return [each for value in values for each in value]
        if isinstance(values[0], tuple):
            return tuple(map(join, zip(*values, strict=True)))
        if isinstance(values[0], Mapping):
            return {name: join([value[name] for value in values]) for name in values[0]}
        names = [each.name for each in fields(values[0])]
        return replace(values[0], **{name: join([getattr(value, name) for value in values]) for name in names})

    return join(parts)


def as_one(chunks: Iterable[tuple[list[Chunk], Result]]) -> Iterator[tuple[list[Chunk], Result]]:
    """All chunks, and their results, as one chunk; none if there are none."""
    if parts := list(chunks):
        yield [row for rows, _ in parts for row in rows], joined_results([result for _, result in parts])
