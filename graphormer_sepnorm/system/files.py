"""Writes files atomically, so that a reader sees the old or the new content; keeps the cache below its size limit."""

import contextlib
import glob
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from graphormer_sepnorm.errors import InputError

TEMPORARY = ".tmp"
LOCK = "lock"  # in a folder of one process
CACHE_VARIABLE = "GRAPHORMER_SEPNORM_CACHE"
LIMIT_VARIABLE = "GRAPHORMER_SEPNORM_CACHE_GB"
DEFAULT_GB = 20.0
ENTRY = re.compile(r"[^.].*-[0-9a-f]{16}")  # the name of a folder of the cache ends with a hash
REMOVING = ".removing-"  # begins the name of a folder that is being removed


def cache_root() -> Path:
    """The folder for recomputable data and finished work: the environment variable, or the user's cache."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "graphormer_sepnorm")


def check_output(out: Path, source: str) -> None:
    """Raises InputError if ``out`` is a folder or in a file, or is the input file ``source``."""
    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file to write")
    for file in filter(Path.is_file, out.parents):
        raise InputError(f"{file} is a file, not a folder: choose another output than {out}")
    if not (first := [*out.absolute().parents][-2:][0]).exists():
        raise InputError(f"there is no folder {first}, which {out} begins with: choose another output")
    if out.exists() and os.path.exists(source) and out.samefile(source):
        raise InputError(f"{out} is the input: choose another output")


@contextlib.contextmanager
def writing(path: Path, comfort: str = "") -> Iterator[None]:
    """Context manager: an OSError becomes an InputError that names the path."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}{comfort}") from None


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces the content of a file; raises InputError if that fails, and leaves it unchanged."""
    with writing(path, "; what was there before is unchanged"), replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Context manager: a temporary file, flushed and renamed to ``path`` at the end; raises OSError."""
    path = behind_link(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, f"{path.name}.")
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
        with open(temporary, "xb") as file, claimed(file.fileno(), wait=True):
            if not os.fstat(file.fileno()).st_nlink:  # removed as a leftover before it was claimed
                continue
            try:
                with file:
                    yield file
                rename_durably(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
            return


@contextlib.contextmanager
def claimed(handle: int, wait: bool = False) -> Iterator[None]:
    """Context manager: the file is marked as in use, even after ``handle`` is closed; raises OSError if it was."""
    if fcntl is None:
        yield
        return
    mark = os.dup(handle)
    try:
        with contextlib.suppress(OSError) if wait else contextlib.nullcontext():
            fcntl.flock(mark, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(mark)


def behind_link(path: Path) -> Path:
    """The target of a symbolic link, whether or not it exists; any other path unchanged."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def rename_durably(temporary: Path, path: Path) -> None:
    """Renames a complete file such that a power loss leaves either the old or the new content; raises OSError."""
    with open(temporary, "r+b") as file:  # Windows flushes only files that are open for writing
        os.fsync(file.fileno())
    os.replace(temporary, path)
    if os.name == "posix":
        with contextlib.suppress(OSError):  # the new file is there, so nothing has failed
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Removes temporary files of killed writers of ``name``..., but none that a process is writing."""
    for path in folder.glob(f".{glob.escape(name)}*{TEMPORARY}"):
        with contextlib.suppress(OSError), open(path, "rb") as file, claimed(file.fileno()):
            path.unlink()


@contextlib.contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Context manager: holds the lock ``path``; raises InputError, ``busy``, if another process does."""
    lock = FileLock(path, blocking=False)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            raise InputError(busy) from None
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):  # Windows does not remove a file that is open
            path.unlink(missing_ok=True)
        lock.release()


@contextlib.contextmanager
def own_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Context manager: a new folder for this process only, removed at the end as are those of killed processes."""
    for left in parent.glob(f"{glob.escape(prefix)}*"):
        with contextlib.suppress(InputError), locked(left / LOCK, "another process uses it"):
            shutil.rmtree(left, ignore_errors=True)
    with writing(parent):
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        with locked(folder / LOCK, "another process uses it"):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class CacheEntry:
    """An entry of the cache, kept or removed as a whole; ``used`` is in seconds since 1970."""

    path: Path
    bytes: int
    used: float


def limit_bytes() -> float:
    """The size limit: the environment variable, in GB, or ``DEFAULT_GB``; raises InputError if it is not a number."""
    text = os.environ.get(LIMIT_VARIABLE) or str(DEFAULT_GB)
    with contextlib.suppress(ValueError):
        if (limit := float(text)) >= 0:
            return limit * 1e9
    raise InputError(f"{LIMIT_VARIABLE} is {text!r}: give a number of gigabytes")


def lock_of(path: Path) -> Path:
    return path.parent / f".{path.name}.lock"


def mark_used(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(path)


def entries() -> list[CacheEntry]:
    """The entries that may be removed, least recently used first."""
    cached, root = [], cache_root()
    own = [path for path in root.glob("*") if ENTRY.fullmatch(path.name) or path.name.startswith(REMOVING)]
    for path in [*own, *(root / "descriptors").glob("*.npz")]:  # many tables share descriptors
        with contextlib.suppress(OSError):  # removed in the meantime
            files = [path, *path.rglob("*")] if path.is_dir() else [path]
            cached.append(CacheEntry(path, sum(each.lstat().st_size for each in files), path.lstat().st_mtime))
    return sorted(cached, key=lambda entry: entry.used)


def prune(kept: Path) -> None:
    """Removes entries until the cache is below its limit, except ``kept`` and entries that a process has locked."""
    cached = entries()
    surplus = sum(entry.bytes for entry in cached) - limit_bytes()
    for entry in cached:
        if surplus <= 0:
            return
        with contextlib.suppress(Timeout, OSError):
            if entry.path != kept:
                with FileLock(lock_of(entry.path), blocking=False):
                    delete(entry.path)
                    lock_of(entry.path).unlink(missing_ok=True)
                surplus -= entry.bytes


def delete(path: Path) -> None:
    """Removes a file, link or folder; this is renamed first, so that no part of it has its name if this is killed."""
    if path.is_dir() and not path.is_symlink():
        renamed = path.with_name(f"{REMOVING}{path.name}")
        shutil.rmtree(renamed, ignore_errors=True)  # left by a process that was killed
        shutil.rmtree(path.rename(renamed), ignore_errors=True)  # another process may remove it too
    else:
        path.unlink(missing_ok=True)
