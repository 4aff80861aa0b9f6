"""Tables of molecules, opened by the suffix of their file: each record becomes a ``Row``, in order, readable or not."""

import contextlib
import glob
import io
import os
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats import cells, text
from graphormer_sepnorm.tables.formats.table import Row, Table, table_of_records, with_names

# Without Parquet, which the page does not take: a small file of it can unpack to any size.
TABLE_KINDS = (".csv", ".tsv", ".txt", ".smi", ".sdf", *cells.SPREADSHEET_KINDS)
Record = TypeVar("Record")
JSON = (".json", ".jsonl", ".ndjson")


@contextlib.contextmanager
def open_table(
    path: str | Path, smiles_column: str | None = None, delimiter: str | None = None, sheet: str | None = None
) -> Iterator[Table]:
    """Opens a table of molecules by its suffix: .smi, .sdf, .xlsx, .parquet, else CSV; "-" is CSV on standard input.

    By default, the column of molecules is found by its name, the delimiter by the header, and the sheet by its columns.
    Raises InputError for what cannot be read, also while rows are.
    """
    kind, source = kind_of(path), str(path)
    if kind in JSON and Path(path).exists():
        raise InputError(f"{path} is JSON: save the table as CSV")
    if sheet is not None and kind not in cells.SPREADSHEET_KINDS:
        raise InputError(f"{path} is no Excel workbook (.xlsx): leave --sheet out")
    if kind == ".smi" and smiles_column not in (None, "smiles"):
        raise InputError(f"{path} has its molecules first on each line: leave --smiles-column out")
    if kind == ".sdf" and Path(path).exists() and not text.is_file(path):
        raise InputError(f"{path} can be read only once, but an SDF is read twice: save it in a file first")
    with contextlib.ExitStack() as opened:

        def closed(records: Generator[Record, None, None]) -> Iterator[Record]:
            return opened.enter_context(contextlib.closing(records))

        if kind in cells.SPREADSHEET_KINDS:
            with text.readable(path), text.open_binary(path) as binary:
                content = io.BytesIO(binary.read(cells.MAX_UNPACKED))
            records = cells.sheet_records(content, source, smiles_column, sheet)
            yield table_of_records(with_names(closed(records), source, smiles_column), source, smiles_column)
        elif kind == cells.PARQUET:
            file = opened.enter_context(cells.open_parquet(source))
            table = table_of_records(closed(cells.parquet_records(file, source)), source, smiles_column)
            yield replace(table, types=file.schema_arrow.types, header=0)
        elif kind == ".sdf":
            yield text.read_sdf(closed(text.text_lines(path)), closed(text.text_lines(path)), source, smiles_column)
        elif kind == ".smi":
            yield text.read_smi(closed(text.text_lines(path)))
        else:
            usual = "\t" if kind == ".tsv" else None
            yield text.read_csv(closed(text.text_lines(path)), source, smiles_column, delimiter, usual)


def rows_of(source: str | Path, *reading: str | None) -> Iterator[Row]:
    with open_table(source, *reading) as table:
        yield from table.rows


def named_column(path: str | Path, smiles_column: str | None) -> str | None:
    """The column of molecules that is named for several tables; None for a .smi, where they are first on each line."""
    return None if kind_of(path) == ".smi" else smiles_column


def kind_of(path: str | Path) -> str:
    """The suffix, the one before ``.gz`` and the like if there is that, in lower case."""
    path = Path(path)
    return (path.with_suffix("") if text.compression_of(path) else path).suffix.lower()


def is_library(path: str | Path, out: Path | None = None) -> bool:
    """Whether a name means partitions: a folder, or a pattern of files such as ``library/*.csv``."""
    if os.path.isfile(path):
        return kind_of(path) == cells.PARQUET and not (out and (is_table_name(out) or str(out) == text.STANDARD_INPUT))
    return os.path.isdir(path) or (glob.has_magic(str(path)) and is_table_name(path))


def is_table_name(path: str | Path) -> bool:
    return kind_of(path) in (cells.PARQUET, *TABLE_KINDS)
