"""Excel workbooks: the first sheet as records of text."""

import contextlib
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats.table import cell_text

if TYPE_CHECKING:
    from openpyxl import Workbook

SPREADSHEET_KINDS = (".xlsx", ".xlsm")
MAX_UNPACKED = 2_000_000_000


def sheet_records(file: IO[bytes], source: str) -> Iterator[list[str]]:
    """The rows of the first sheet, each up to its last cell that is not empty; of formulas what they gave.

    Args:
        file: of the workbook.
        source: its name, for messages.

    Raises:
        InputError: openpyxl is not installed, or the file is no workbook or one of more than ``MAX_UNPACKED`` bytes.
    """
    try:
        import openpyxl  # an extra
    except ImportError:
        raise InputError(
            f"{source} is a workbook, and reading one needs openpyxl: pip install openpyxl, or save it as CSV"
        ) from None
    refuse_large(file, source, MAX_UNPACKED)
    with explained(source):
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    with contextlib.closing(book):
        yield from records(book, source)


def refuse_large(file: IO[bytes] | Path, source: str, most: int) -> None:
    """Raises InputError for what is no workbook, or one whose parts say that they unpack to more than ``most`` bytes.

    No more is read of a part than it says.
    """
    with explained(source), zipfile.ZipFile(file) as parts:
        size = sum(part.file_size for part in parts.infolist())
    if size > most:
        raise InputError(f"{source} unpacks to {size:,} bytes, and at most {most:,} are read: save the sheet as CSV")


def records(book: "Workbook", source: str) -> Iterator[list[str]]:
    with explained(source):
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # some programs write a wrong size, beyond which openpyxl would not read
        for cells in sheet.iter_rows(values_only=True):
            texts = [cell_text(cell) for cell in cells]
            while texts and not texts[-1]:
                texts.pop()
            yield texts


@contextlib.contextmanager
def explained(source: str) -> Iterator[None]:
    """Turns the exceptions of openpyxl for a damaged workbook, which have many types, into InputError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except InputError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise InputError(f"{source} cannot be read as a workbook: {ascii(reason)[1:-1]}") from error
