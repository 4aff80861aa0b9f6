"""Tables of molecules, opened by the suffix of their file: each record becomes a ``Row``, in order, readable or not."""

import contextlib
import glob
import io
import os
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats.csv_text import read_csv, read_smi
from graphormer_sepnorm.tables.formats.excel import MAX_UNPACKED, SPREADSHEET_KINDS, sheet_records
from graphormer_sepnorm.tables.formats.parquet import PARQUET, parquet_records, parquet_types
from graphormer_sepnorm.tables.formats.sdf import read_sdf
from graphormer_sepnorm.tables.formats.table import Row, Table, table_of_records, with_names
from graphormer_sepnorm.tables.formats.text import (
    STANDARD_INPUT,
    compression_of,
    is_file,
    open_binary,
    readable,
    text_lines,
)

# Without Parquet, which the page does not take: a small file of it can unpack to any size.
TABLE_KINDS = (".csv", ".tsv", ".txt", ".smi", ".sdf", *SPREADSHEET_KINDS)
JSON = (".json", ".jsonl", ".ndjson")


@contextlib.contextmanager
def open_table(
    path: str | Path, smiles_column: str | None = None, delimiter: str | None = None, sheet: str | None = None
) -> Iterator[Table]:
    """Opens a table of molecules by its suffix: .smi, .sdf, .xlsx, .parquet, else CSV; "-" is CSV on standard input.

    By default, the column of molecules is found by its name, the delimiter by the header, and the sheet by its columns.
    Raises InputError for what cannot be read, also while rows are.
    """
    kind = kind_of(path)
    if kind in JSON and Path(path).exists():
        raise InputError(f"{path} is JSON: save the table as CSV")
    if sheet is not None and kind not in SPREADSHEET_KINDS:
        raise InputError(f"{path} is no Excel workbook (.xlsx): leave --sheet out")
    if kind in SPREADSHEET_KINDS:
        with contextlib.closing(sheet_of(str(path), smiles_column, sheet)) as records:
            yield table_of_records(with_names(records, str(path), smiles_column), str(path), smiles_column)
        return
    if kind == PARQUET:
        with contextlib.closing(parquet_records(str(path))) as records:
            table = table_of_records(records, str(path), smiles_column)
            yield replace(table, types=parquet_types(str(path)), header=0)
        return
    with contextlib.closing(text_lines(path)) as lines:
        if kind == ".sdf":
            if Path(path).exists() and not is_file(path):
                raise InputError(f"{path} can be read only once, but an SDF is read twice: save it in a file first")
            with contextlib.closing(text_lines(path)) as again:
                table = read_sdf(lines, again, str(path), smiles_column)
            yield table
        elif kind == ".smi":
            if smiles_column not in (None, "smiles"):
                raise InputError(f"{path} has its molecules first on each line: leave --smiles-column out")
            yield read_smi(lines)
        else:
            usual = "\t" if kind == ".tsv" else None
            yield read_csv(lines, str(path), smiles_column, delimiter, usual)


def rows_of(source: str | Path, *reading: str | None) -> Iterator[Row]:
    with open_table(source, *reading) as table:
        yield from table.rows


def named_column(path: str | Path, smiles_column: str | None) -> str | None:
    """The column of molecules that is named for several tables; None for a .smi, where they are first on each line."""
    return None if kind_of(path) == ".smi" else smiles_column


def kind_of(path: str | Path) -> str:
    """The suffix, the one before ``.gz`` and the like if there is that, in lower case."""
    path = Path(path)
    return (path.with_suffix("") if compression_of(path) else path).suffix.lower()


def is_library(path: str | Path, out: Path | None = None) -> bool:
    """Whether a name means partitions: a folder, or a pattern of files such as ``library/*.csv``."""
    if os.path.isfile(path):
        return kind_of(path) == PARQUET and not (out and (is_table_name(out) or str(out) == STANDARD_INPUT))
    return os.path.isdir(path) or (glob.has_magic(str(path)) and is_table_name(path))


def is_table_name(path: str | Path) -> bool:
    return kind_of(path) in (PARQUET, *TABLE_KINDS)


def sheet_of(path: str, smiles_column: str | None, sheet: str | None) -> Generator[list[str], None, None]:
    with readable(path), open_binary(path) as file:
        yield from sheet_records(io.BytesIO(file.read(MAX_UNPACKED)), path, smiles_column, sheet)
