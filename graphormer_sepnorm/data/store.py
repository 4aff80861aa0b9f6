"""The compact store of prepared molecules: shards of packed arrays in safetensors files, written once and checked.

A folder holds one split: ``shard-00000.safetensors``, ... and ``index.json``, which is written last and carries the
shards' checksums. A folder without it, or whose files do not match it, is unfinished, damaged or foreign, and is
written anew.

Axis letters: M molecules, T atoms, P ordered atom pairs, B molecules of a batch.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import numpy as np
import torch
from filelock import FileLock
from safetensors.torch import load_file, save
from tqdm import tqdm

from graphormer_sepnorm.encodings import Encoding, precompute
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import GraphBatch, LabelledGraphs, pointers
from graphormer_sepnorm.system.files import write_atomically

SHARD_MOLECULES = 8192
INDEX = "index.json"
PREPARE_THREADS = 2


class Shard:
    """Some prepared molecules.

    Attributes:
        arrays: ``x`` [T, F], ``y`` [M, tasks] and those of the encodings, [T, ...] or [P, ...].
        num_atoms: [M].
    """

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.num_atoms = arrays.pop("num_atoms")
        self.arrays = arrays
        self.atom_ptr = pointers(self.num_atoms)
        self.pair_ptr = pointers(self.num_atoms.astype(np.int64) ** 2)

    def rows(self, name: str, molecule: int) -> np.ndarray:
        """The rows of an array that belong to one molecule of this shard."""
        array = self.arrays[name]
        if name == "y":
            return array[molecule : molecule + 1]
        ptr = self.pair_ptr if len(array) == self.pair_ptr[-1] else self.atom_ptr
        return array[ptr[molecule] : ptr[molecule + 1]]


class MoleculeDataset:
    """Prepared molecules of one split, in memory or mapped from a store.

    Attributes:
        num_atoms: [M].
        y: float32 [M, tasks].
    """

    def __init__(self, shards: list[Shard]):
        self.shards = shards
        self.first = pointers(np.array([len(shard.num_atoms) for shard in shards]))
        self.num_atoms = np.concatenate([shard.num_atoms for shard in shards])
        self.y = np.concatenate([shard.arrays["y"] for shard in shards])

    def __len__(self) -> int:
        return len(self.num_atoms)

    def batch(self, molecules: Sequence[int] | np.ndarray) -> GraphBatch:
        """Packs the molecules with these numbers, in this order."""
        molecules = np.asarray(molecules)
        shard_of = np.searchsorted(self.first, molecules, side="right") - 1
        places = [(self.shards[s], m - self.first[s]) for s, m in zip(shard_of, molecules, strict=True)]

        def gather(name: str) -> torch.Tensor:
            return torch.from_numpy(np.concatenate([shard.rows(name, place) for shard, place in places]))

        return GraphBatch(
            x=gather("x"),
            ptr=torch.from_numpy(pointers(self.num_atoms[molecules])),
            arrays={name: gather(name) for name in self.shards[0].arrays if name not in ("x", "y")},
            y=gather("y"),
        )


def prepare_shard(molecules: LabelledGraphs, encodings: tuple[Encoding, ...]) -> dict[str, np.ndarray]:
    """All arrays of a shard in their compact types."""
    graphs = molecules.graphs
    x_type = np.uint8 if graphs.x.max(initial=0) < 256 else np.int32
    return {
        "x": graphs.x.astype(x_type),
        "y": molecules.y.astype(np.float32),
        "num_atoms": graphs.num_atoms.astype(np.int32),
        **precompute(encodings, graphs),
    }


def in_memory(molecules: LabelledGraphs, encodings: tuple[Encoding, ...]) -> MoleculeDataset:
    """Prepares molecules without a store."""
    return MoleculeDataset([Shard(prepare_shard(molecules, encodings))])


def write_store(
    folder: Path, molecules: LabelledGraphs, encodings: tuple[Encoding, ...], key: str, description: str
) -> None:
    """Prepares molecules in parallel, shard by shard, into an empty folder."""
    starts = range(0, len(molecules), SHARD_MOLECULES)

    def write_shard(start: int) -> dict[str, str]:
        stop = min(start + SHARD_MOLECULES, len(molecules))
        arrays = prepare_shard(molecules.take(np.arange(start, stop)), encodings)
        content = save({name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()})
        path = folder / shard_name(start // SHARD_MOLECULES)
        write_atomically(path, content)
        return {"file": path.name, "sha256": hashlib.sha256(content).hexdigest()}

    with (
        ThreadPoolExecutor(PREPARE_THREADS) as pool,
        tqdm(total=len(molecules), desc=description, unit=" molecules", leave=False, disable=None) as progress,
    ):
        shards = []
        written = cast(Generator[dict[str, str], None, None], pool.map(write_shard, starts))
        with contextlib.closing(written):
            for start, shard in zip(starts, written, strict=True):
                shards.append(shard)
                progress.update(min(SHARD_MOLECULES, len(molecules) - start))
    write_atomically(folder / INDEX, json.dumps({"key": key, "shards": shards}, indent=1).encode())


def shard_name(number: int) -> str:
    return f"shard-{number:05d}.safetensors"


def is_intact(folder: Path, key: str) -> bool:
    """Whether the folder holds a finished store of this key whose files match their checksums."""
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


def open_store(folder: Path) -> MoleculeDataset:
    """Maps the files of an intact store."""
    shards = []
    for shard in json.loads((folder / INDEX).read_bytes())["shards"]:
        tensors = load_file(folder / shard["file"])
        shards.append(Shard({name: tensor.numpy() for name, tensor in tensors.items()}))
    return MoleculeDataset(shards)


def open_or_write(
    folder: Path, read: Callable[[], LabelledGraphs], encodings: tuple[Encoding, ...], key: str, description: str
) -> MoleculeDataset:
    """Opens the store in ``folder``, written before if it is not there, not intact or of another key.

    Of several processes that ask for one folder, one writes it and the others wait.

    Args:
        folder: folder of this store alone; what is in it is replaced.
        read: gives the molecules; called only if the store must be written.
        key: everything that the content depends on.
        description: words beside the progress bar.
    """
    with locked(folder):
        if not is_intact(folder, key):
            remove(folder)
            write_store(folder, read(), encodings, key, description)
        return open_store(folder)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Within it, no other process is in the same block for this folder; raises InputError if the cache is read-only."""
    lock = FileLock(folder.parent / f".{folder.name}.lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise InputError(f"cannot write to the cache {folder.parent}: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()


def remove(path: Path) -> None:
    """Removes a folder with all that is in it, a file or a link; raises InputError if it cannot be removed."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot replace the damaged cache {path}: {error.strerror}") from None
