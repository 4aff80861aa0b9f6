"""Writing files so that a reader sees the old content or the new, never a part of it."""

import contextlib
import os
import tempfile
from pathlib import Path

from graphormer_sepnorm.errors import InputError

TEMPORARY = ".tmp"


def write_atomically(path: Path, content: bytes) -> None:
    """Writes ``content`` to a temporary file beside ``path``, flushes it to the disk and renames it.

    Raises:
        InputError: the disk is full or the folder cannot be written; ``path`` is as it was before.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=TEMPORARY)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~current_umask())
        os.replace(temporary, path)
        flush_folder(path.parent)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; what was there before is unchanged") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def flush_folder(folder: Path) -> None:
    """Makes a rename in a folder survive a loss of power; without effect where folders cannot be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_leftovers(folder: Path) -> None:
    """Removes the temporary files of writers that were killed; no other process may be writing in ``folder``."""
    for path in folder.glob(f".*{TEMPORARY}"):
        path.unlink(missing_ok=True)


def current_umask() -> int:
    """The permissions that this process takes away from new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
