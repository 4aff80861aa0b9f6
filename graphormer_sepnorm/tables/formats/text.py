"""The bytes and the lines of a file, unpacked, or of standard input."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import BinaryIO

from graphormer_sepnorm.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STANDARD_INPUT = "-"
MAX_RECORD = 1_000_000
COMPRESSIONS: dict[str, tuple[str, Callable]] = {
    ".gz": ("gzip", gzip.open),
    ".bz2": ("bzip2", bz2.open),
    ".xz": ("xz", lzma.open),
    ".zst": ("Zstandard", zstd.open),
}
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError)
# What is no text, by the beginning of its first line.
NO_TEXT = {
    "PK\x03\x04": "a zip archive or a workbook", "\udcd0\udccf\x11\udce0": "an old Excel file",
    "PAR1": "Parquet", "ARROW1": "Feather", "FEA1": "Feather",
    "\x1f\udc8b": "packed by gzip, so its name should end in .gz",
    "BZh": "packed by bzip2, so its name should end in .bz2",
    "\udcfd7zXZ": "packed by xz, so its name should end in .xz",
    "(\udcb5/\udcfd": "packed by Zstandard, so its name should end in .zst",
    "%PDF": "a PDF", "\udc89PNG": "a picture", "\udcff\udcd8\udcff": "a picture", "GIF8": "a picture",
}  # fmt: skip
UTF16_MARKS = ("\udcff\udcfe", "\udcfe\udcff")
CONTROL = frozenset(map(chr, range(32))) - frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f")


def is_file(path: str | Path) -> bool:
    """Whether a table can be read again: not standard input, nor another pipe."""
    return str(path) != STANDARD_INPUT and os.path.isfile(path)


def compression_of(path: str | Path) -> str:
    suffix = Path(path).suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


@contextlib.contextmanager
def open_binary(path: str | Path) -> Iterator[BinaryIO]:
    suffix = compression_of(path)
    if str(path) == STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("standard input is closed: pipe a table into the command, or name a file instead of -")
        yield sys.stdin.buffer
        return
    with COMPRESSIONS[suffix][1](path) if suffix else open(path, "rb") as file:
        yield file


@contextlib.contextmanager
def readable(path: str | Path) -> Iterator[None]:
    packed = compression_of(path)
    try:
        yield
    except (*DAMAGED, OSError) as error:
        if (isinstance(error, OSError) and error.errno is not None) or not packed:
            raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
        raise InputError(f"{path} is not a whole {COMPRESSIONS[packed][0]} file: {error}") from None


def refuse_missing(path: str | Path) -> None:
    if str(path) != STANDARD_INPUT:
        with readable(path):
            os.stat(path)


def text_lines(path: str | Path) -> Generator[str, None, None]:
    """The lines of a text file or of standard input with their ends; raises InputError as ``open_table`` says."""
    with readable(path), open_binary(path) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape", newline="")
        for number, line in enumerate(iter(lambda: text.readline(MAX_RECORD + 1), ""), 1):
            if number == 1:
                check_text(line, path)
            if len(line) > MAX_RECORD:
                raise InputError(f"line {number} of {path} has more than {MAX_RECORD:,} characters: is it a table?")
            yield line


def check_text(first: str, path: str | Path) -> None:
    if first.startswith(UTF16_MARKS):
        raise InputError(f"{path} is UTF-16: save it as UTF-8")
    is_text = CONTROL.isdisjoint(first) and not any("\udc80" <= character <= "\udcff" for character in first)
    for mark, kind in NO_TEXT.items():
        if first.startswith(mark) and not (is_text and mark.isalnum()):  # PAR1 is also the name of a protein
            raise InputError(f"{path} is {kind}: save the table as CSV")
    if not CONTROL.isdisjoint(first):
        raise InputError(f"{path} is no text: save the table as CSV")
