"""Keeps the cache below its size limit: the least recently used entries are removed first."""

import contextlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.files import cache_root

LIMIT_VARIABLE = "GRAPHORMER_SEPNORM_CACHE_GB"
DEFAULT_GB = 20.0
ENTRY = re.compile(r"[^.].*-[0-9a-f]{16}")  # the name of a folder of the cache ends with a hash
REMOVING = ".removing-"  # begins the name of a folder that is being removed


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
    found, root = [], cache_root()
    paths = list(root.iterdir()) if root.is_dir() else []
    for path in [*paths, *(root / "descriptors").glob("*.npz")]:  # many tables share descriptors
        if not (ENTRY.fullmatch(path.name) or path.name.startswith(REMOVING) or path.parent != root):
            continue
        with contextlib.suppress(OSError):  # removed in the meantime
            files = [path, *path.rglob("*")] if path.is_dir() else [path]
            found.append(CacheEntry(path, sum(each.lstat().st_size for each in files), path.lstat().st_mtime))
    return sorted(found, key=lambda entry: entry.used)


def prune(kept: Path) -> None:
    """Removes entries until the cache is below its limit, except ``kept`` and entries that a process has locked."""
    found = entries()
    surplus = sum(entry.bytes for entry in found) - limit_bytes()
    for entry in found:
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
