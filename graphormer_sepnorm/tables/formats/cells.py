"""Excel workbooks and Parquet files as records of text."""

import contextlib
import warnings
import zipfile
from collections.abc import Generator, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from graphormer_sepnorm.errors import InputError, did_you_mean
from graphormer_sepnorm.system import progress
from graphormer_sepnorm.tables.formats.table import NoColumn, cell_text, extra, names_shown, places_of_column, printable
from graphormer_sepnorm.tables.label_text import NumberCell

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from openpyxl import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

PICTURES = "structure drawing"  # heads a first column of pictures that this package writes, which is not read
SPREADSHEET_KINDS = (".xlsx", ".xlsm")
MAX_UNPACKED = 2_000_000_000
PARQUET = ".parquet"
ROWS_AT_ONCE = 1000


def sheet_records(
    file: IO[bytes], source: str, smiles_column: str | None = None, sheet: str | None = None
) -> Generator[list[str], None, None]:
    """The rows of the named sheet, else the first with molecules, up to the last cell in use."""
    openpyxl = extra("openpyxl", f"{source} is a workbook: pip install openpyxl to read it, or save it as CSV")
    refuse_large(file, source, MAX_UNPACKED)
    with explaining(source), contextlib.closing(openpyxl.load_workbook(file, read_only=True, data_only=True)) as book:
        chosen, filled, width = chosen_sheet(book, source, smiles_column, sheet), set[int](), 0
        for number, texts in enumerate(texts_of_sheet(chosen)):
            filled |= {place for place, text in enumerate(texts) if text and number}
            while texts and not texts[-1]:
                texts.pop()
            width = max(width, len(texts))
            yield texts
        if len(filled) < width:
            say_formulas(file, source, chosen.title, filled)


def say_formulas(file: IO[bytes], source: str, title: str, filled: set[int]) -> None:
    """Says which columns of a sheet have formulas that were never computed, so that they have no values."""
    import openpyxl

    with contextlib.closing(openpyxl.load_workbook(file, read_only=True)) as book:
        names, *rows = texts_of_sheet(book[title], ROWS_AT_ONCE)
    formulas = {place for row in rows for place, text in enumerate(row) if text.startswith("=")} - filled
    if formulas:
        listed = names_shown([names[place] for place in sorted(formulas)])
        advice = "open and save the workbook in Excel"
        progress.say([f"the cells of {listed} in {source} are formulas without stored values: {advice}"])


def refuse_large(file: IO[bytes] | Path, source: str, most: int) -> None:
    """Raises InputError for what is no workbook, or one that says it unpacks to more than ``most`` bytes."""
    with explaining(source), zipfile.ZipFile(file) as parts:
        size = sum(part.file_size for part in parts.infolist())
    if size > most:
        raise InputError(f"{source} unpacks to {size:,} bytes, and at most {most:,} are read: save the sheet as CSV")


def chosen_sheet(book: "Workbook", source: str, smiles_column: str | None, name: str | None) -> "Worksheet":
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if name in sheets:
        return sheets[name]
    if name is not None:
        titles = ", ".join(map(printable, sheets))
        raise InputError(f"{source} has no sheet {name!r}: its sheets are {titles}{did_you_mean(name, sheets)}")
    headers = {title: next(texts_of_sheet(sheet, 1), []) for title, sheet in sheets.items()}
    with_molecules = [sheets[title] for title, names in headers.items() if places_of_column(names, smiles_column)]
    if len(with_molecules) > 1:
        say_unread(source, *(printable(sheet.title) for sheet in with_molecules))
    if len(sheets) > 1 and not with_molecules:
        listed = "; ".join(f"{printable(title)} ({names_shown(names)})" for title, names in headers.items())
        problem = f"{source} has no sheet with a column {smiles_column or 'smiles'!r}: name one"
        raise NoColumn(problem, next(iter(headers.values())), "smiles_column", "sheet", sheets=listed)
    return [*with_molecules, *sheets.values()][0]


@cache
def say_unread(source: str, read: str, *others: str) -> None:
    progress.say([f"the sheet {read!r} of {Path(source).name} is read; --sheet chooses another: {', '.join(others)}"])


def texts_of_sheet(sheet: "Worksheet", most: int | None = None) -> Iterator[list[str]]:
    sheet.reset_dimensions()  # some programs write a wrong size, beyond which openpyxl would not read
    rows = sheet.iter_rows(max_row=most, values_only=True)
    names = next(rows, ())
    first = int(names[:1] == (PICTURES,))
    for cells in chain([names], rows):
        texts = zip(map(cell_text, cells[first:]), cells[first:], strict=True)
        yield [NumberCell(text) if isinstance(cell, int | float) else text for text, cell in texts]


@contextlib.contextmanager
def explaining(source: str) -> Iterator[None]:
    """Turns what openpyxl raises for a damaged workbook, of many types, into InputError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except InputError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise InputError(f"{source} cannot be read as a workbook: {ascii(reason)[1:-1]}") from error


@contextlib.contextmanager
def open_parquet(path: str) -> Iterator["pq.ParquetFile"]:
    pq = extra("pyarrow.parquet", f"{path} is Parquet: pip install pyarrow to read it, or save it as CSV")
    with readable_book(path):
        file = pq.ParquetFile(path, buffer_size=1 << 20, page_checksum_verification=True)
    with file:
        yield file


@contextlib.contextmanager
def readable_book(path: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).strip().partition("\n")[0]
        raise InputError(f"cannot read {path}: {reason}") from None


def batches_of(
    file: "pq.ParquetFile", path: str, rows: int, columns: list[str] | None = None
) -> Iterator["pa.RecordBatch"]:
    with readable_book(path):
        yield from file.iter_batches(rows, columns=columns)


def parquet_records(file: "pq.ParquetFile", path: str) -> Generator[list[str], None, None]:
    yield list(file.schema_arrow.names)
    for batch in batches_of(file, path, ROWS_AT_ONCE):
        columns = [map(cell_text, column.to_pylist()) for column in batch.columns]
        yield from map(list, zip(*columns, strict=True))
