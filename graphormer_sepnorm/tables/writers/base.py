"""The interface of the writers of tables, and the texts of numbers in them. M rows of a part, D numbers in a cell."""

import codecs
import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats.table import Row, Table, with_free_names

COMPLETED = ".completed"
Cells = np.ndarray | Sequence[str]
ColumnKind = Literal["text", "number", "precise", "vector"]
DIGITS: dict[ColumnKind, int] = {"text": 7, "number": 7, "precise": 12, "vector": 7}  # of numbers; float32 has 7


@dataclass(frozen=True)
class AddedColumn:
    """A column that is added to those of a table, renamed if the input has its name."""

    name: str
    kind: ColumnKind = "number"  # of its cells: M texts, numbers [M], NaN where there is none, or vectors [M, D]
    flat: tuple[str, ...] = ()  # of a vector, its D names in formats whose cells are no lists


Added = Sequence[AddedColumn]


def flat_names(columns: list[str], added: Added) -> list[str]:
    """The header of a format whose cells are no lists."""
    return [*columns, *with_free_names((name for each in added for name in each.flat or (each.name,)), columns)]


class TableWriter(Protocol):
    """A writer of one file format, created from columns, added columns, and a table with these types and separators."""

    most_rows: float = math.inf  # that the format has room for

    def header(self) -> bytes: ...

    def encode(self, rows: list[Row], added: list[Cells]) -> bytes:
        """The bytes to append for some rows; ``added`` has the cells of each added column."""

    def complete(self, grown: Path) -> Path:
        """The output made from the grown file; the grown file itself if nothing needs to be done."""
        return grown


def texts_of_rows(added: list[Cells], columns: Sequence[AddedColumn], decimal: str = ".") -> Iterator[list[str]]:
    """The cells of added columns as texts, row by row; ``decimal`` is the separator of their decimals."""
    texts: list[Sequence[str]] = []
    for cells, column in zip(added, columns, strict=True):
        for numbers in np.atleast_2d(cells.T) if isinstance(cells, np.ndarray) else ():
            said = f"%.{DIGITS[column.kind]}g " * len(numbers) % tuple(numbers.tolist())  # all at once
            texts.append(["" if text == "nan" else text for text in said.replace(".", decimal).split()])
        if not isinstance(cells, np.ndarray):
            texts.append(cells)
    yield from map(list, zip(*texts, strict=True))


def text_of_number(number: float | None, digits: int = DIGITS["number"]) -> str:
    """So many digits; "" where there is no number."""
    return "" if number is None or math.isnan(number) else f"{number:.{digits}g}"


def width_of(cells: Cells) -> int:
    return cells.shape[1] if isinstance(cells, np.ndarray) and cells.ndim == 2 else 1


def as_utf8(text: str) -> str:
    """The text with a question mark for each byte that is not UTF-8."""
    return text.encode(errors="replace").decode()


def refuse_repeated(columns: list[str], name: str) -> None:
    if twice := [column for column, count in Counter(columns).items() if count > 1]:
        raise InputError(f"the input has several columns {twice[0]!r}: rename them, or write .csv instead of {name}")


class DelimitedWriter(TableWriter):
    """CSV, or another character between columns; the semicolons and decimal commas of an input stay.

    Excel needs a mark to read a file with semicolons as UTF-8.
    """

    def __init__(self, columns: list[str], added: Added, like: Table | None = None, delimiter: str = ","):
        self.names, self.added = flat_names(columns, added), added
        self.delimiter = ";" if like and (like.delimiter, delimiter) == (";", ",") else delimiter
        self.decimal = like.decimal if like and self.delimiter != "," else "."

    def header(self) -> bytes:
        return codecs.BOM_UTF8 * (self.delimiter == ";") + as_csv([self.names], self.delimiter)

    def encode(self, rows: list[Row], added: list[Cells]) -> bytes:
        texts = texts_of_rows(added, self.added, self.decimal)
        return as_csv((row.fields + more for row, more in zip(rows, texts, strict=True)), self.delimiter)


def as_csv(rows: Iterable[Sequence[object]], delimiter: str = ",") -> bytes:
    """Lines of texts and numbers; bytes of the input that are not UTF-8 become what they were."""

    def lines(rows: Iterable[Sequence[object]], quoting: Literal[0, 1] = csv.QUOTE_MINIMAL) -> str:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=quoting).writerows(rows)
        return text.getvalue()

    rows = list(rows)
    if "\r" in (text := lines(rows)):  # until Python 3.12, it is no reason for quotes
        text = "".join(lines([row], csv.QUOTE_ALL) if "\r" in (line := lines([row])) else line for row in rows)
    return text.encode(errors="surrogateescape")
