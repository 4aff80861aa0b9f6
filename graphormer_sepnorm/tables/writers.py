"""Writers of tables that grow in parts, with the input's columns and added columns, for each file format.

A new format is a ``TableWriter`` and a line in ``WRITERS``.

Axis letters: M rows of a part, D numbers in a cell.
"""

import csv
import io
import json
import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.tables.formats import Row, open_table, with_free_names

if TYPE_CHECKING:
    import pyarrow as pa

COMPLETED = ".completed"
ROWS_OF_SHEET = 1_048_575  # below the names of the columns
COLUMNS_OF_SHEET = 16_384
CHARACTERS_OF_CELL = 32_767
DIGITS_OF_CELL = 15
DIGITS = {"number": 7, "precise": 12}  # by kind of a column; float32 has 7
NO_CHARACTER_OF_SHEET = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
Cells = np.ndarray | Sequence[str]
ColumnKind = Literal["text", "number", "precise", "vector"]


@dataclass(frozen=True)
class AddedColumn:
    """A column that is added to those of a table.

    Attributes:
        name: in the header, unless a column of the input has it.
        kind: of its cells: M texts; numbers [M], NaN where there is none, with ``DIGITS``; or vectors of numbers
            [M, D].
        flat: of a vector, its D names in formats whose cells are no lists.
    """

    name: str
    kind: ColumnKind = "number"
    flat: tuple[str, ...] = ()


def digits_of(kind: ColumnKind) -> int:
    """The significant digits of the numbers in a column of a kind."""
    return DIGITS.get(kind, DIGITS["number"])


def flat_names(columns: list[str], added: list[AddedColumn]) -> list[str]:
    """The header of a format whose cells are no lists."""
    return [*columns, *with_free_names((name for each in added for name in each.flat or (each.name,)), columns)]


class TableWriter(Protocol):
    """A writer of one file format, created from the columns of an input and the added columns.

    Attributes:
        most_rows: that the format has room for.
        names: of all columns of an output that can be resumed.
    """

    most_rows: float = math.inf
    names: Sequence[str] = ()

    def keep_types(self, types: "Sequence[pa.DataType]") -> None:
        """Writes the columns of the input with their types in Parquet, if the output is Parquet too."""
        return

    def header(self) -> bytes:
        """The beginning of the growing file, at least one byte."""

    def encode(self, rows: list[Row], added: list[Cells]) -> bytes:
        """The bytes to append for some rows; ``added`` has the cells of each added column."""

    def complete(self, grown: Path) -> Path:
        """The output made from the grown file; the grown file itself if nothing needs to be done."""
        return grown

    def count(self, out: Path, smiles_column: str | None) -> tuple[int, int]:
        """The rows of a finished output, and those with an error; raises InputError if its columns are others."""
        with open_table(out, smiles_column) as table:
            if table.columns != list(self.names):
                raise InputError(f"{out} has other columns")
            place = max(place for place, name in enumerate(self.names) if name.startswith("error"))
            has_error = Counter(bool(row.fields[place]) for row in table.rows)
        return has_error.total(), has_error[True]


class DelimitedWriter(TableWriter):
    """CSV, or another character between columns; numbers with seven digits, empty where there is none."""

    def __init__(self, columns: list[str], added: list[AddedColumn], delimiter: str = ","):
        self.names, self.added = flat_names(columns, added), added
        self.delimiter = delimiter

    def header(self) -> bytes:
        return as_csv([self.names], self.delimiter)

    def encode(self, rows: list[Row], added: list[Cells]) -> bytes:
        return as_csv(
            (row.fields + texts for row, texts in zip(rows, texts_of_rows(added, self.added), strict=True)),
            self.delimiter,
        )


def as_csv(rows: Iterable[Sequence[object]], delimiter: str = ",") -> bytes:
    """Lines of texts and numbers; bytes of the input that are not UTF-8 become what they were."""
    text = io.StringIO(newline="")
    usual, all_quoted = (
        csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=quoting)
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
    )
    for row in rows:  # until Python 3.12, a carriage return is no reason for quotes
        (all_quoted if any(isinstance(cell, str) and "\r" in cell for cell in row) else usual).writerow(row)
    return text.getvalue().encode(errors="surrogateescape")


def texts_of_rows(added: list[Cells], columns: Sequence[AddedColumn]) -> Iterator[list[str]]:
    """The cells of added columns as texts, row by row."""
    texts = [
        texts_of_numbers(cells, digits_of(column.kind)) if isinstance(cells, np.ndarray) else cells
        for cells, column in zip(added, columns, strict=True)
    ]
    for cells in zip(*texts, strict=True):
        yield [text for cell in cells for text in (cell if isinstance(cell, list) else [cell])]


def texts_of_numbers(numbers: np.ndarray, digits: int) -> list:
    """Numbers [M] or [M, D] as texts, in lists of them."""
    if numbers.ndim == 2:
        return [list(map(text_of_number, row)) for row in numbers.tolist()]
    return [text_of_number(number, digits) for number in numbers.tolist()]


def text_of_number(number: float | None, digits: int = DIGITS["number"]) -> str:
    """So many digits; "" where there is no number."""
    return "" if number is None or math.isnan(number) else f"{number:.{digits}g}"


class ParquetWriter(TableWriter):
    """Parquet: the columns of the input as text unless they have types, and the added ones with their types.

    It grows as an Arrow stream: a schema and a batch for some rows at a time.
    """

    def __init__(self, columns: list[str], added: list[AddedColumn]):
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise InputError("Parquet needs pyarrow: pip install pyarrow, or write .csv") from None
        columns = list(map(as_utf8, columns))
        if twice := [name for name, count in Counter(columns).items() if count > 1]:
            raise InputError(
                f"the input has several columns {twice[0]!r}, and Parquet needs a name for each: rename them, or write "
                ".csv"
            )
        self.pyarrow = pyarrow
        self.schema = pyarrow.schema([(name, pyarrow.string()) for name in columns] + arrow_fields(added, columns))
        self.names = self.schema.names

    def keep_types(self, types: "Sequence[pa.DataType]") -> None:
        for place, kind in enumerate(types):
            if is_written_as_text(kind):
                self.schema = self.schema.set(place, self.schema.field(place).with_type(kind))

    def header(self) -> bytes:
        return self.schema.serialize().to_pybytes()

    def encode(self, rows: list[Row], added: list[Cells]) -> bytes:
        fields = zip(*(row.fields for row in rows), strict=True)
        own = [typed(list(map(as_utf8, column)), kind) for column, kind in zip(fields, self.schema.types, strict=False)]
        return (
            self.pyarrow.record_batch(
                [*own, *map(arrow_array, added, self.schema.types[len(own) :])], schema=self.schema
            )
            .serialize()
            .to_pybytes()
        )

    def complete(self, grown: Path) -> Path:
        completed = grown.with_suffix(COMPLETED)
        with (
            self.pyarrow.ipc.open_stream(grown) as batches,
            self.pyarrow.parquet.ParquetWriter(completed, self.schema) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        return completed


def arrow_fields(added: list[AddedColumn], taken: list[str]) -> "list[pa.Field]":
    """The added columns as Arrow fields; a name that is taken is changed."""
    import pyarrow as pa  # an extra

    kinds = {"text": pa.string(), "number": pa.float32(), "precise": pa.float64()}
    names = with_free_names((column.name for column in added), taken)
    return [
        pa.field(name, kinds.get(column.kind) or pa.list_(pa.float32(), len(column.flat)))
        for name, column in zip(names, added, strict=True)
    ]


def arrow_array(cells: Cells, kind: "pa.DataType") -> "pa.Array":
    """The cells of a column of a type; numbers that are NaN are null, vectors stay as they are."""
    import pyarrow as pa  # an extra

    if not isinstance(cells, np.ndarray):
        return pa.array(list(map(as_utf8, cells)), pa.string())
    numbers = cells if kind == pa.float64() else cells.astype(np.float32)
    if numbers.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(numbers.reshape(-1), numbers.shape[1])
    return pa.array(numbers, from_pandas=True)


def is_written_as_text(kind: "pa.DataType") -> bool:
    """Whether ``cell_text`` of a value of this type can be read as the value again."""
    import pyarrow.types as of  # an extra

    kinds = (of.is_integer, of.is_floating, of.is_decimal, of.is_boolean, of.is_date, of.is_timestamp)
    return any(is_kind(kind) for is_kind in kinds)


def typed(texts: list[str], kind: "pa.DataType") -> "pa.Array":
    """Texts as values of a type; an empty one is null unless the type is text."""
    import pyarrow as pa  # an extra

    if kind == pa.string():
        return pa.array(texts, pa.string())
    column = pa.array([text or None for text in texts], pa.string())
    if pa.types.is_timestamp(kind) and kind.unit == "ms":  # texts have microseconds
        column = column.cast(pa.timestamp("us", kind.tz))
    return column.cast(kind)


def as_utf8(text: str) -> str:
    """The text with a question mark for each byte that is not UTF-8."""
    return text.encode(errors="replace").decode()


class ExcelWriter(TableWriter):
    """A workbook of one sheet; texts that are numbers are numbers in it, and no text is a formula.

    It grows as lines of JSON, one for each row.
    """

    most_rows = ROWS_OF_SHEET

    def __init__(self, columns: list[str], added: list[AddedColumn]):
        try:
            import openpyxl  # noqa: F401
        except ImportError:
            raise InputError("a workbook needs openpyxl: pip install openpyxl, or write .csv") from None
        self.names, self.added = flat_names(columns, added), added
        if len(self.names) > COLUMNS_OF_SHEET:
            raise InputError(f"a sheet has at most {COLUMNS_OF_SHEET:,} columns, not {len(self.names):,}: write .csv")

    def header(self) -> bytes:
        return as_json_lines([list(self.names)])

    def encode(self, rows: list[Row], added: list[Cells]) -> bytes:
        numbers = [isinstance(column, np.ndarray) for column in added for _ in range(width_of(column))]
        return as_json_lines(
            [
                *map(cell_of_text, row.fields),
                *(float(text) if is_number and text else text for is_number, text in zip(numbers, texts, strict=True)),
            ]
            for row, texts in zip(rows, texts_of_rows(added, self.added), strict=True)
        )

    def complete(self, grown: Path) -> Path:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell

        book = Workbook(write_only=True)
        sheet: Any = book.create_sheet("molecules")

        def cell(content: str | float) -> object:
            if not isinstance(content, str):
                return content
            found = WriteOnlyCell(sheet, text_of_sheet(content))
            found.data_type = "s"  # openpyxl would take "=..." for a formula
            return found

        with open(grown, "rb") as lines:
            for line in lines:
                sheet.append([None if content == "" else cell(content) for content in json.loads(line)])
        completed = grown.with_suffix(COMPLETED)
        book.save(completed)
        return completed


def write_whole(out: Path, columns: list[str], rows: list[Row], added: list[AddedColumn], cells: list[Cells]) -> None:
    """Writes a table at once.

    Args:
        out: named by one of ``WRITERS``; a file that is there is replaced when the new one is whole.
        columns, rows: of the input.
        added: the other columns.
        cells: of each of these.

    Raises:
        InputError: another suffix, or as the format's writer or ``write_atomically``.
    """
    writer = find_writer(out)(columns, added)
    with tempfile.TemporaryDirectory() as folder:
        grown = Path(folder) / "grown"
        grown.write_bytes(writer.header() + writer.encode(rows, cells))
        write_atomically(out, writer.complete(grown).read_bytes())


def width_of(cells: Cells) -> int:
    return cells.shape[1] if isinstance(cells, np.ndarray) and cells.ndim == 2 else 1


def as_json_lines(rows: Iterable[list]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def cell_of_text(text: str) -> str | float:
    """A number where the text is how Python writes that number, else the text: 00123 stays what it is."""
    if len(text) <= DIGITS_OF_CELL:
        for read in (int, float):
            try:
                number = read(text)
            except ValueError:
                continue
            if str(number) == text and math.isfinite(number):
                return number
    return text


def text_of_sheet(text: str) -> str:
    """A text as a cell can hold it: invalid XML characters become question marks, and long texts are truncated."""
    return NO_CHARACTER_OF_SHEET.sub("?", text)[:CHARACTERS_OF_CELL]


MakeWriter = Callable[[list[str], list[AddedColumn]], TableWriter]
# By suffix.
WRITERS: dict[str, MakeWriter] = {
    ".csv": DelimitedWriter,
    ".tsv": partial(DelimitedWriter, delimiter="\t"),
    ".parquet": ParquetWriter,
    ".xlsx": ExcelWriter,
}


def find_writer(out: Path, writers: Mapping[str, MakeWriter] = WRITERS) -> MakeWriter:
    """The writer of the suffix of a file; raises InputError if there is none."""
    if out.suffix.lower() not in writers:
        raise InputError(f"a table is written as {', '.join(writers)}, not as {out.suffix or out.name!r}")
    return writers[out.suffix.lower()]
