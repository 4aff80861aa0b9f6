"""Text files, unpacked: CSV and TSV, whose first line has the names of the columns, .smi, a SMILES and a name, and SDF.

Source of SDF: "CTfile formats", Dassault Systemes, 2020.
"""

import bz2
import contextlib
import csv
import gzip
import io
import itertools
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import BinaryIO, Literal

from graphormer_sepnorm.chem.smiles import END_OF_STRUCTURE, smiles_of_block
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system import progress
from graphormer_sepnorm.tables.formats import table as tables
from graphormer_sepnorm.tables.formats.table import Row, Table

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STANDARD_INPUT = "-"
MAX_RECORD = 1_000_000
# By suffix, the beginning of a file as ``text_lines`` reads it.
COMPRESSIONS: dict[str, tuple[str, Callable, str]] = {
    ".gz": ("gzip", gzip.open, "\x1f\udc8b"),
    ".bz2": ("bzip2", bz2.open, "BZh"),
    ".xz": ("xz", lzma.open, "\udcfd7zXZ"),
    ".zst": ("Zstandard", zstd.open, "(\udcb5/\udcfd"),
}
# What is no text, by the beginning of its first line.
NO_TEXT = {
    "PK\x03\x04": "a zip archive or a workbook", "\udcd0\udccf\x11\udce0": "an old Excel file",
    "PAR1": "Parquet", "ARROW1": "Feather", "FEA1": "Feather",
    **{mark: f"packed by {name}, so its name should end in {end}" for end, (name, _, mark) in COMPRESSIONS.items()},
    "%PDF": "a PDF", "\udc89PNG": "a picture", "\udcff\udcd8\udcff": "a picture", "GIF8": "a picture",
}  # fmt: skip
# Windows-1252 of bytes that are not UTF-8; five bytes are no character.
WINDOWS = {0xDC00 + each: text for each in range(128, 256) if (text := bytes([each]).decode("cp1252", "ignore"))}
CONTROL = frozenset(map(chr, range(32))) - frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f")
# Of a CXSMILES: coordinates, labels, radicals, items such as "&1:3", the letter r, or nothing.
EXTENSION = r"\|(?:(?:[($^]|(?:ctu|[acCfHmstuZ]|w[UD]?|[o&]\d+|rb|lp|LN|LO|RG|Sg[DH]?|atomProp|THB):|r,)[^|]*|r)?\|"
WITH_EXTENSION = re.compile(rf"\s*(\S+\s+{EXTENSION})(.*)", re.DOTALL)  # CXSMILES and a name
COLUMNS = ["smiles", "name"]
DELIMITERS = ",\t;|"
EXCELS_LINE = re.compile(r'"?sep=(.)"?[\r\n]*', re.IGNORECASE)
ITEM = re.compile(r">[^<]*<(.*)>[^>]*")  # of a data item; it may have < and > in it
OF_MOLFILE = "_of_molfile"  # ends the name of a column, if a data item has that name


def is_file(path: str | Path) -> bool:
    """Whether a table can be read again: not standard input, nor another pipe."""
    return str(path) != STANDARD_INPUT and os.path.isfile(path)


def compression_of(path: str | Path) -> str:
    suffix = Path(path).suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


@contextlib.contextmanager
def open_binary(path: str | Path) -> Iterator[BinaryIO]:
    if str(path) == STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("standard input is closed: pipe a table into the command, or name a file instead of -")
        yield sys.stdin.buffer
        return
    with COMPRESSIONS[suffix][1](path) if (suffix := compression_of(path)) else open(path, "rb") as file:
        yield file


@contextlib.contextmanager
def readable(path: str | Path) -> Iterator[None]:
    packed = compression_of(path)
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError, OSError) as error:
        if (isinstance(error, OSError) and error.errno is not None) or not packed:
            raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
        raise InputError(f"{path} is not a whole {COMPRESSIONS[packed][0]} file: {error}") from None


def refuse_missing(path: str | Path) -> None:
    if str(path) != STANDARD_INPUT:
        with readable(path):
            os.stat(path)


def text_lines(path: str | Path) -> Generator[str, None, None]:
    """The lines of a text file in UTF-8; a byte that is not is read as Windows-1252."""
    with readable(path), open_binary(path) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape", newline="")
        for number, line in enumerate(iter(lambda: text.readline(MAX_RECORD + 1), ""), 1):
            if number == 1:
                check_text(line, path)
            if len(line) > MAX_RECORD:
                raise InputError(f"line {number} of {path} has more than {MAX_RECORD:,} characters: is it a table?")
            if (plain := line if line.isascii() else line.translate(WINDOWS)) != line:
                say_windows(str(path))
            yield plain


@cache
def say_windows(path: str) -> None:
    progress.say([f"{path} is not UTF-8: it is read as Windows-1252, and a CSV written from it is UTF-8"])


def check_text(first: str, path: str | Path) -> None:
    if first.startswith(("\udcff\udcfe", "\udcfe\udcff")):
        raise InputError(f"{path} is UTF-16: save it as UTF-8")
    is_text = CONTROL.isdisjoint(first) and not any("\udc80" <= character <= "\udcff" for character in first)
    for mark, kind in NO_TEXT.items():
        if first.startswith(mark) and not (is_text and mark.isalnum()):  # PAR1 is also the name of a protein
            raise InputError(f"{path} is {kind}: save the table as CSV")
    if not CONTROL.isdisjoint(first):
        raise InputError(f"{path} is no text: save the table as CSV")


def read_csv(
    lines: Iterator[str], source: str, smiles_column: str | None, delimiter: str | None, usual: str | None = None
) -> Table:
    """A CSV with a header, before it maybe Excel's line ``sep=;``; one column without a header as ``read_smi``."""
    header = next(lines, "")
    if said := EXCELS_LINE.fullmatch(header):
        header = next(lines, "")
    if not header:
        raise InputError(f"{source} is empty: it should begin with a line of column names")
    delimiter = delimiter or (said[1] if said else usual) or likely_delimiter(header, smiles_column)
    if (begins_with_molecule := tables.is_molecule(header)) and delimiter not in header:
        rows = list(itertools.islice(lines, tables.ROWS_LOOKED_AT))
        lines = itertools.chain(rows, lines)
        if tables.molecule_among([header.strip()], [[line] for line in rows], smiles_column):
            return read_smi(itertools.chain([header], lines))
    records = csv_records(itertools.chain([header], lines), source, delimiter, lines_before=1 if said else 0)
    advice = ", or rename the file to end in .smi if each line is a SMILES and a name"
    records = tables.with_names(records, source, smiles_column, advice if begins_with_molecule else "")
    return replace(tables.table_of_records(records, source, smiles_column, delimiter), header=2 if said else 1)


def likely_delimiter(header: str, smiles_column: str | None = None) -> str:
    """The delimiter that splits a header into most columns, the one with the SMILES among them if any does that."""
    columns = {delimiter: split_fields(header, delimiter) for delimiter in DELIMITERS}
    fitting = [delimiter for delimiter in DELIMITERS if tables.places_of_column(columns[delimiter], smiles_column)]
    return max(fitting or DELIMITERS, key=lambda delimiter: len(columns[delimiter]))


def split_fields(line: str, delimiter: str, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, quoting=quoting))
    except csv.Error:
        return []


def csv_records(lines: Iterator[str], source: str, delimiter: str, lines_before: int = 0) -> Iterator[list[str]]:
    record: list[str] = []

    def remembered() -> Iterator[str]:
        size = 0
        for line in lines:
            size = size + len(line) if record else len(line)
            if size > MAX_RECORD:
                record_at = f"the record that goes on in line {lines_before + reader.line_num + 1} of {source}"
                raise InputError(f"{record_at} has more than {MAX_RECORD:,} characters: close its quotes")
            record.append(line)
            yield line

    try:
        reader = csv.reader(remembered(), delimiter=delimiter, strict=True)
    except TypeError:
        raise InputError(f"a delimiter is one character, not {delimiter!r}") from None
    while True:
        record.clear()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if len(record) > 1:
                problem = f"line {lines_before + reader.line_num} of {source} cannot be split into columns ({error})"
                raise InputError(f"{problem}: close its quotes, or double those inside a quoted field") from None
            without_quotes = split_fields(record[0], delimiter, csv.QUOTE_NONE) or [""]
            fields = tables.BrokenLine(without_quotes, f"the line cannot be split into columns ({error})")
        yield fields


def read_smi(lines: Iterator[str]) -> Table:
    """A SMILES, with a CXSMILES extension, and a name per line; a first line that begins with "smiles" is skipped."""
    split = (match.groups() if (match := WITH_EXTENSION.fullmatch(line)) else line.split(None, 1) for line in lines)
    records = tables.without_last_blanks(map(list, split))
    padded = ([*record, "", ""][:2] for record in records)
    first = list(itertools.islice(padded, 1))
    has_header = first[:1] != [] and first[0][0].lower() == "smiles"
    rows = padded if has_header else itertools.chain(first, padded)
    return Table([*COLUMNS], (Row([smiles, name.strip()], smiles) for smiles, name in rows), header=int(has_header))


def read_sdf(lines: Iterator[str], again: Iterator[str], source: str, smiles_column: str | None = None) -> Table:
    names = list(dict.fromkeys(name for record in sdf_records(again, source) for name in split_record(record)[1]))
    columns = [*(tables.free_name(name, names, OF_MOLFILE) for name in COLUMNS), *names]
    place = 0 if smiles_column is None else tables.find_column(columns, smiles_column, source)
    rows = (sdf_row(record, names) for record in sdf_records(lines, source))
    if place:
        rows = (Row(row.fields, row.fields[place], structure=row.structure) for row in rows)
    return Table(columns, rows, smiles_place=place, num_of_structure=2, header=0)


def sdf_records(lines: Iterator[str], source: str) -> Iterator[list[str]]:
    record: list[str] = []
    size = 0
    for number, line in enumerate(lines, 1):
        if line.startswith("$$$$"):
            yield record
            record, size = [], 0
            continue
        record.append(line.rstrip("\r\n"))
        if (size := size + len(line)) > MAX_RECORD:
            raise InputError(f"line {number} of {source}: a record has more than {MAX_RECORD:,} characters")
    if any(line.strip() for line in record):
        yield record


def split_record(record: list[str]) -> tuple[list[str], dict[str, str]]:
    """The structure and the data items of a record; without an end of the structure, items begin with the first ">"."""
    ends = (number + 1 for number, line in enumerate(record) if line.startswith(END_OF_STRUCTURE))
    items = (number for number, line in enumerate(record) if line.startswith(">"))
    place = next(itertools.chain(ends, items, [len(record)]))
    lines = iter(record[place:])
    named = (match[1] for line in lines if (match := ITEM.fullmatch(line)))
    return record[:place], {name: "\n".join(itertools.takewhile(str.strip, lines)) for name in named}


def sdf_row(record: list[str], names: list[str]) -> Row:
    structure, items = split_record(record)
    try:
        smiles, error = smiles_of_block(structure), ""
    except InputError as problem:
        smiles, error = "", str(problem)
    title = record[0].strip() if record else ""
    return Row([smiles, title, *(items.get(name, "") for name in names)], smiles, error, "\n".join(structure))
