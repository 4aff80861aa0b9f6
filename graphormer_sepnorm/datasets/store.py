"""The store of prepared molecules of a split: shards in safetensors files, and their checksums, which are written last.

M molecules, B molecules of a batch."""

import contextlib
import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch
from filelock import FileLock
from safetensors.torch import load_file, save
from tqdm.contrib.concurrent import thread_map

from graphormer_sepnorm.encodings import levels, precompute
from graphormer_sepnorm.encodings.base import Encoding
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import PER_MOLECULE, GraphBatch, Graphs, Level, pointers
from graphormer_sepnorm.system.files import delete, lock_of, mark_used, prune, write_atomically

SHARD_MOLECULES = 8192
INDEX = "index.json"
PREPARE_THREADS = 2
AHEAD = 2  # batches
Item = TypeVar("Item")
Result = TypeVar("Result")
FIELDS = ("x", "atom_ptr", "edge_index", "edge_ptr", "bond", *PER_MOLECULE)


class MoleculeDataset:
    """Prepared molecules of one split, in memory or memory-mapped from a store."""

    def __init__(self, shards: list[Graphs]):
        self.shards = shards
        self.first = pointers(np.array([len(shard) for shard in shards]))
        self.num_atoms = np.concatenate([shard.num_atoms for shard in shards])

    def __len__(self) -> int:
        return len(self.num_atoms)

    @cached_property
    def per_molecule(self) -> dict[str, np.ndarray]:
        """The ``PER_MOLECULE`` fields of ``Graphs`` that the molecules have, by name."""
        names = [name for name in PER_MOLECULE if getattr(self.shards[0], name) is not None]
        return {name: np.concatenate([getattr(shard, name) for shard in self.shards]) for name in names}

    @property
    def y(self) -> np.ndarray:
        """float32 [M, tasks]; raises ValueError for molecules without targets."""
        if "y" not in self.per_molecule:
            raise ValueError("the molecules have no targets")
        return self.per_molecule["y"]

    @property
    def bounds(self) -> np.ndarray | None:
        return self.per_molecule.get("bounds")

    def of_molecules(self, name: str, molecules: np.ndarray) -> torch.Tensor | None:
        """A field of ``Graphs`` with a row per molecule, of the molecules with these indices; None if it is None."""
        values = self.per_molecule.get(name)
        return None if values is None else torch.from_numpy(values[molecules])

    def batch(self, molecules: Sequence[int] | np.ndarray) -> GraphBatch:
        molecules = np.asarray(molecules)
        shard_of = np.searchsorted(self.first, molecules, side="right") - 1
        places = [(self.shards[s], m - self.first[s]) for s, m in zip(shard_of, molecules, strict=True)]

        def gather(level: Level, arrays: Iterable[np.ndarray]) -> torch.Tensor:
            pairs = zip(arrays, places, strict=True)
            return torch.from_numpy(np.concatenate([array[shard.rows(level, m)] for array, (shard, m) in pairs]))

        ptr = torch.from_numpy(pointers(self.num_atoms[molecules]))
        ends = [shard.edge_index[:, shard.rows("edge", m)] for shard, m in places]
        counts = torch.from_numpy(np.array([pair.shape[1] for pair in ends]))  # not on the default device
        per_molecule: dict[str, Any] = {name: self.of_molecules(name, molecules) for name in self.per_molecule}
        levels = self.shards[0].levels.items()
        return GraphBatch(
            x=gather("atom", (shard.x for shard, _ in places)),
            ptr=ptr,
            edge_index=torch.from_numpy(np.concatenate(ends, axis=1)) + ptr[:-1].repeat_interleave(counts),
            bond=gather("edge", (shard.bond for shard, _ in places)).long(),
            arrays={name: gather(level, [shard.arrays[name] for shard, _ in places]) for name, level in levels},
            **per_molecule,
        )

    def batches(self, numbers: Iterable[np.ndarray], device: torch.device) -> Iterator[GraphBatch]:
        """Batches of the molecules with these indices, on a device; prepared in the background unless it is the CPU."""

        def batch(molecules: np.ndarray) -> GraphBatch:
            with torch.accelerator.device_index(device.index):  # of this thread, for pinned memory
                return self.batch(molecules).to(device, non_blocking=True)

        return map(batch, numbers) if device.type == "cpu" else ahead(batch, numbers)


def ahead(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Applies ``function`` to each item, in order, in one thread that stays up to ``AHEAD`` results ahead."""
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(1) as thread:
        for item in items:
            waiting.append(thread.submit(function, item))
            if len(waiting) > AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def prepare(graphs: Graphs, encodings: tuple[Encoding, ...]) -> Graphs:
    y = None if graphs.y is None else graphs.y.astype(np.float32)
    compacted = replace(graphs, x=compact(graphs.x), edge_index=compact(graphs.edge_index), y=y)
    return replace(compacted, arrays=precompute(encodings, graphs), levels=levels(encodings))


def compact(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.uint8 if numbers.max(initial=0) < 256 else np.int32)


def in_memory(graphs: Graphs, encodings: tuple[Encoding, ...]) -> MoleculeDataset:
    return MoleculeDataset([prepare(graphs, encodings)])


def to_tensors(graphs: Graphs) -> dict[str, torch.Tensor]:
    """The content of a shard: the fields of ``Graphs`` by name, and the arrays of encodings as level and name."""
    fields = {name: getattr(graphs, name) for name in FIELDS if getattr(graphs, name) is not None}
    arrays = {f"{graphs.levels[name]}.{name}": array for name, array in graphs.arrays.items()}
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in (fields | arrays).items()}


def from_tensors(tensors: dict[str, torch.Tensor]) -> Graphs:
    fields = {name: tensor.numpy() for name, tensor in tensors.items() if name in FIELDS}
    places = [(name, *name.split(".", 1)) for name in tensors if name not in FIELDS]
    arrays = {name: tensors[whole].numpy() for whole, _, name in places}
    return Graphs(**fields, arrays=arrays, levels={name: cast(Level, level) for _, level, name in places})


def write_store(folder: Path, molecules: Graphs, encodings: tuple[Encoding, ...], key: str, description: str) -> None:
    starts = range(0, max(len(molecules), 1), SHARD_MOLECULES)

    def write_shard(start: int) -> dict[str, str]:
        stop = min(start + SHARD_MOLECULES, len(molecules))
        content = save(to_tensors(prepare(molecules.take(np.arange(start, stop)), encodings)))
        name = shard_name(start // SHARD_MOLECULES)
        write_atomically(folder / name, content)
        return {"file": name, "sha256": hashlib.sha256(content).hexdigest()}

    bar: dict[str, Any] = {"desc": description, "unit": " shards", "leave": False, "disable": None}
    shards = thread_map(write_shard, starts, max_workers=PREPARE_THREADS, **bar)
    write_atomically(folder / INDEX, json.dumps({"key": key, "shards": shards}, indent=1).encode())


def shard_name(number: int) -> str:
    return f"shard-{number:05d}.safetensors"


def is_intact(folder: Path, key: str) -> bool:
    try:
        index = json.loads((folder / INDEX).read_bytes())
        return index["key"] == key and all(
            shard["file"] == shard_name(number) and sha256_of_file(folder / shard["file"]) == shard["sha256"]
            for number, shard in enumerate(index["shards"])
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def sha256_of_file(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_or_write(
    folder: Path, read: Callable[[], Graphs], encodings: tuple[Encoding, ...], key: str, description: str
) -> MoleculeDataset:
    """Opens the store in ``folder``, first written by one process if it is missing, damaged or has another key."""
    with locked_folder(folder):
        if not is_intact(folder, key):
            remove(folder)
            write_store(folder, read(), encodings, key, description)
            prune(kept=folder)
        mark_used(folder)
        shards = json.loads((folder / INDEX).read_bytes())["shards"]
        return MoleculeDataset([from_tensors(load_file(folder / shard["file"])) for shard in shards])


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Context manager: exclusive access of this process to a folder; raises InputError if the cache is read-only."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(lock_of(folder)).acquire()
    except OSError as error:
        raise InputError(f"cannot write to the cache {folder.parent}: {error.strerror}") from None
    with lock:
        yield


def remove(path: Path) -> None:
    try:
        delete(path)
    except OSError as error:
        raise InputError(f"cannot replace the damaged cache {path}: {error.strerror}") from None
