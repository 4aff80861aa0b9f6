"""Writing files so that a reader sees the old content or the new, never a part of it."""

import contextlib
import os
import tempfile
from pathlib import Path

from graphormer_sepnorm.errors import InputError


def write_atomically(path: Path, content: bytes) -> None:
    """Writes ``content`` to a temporary file beside ``path``, flushes it to the disk and renames it.

    Raises:
        InputError: the disk is full or the folder cannot be written; ``path`` is as it was before.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~current_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; what was there before is unchanged") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def current_umask() -> int:
    """The permissions that this process takes away from new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
