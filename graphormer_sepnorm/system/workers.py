"""Distributes chunks of SMILES among single-threaded processes, so results do not depend on their number."""

import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from types import FrameType
from typing import NoReturn, TypeVar

import torch
from torch.utils.data import DataLoader, Dataset

CHUNK = 1000
CHUNKS_ALONE = 2
Chunk = TypeVar("Chunk")
Result = TypeVar("Result")
Smiles = Sequence[str | None]


def in_chunks(smiles: Iterable[str | None], size: int = CHUNK) -> Iterator[Smiles]:
    """Lists of ``size`` SMILES; the last one may be shorter."""
    smiles = iter(smiles)
    while chunk := list(islice(smiles, size)):
        yield chunk


def map_chunks(
    work: Callable[[Smiles], Result], chunks: Iterable[Chunk], smiles_of: Callable[[Chunk], Smiles]
) -> Iterator[tuple[Chunk, Result]]:
    """Yields each chunk with the result of ``work`` for its SMILES, in order; a few chunks run in this process.

    Args:
        work: runs on one thread; its result is sent between processes.
        chunks: any objects that have SMILES; consumed lazily, a few ahead of the caller.
        smiles_of: returns the SMILES of a chunk.
    """
    chunks = iter(chunks)
    first = list(islice(chunks, CHUNKS_ALONE + 1))
    if len(first) <= CHUNKS_ALONE:
        for chunk in first:
            with one_thread():
                result = work(smiles_of(chunk))
            yield chunk, result
        return
    taken: deque[Chunk] = deque()

    def take() -> Iterator[Smiles]:
        for chunk in chain(first, chunks):
            taken.append(chunk)
            yield smiles_of(chunk)

    loader = DataLoader(
        ChunkDataset(work),
        sampler=take(),
        batch_size=None,
        collate_fn=as_it_is,
        num_workers=available_cores(),
        worker_init_fn=leave_interrupts_to_parent,
        multiprocessing_context=way_to_start(),
    )
    for result in loader:
        yield taken.popleft(), result


def way_to_start() -> str | None:
    """The start method of processes: fork, the fastest, unless something rules it out, such as a GPU in use."""
    if sys.platform != "linux":
        return None
    return "forkserver" if torch.cuda.is_initialized() else "fork"


def available_cores() -> int:
    """The number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class ChunkDataset(Dataset):
    """A function as a dataset, for PyTorch's DataLoader to distribute among its workers."""

    function: Callable[[Smiles], object]

    def __getitem__(self, smiles: Smiles) -> object:
        return self.function(smiles)


def leave_interrupts_to_parent(worker: int) -> None:
    """Makes a worker end silently when it is ended together with its parent, as ``timeout`` and job schedulers do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end_in_silence)


def end_in_silence(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(0)  # PyTorch's loader reports any other exit as an error, even during shutdown


def as_it_is(result: object) -> object:
    return result


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limits PyTorch to one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
