"""CSV and TSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Literal

from graphormer_sepnorm.tables.formats import Row, Table
from graphormer_sepnorm.tables.writers.base import AddedColumn, Cells, TableWriter, flat_names, texts_of_rows


class DelimitedWriter(TableWriter):
    """CSV, or another character between columns; the semicolons and decimal commas of an input stay."""

    delimiter: str

    def __init__(self, columns: list[str], added: list[AddedColumn], delimiter: str = ","):
        self.names, self.added = flat_names(columns, added), added
        self.delimiter, self.decimal = delimiter, "."

    def keep_notation(self, table: Table) -> None:
        if (table.delimiter, self.delimiter) == (";", ","):
            self.delimiter = ";"
        if self.delimiter != ",":
            self.decimal = table.decimal

    def header(self) -> bytes:
        return as_csv([self.names], self.delimiter)

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
