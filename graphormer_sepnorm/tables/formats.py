"""Tables of molecules: CSV, TSV, .smi, SDF and .xlsx, also gzipped, and standard input, streamed row by row.

Every record of the input becomes one ``Row``, in order, readable or not, and its fields stay the text that they were:
bytes that are not UTF-8 pass through as they came. Only a table whose rows cannot be told apart raises ``InputError``.
"""

import contextlib
import csv
import glob
import gzip
import io
import itertools
import re
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rdkit import Chem

from graphormer_sepnorm.chem.smiles import one_molecule
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.spreadsheet import MAX_UNPACKED, SPREADSHEET_KINDS, sheet_records

STANDARD_INPUT = "-"
MAX_RECORD = 1_000_000
MOST_SHOWN = 20
TABLE_KINDS = (".csv", ".tsv", ".txt", ".smi", ".sdf", *SPREADSHEET_KINDS)
NO_TEXT = {
    "PK\x03\x04": "a zip archive or a workbook",
    "\udcd0\udccf\x11\udce0": "an old Excel file",
    "PAR1": "Parquet",
}
PARQUET = ".parquet"
DELIMITERS = ",\t;|"
UTF16_MARKS = ("\udcff\udcfe", "\udcfe\udcff")
SDF_NAME = re.compile(r">.*?<([^<>]*)>")


@dataclass(frozen=True)
class Row:
    """One record.

    Attributes:
        fields: one text per column of the table.
        smiles: the molecule; "" where there is none.
        error: why the record cannot be used; "" if nothing is known against it.
    """

    fields: list[str]
    smiles: str
    error: str = ""


@dataclass(frozen=True)
class Table:
    """An open table.

    Attributes:
        columns: their names as the file has them.
        rows: the records, read as they are asked for.
        delimiter: between the columns of a CSV; "" in other files.
    """

    columns: list[str]
    rows: Iterator[Row]
    delimiter: str = ""

    def chunks(self, size: int) -> Iterator[list[Row]]:
        """The rows in lists of ``size``, the last one shorter."""
        while chunk := list(itertools.islice(self.rows, size)):
            yield chunk


def smiles_of_rows(rows: list[Row]) -> list[str]:
    return [row.smiles for row in rows]


def table_of_smiles(smiles: Sequence[str]) -> Table:
    """A table of one column, ``smiles``."""
    return Table(["smiles"], (Row([text], text) for text in smiles))


@contextlib.contextmanager
def open_table(path: str | Path, smiles_column: str | None = None, delimiter: str | None = None) -> Iterator[Table]:
    """Opens a table of molecules.

    Args:
        path: a file, whose suffix says what it is: ``.smi``, ``.sdf``, ``.xlsx`` (its first sheet) or else CSV, each
            also with ``.gz``; or "-" for CSV on standard input.
        smiles_column: of a CSV or a sheet; by default the one named smiles, in capitals or not.
        delimiter: of a CSV; by default tab for ``.tsv``, else the one that splits the header into most columns.

    Raises:
        InputError: no such file, a closed standard input, a damaged gzip file or workbook, one without openpyxl, what
            is no text, UTF-16, no header, no such column, a line of more than ``MAX_RECORD`` characters, a record of
            more, or a quote that is not closed; also while rows are read.
    """
    kind = kind_of(path)
    if kind in SPREADSHEET_KINDS:
        with contextlib.closing(sheet_of(path)) as records:
            yield table_of_records(records, str(path), smiles_column)
        return
    with contextlib.closing(text_lines(path)) as lines:
        if kind == ".sdf":
            if Path(path).exists() and not is_file(path):
                raise InputError(f"{path} can be read only once, but an SDF is read twice: save it in a file first")
            yield read_sdf(lines, str(path))
        elif kind == ".smi":
            yield read_smi(lines)
        else:
            yield read_csv(lines, str(path), smiles_column, delimiter or ("\t" if kind == ".tsv" else None))


def kind_of(path: str | Path) -> str:
    """The suffix, the one before ``.gz`` if there is that, in lower case."""
    path = Path(path)
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def is_file(path: str | Path) -> bool:
    """Whether a table can be read again: not standard input, nor another pipe."""
    return str(path) != STANDARD_INPUT and Path(path).is_file()


def is_library(path: str | Path) -> bool:
    """Whether a name means partitions: a folder, a Parquet file, or a pattern of files such as ``library/*.csv``.

    A pattern ends with the suffix of a table, which no SMILES does.
    """
    is_pattern = glob.has_magic(str(path)) and is_table_name(path) and not Path(path).exists()
    return Path(path).is_dir() or is_pattern or kind_of(path) == PARQUET


def is_table_name(path: str | Path) -> bool:
    """Whether the suffix says that a file is a table that some command reads."""
    return kind_of(path) in (PARQUET, *TABLE_KINDS)


def free_name(name: str, taken: Iterable[str], ending: str) -> str:
    """``name``, followed by ``ending`` for as long as it is taken."""
    taken = set(taken)
    while name in taken:
        name += ending
    return name


def with_free_names(names: Iterable[str], taken: list[str]) -> list[str]:
    """Names of columns to add to those that are ``taken``; one that is among them, or twice, is made another."""
    found: list[str] = []
    for name in names:
        found.append(free_name(name, [*taken, *found], "_predicted"))
    return found


@contextlib.contextmanager
def open_binary(path: str | Path) -> Iterator[BinaryIO | gzip.GzipFile | io.BufferedReader]:
    """The bytes of a file, unzipped, or of standard input."""
    if str(path) == STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("standard input is closed: pipe a table into the command, or name a file instead of -")
        yield sys.stdin.buffer
    else:
        with gzip.open(path) if Path(path).suffix.lower() == ".gz" else open(path, "rb") as file:
            yield file


@contextlib.contextmanager
def readable(path: str | Path) -> Iterator[None]:
    """Turns what reading a file raises into one sentence."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is not a whole gzip file: {error}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def sheet_of(path: str | Path) -> Generator[list[str], None, None]:
    """The records of a workbook; raises InputError as ``open_table`` says."""
    with readable(path), open_binary(path) as file:
        yield from sheet_records(io.BytesIO(file.read(MAX_UNPACKED)), str(path))


def text_lines(path: str | Path) -> Generator[str, None, None]:
    """The lines of a text file or of standard input with their ends; raises InputError as ``open_table`` says."""
    with readable(path), open_binary(path) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape", newline="")
        number = 0
        while line := text.readline(MAX_RECORD + 1):
            number += 1
            if number == 1:
                check_text(line, path)
            if len(line) > MAX_RECORD:
                raise InputError(f"line {number} of {path} has more than {MAX_RECORD:,} characters: is it a table?")
            yield line


def check_text(first: str, path: str | Path) -> None:
    """Raises InputError for the first line of what is no text in UTF-8."""
    if first.startswith(UTF16_MARKS):
        raise InputError(f"{path} is UTF-16: save it as UTF-8")
    for mark, kind in NO_TEXT.items():
        if first.startswith(mark):
            raise InputError(f"{path} is {kind}: save the table as CSV")


def read_csv(lines: Iterator[str], source: str, smiles_column: str | None, delimiter: str | None) -> Table:
    """A CSV with a header; arguments and errors as ``open_table``."""
    first = next(lines, None)
    if first is None:
        raise InputError(f"{source} is empty: it should begin with a line of column names")
    delimiter = delimiter or likely_delimiter(first)
    records = csv_records(itertools.chain([first], lines), source, delimiter)
    return table_of_records(records, source, smiles_column, delimiter)


def table_of_records(
    records: Iterator[list[str]], source: str, smiles_column: str | None, delimiter: str = ""
) -> Table:
    """A table of records of which the first has the names; without a delimiter, empty fields at their ends are missing.

    Arguments and errors as ``open_table``.
    """
    columns = next(records, [])
    if isinstance(columns, BrokenLine):
        raise InputError(f"line 1 of {source}: {columns.reason}")
    place = find_column(columns, smiles_column, source)
    rest = without_last_blanks(records)
    if not delimiter:
        rest = (record and record + [""] * (len(columns) - len(record)) for record in rest)
    return Table(columns, (csv_row(record, len(columns), place) for record in rest), delimiter)


def likely_delimiter(header: str) -> str:
    """The delimiter that splits a header into most columns; the comma if none does."""
    return max(DELIMITERS, key=lambda delimiter: len(next(csv.reader([header], delimiter=delimiter))))


class BrokenLine(list):
    """What could be made out of the fields of a line, and the reason why they are not to be trusted."""

    def __init__(self, fields: list[str], reason: str):
        super().__init__(fields)
        self.reason = reason


def csv_records(lines: Iterator[str], source: str, delimiter: str) -> Iterator[list[str]]:
    """The fields of each record, a ``BrokenLine`` for one line with stray quotes.

    Raises:
        InputError: quotes leave it open which of several lines are one record.
    """
    record: list[str] = []

    def remembered() -> Iterator[str]:
        size = 0
        for line in lines:
            size = size + len(line) if record else len(line)
            if size > MAX_RECORD:
                raise InputError(
                    f"the record that goes on in line {reader.line_num + 1} of {source} has more than {MAX_RECORD:,} "
                    "characters: close its quotes"
                )
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
                raise InputError(
                    f"line {reader.line_num} of {source} cannot be split into columns ({error}): close its quotes, or "
                    "double those inside a quoted field"
                ) from None
            fields = BrokenLine(without_quotes(record, delimiter), f"the line cannot be split into columns ({error})")
        yield fields


def without_quotes(lines: list[str], delimiter: str) -> list[str]:
    """The fields of a line if quotes are characters like others; an empty one where even so one is too long."""
    try:
        return next(csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE))
    except csv.Error:
        return [""]


def find_column(columns: list[str], name: str | None, source: str) -> int:
    """The place of the column ``name``, by default of the one named smiles; raises InputError unless there is one."""
    if name is None:
        name = "smiles"
        places = [place for place, column in enumerate(columns) if column.strip().lower() == name]
    else:
        places = [place for place, column in enumerate(columns) if column == name]
    if len(places) != 1:
        raise InputError(f"{not_one_column(source, columns, name, len(places))}: name one with --smiles-column")
    return places[0]


def not_one_column(source: str, columns: list[str], name: str, count: int) -> str:
    """Says how many columns of a name a table has, and which columns it has at all."""
    found = "no column" if count == 0 else f"{count} columns"
    shown = ", ".join(columns[:MOST_SHOWN]) + (", ..." if len(columns) > MOST_SHOWN else "")
    return f"{source} has {found} {name!r} (its columns: {shown})"


def without_last_blanks(records: Iterable[list[str]]) -> Iterator[list[str]]:
    """The records without blank lines at the end; a blank line between others is a record without fields."""
    blanks = 0
    for record in records:
        if not record:
            blanks += 1
            continue
        yield from itertools.repeat([], blanks)
        blanks = 0
        yield record


def csv_row(record: list[str], num_columns: int, smiles_place: int) -> Row:
    """A record as a row; one with too few or too many fields is kept as far as there are columns, with an error."""
    if isinstance(record, BrokenLine):
        error = record.reason
    elif not record:
        error = "the line is empty"
    elif len(record) != num_columns:
        error = f"the row has {len(record)} fields, the header has {num_columns}"
    else:
        return Row(record, record[smiles_place])
    return Row((record + [""] * num_columns)[:num_columns], "", error)


def read_smi(lines: Iterator[str]) -> Table:
    """A SMILES and a name on each line, between them white space; a first line that begins with "smiles" is skipped."""
    records = without_last_blanks(line.split(None, 1) for line in lines)
    first = next(records, ["smiles"])
    if first and first[0].lower() != "smiles":
        records = itertools.chain([first], records)
    padded = ([*record, "", ""][:2] for record in records)
    return Table(["smiles", "name"], (Row([smiles, name.strip()], smiles) for smiles, name in padded))


def read_sdf(lines: Iterator[str], source: str) -> Table:
    """Records of an SDF: the structure as SMILES, the title and every data item that any record has."""
    with contextlib.closing(text_lines(source)) as again:
        names = dict.fromkeys(name for record in sdf_records(again, source) for name in sdf_items(record))
    own = [free_name(name, names, "_of_molfile") for name in ("smiles", "name")]
    return Table([*own, *names], (sdf_row(record, list(names)) for record in sdf_records(lines, source)))


def sdf_records(lines: Iterator[str], source: str) -> Iterator[list[str]]:
    """The lines of each record; raises InputError for one of more than ``MAX_RECORD`` characters."""
    record: list[str] = []
    size = 0
    for number, line in enumerate(lines, 1):
        if line.startswith("$$$$"):
            yield record
            record, size = [], 0
        else:
            record.append(line.rstrip("\r\n"))
            size += len(line)
        if size > MAX_RECORD:
            raise InputError(f"line {number} of {source}: a record has more than {MAX_RECORD:,} characters")
    if any(line.strip() for line in record):
        yield record


def sdf_items(record: list[str]) -> dict[str, str]:
    """The data items of a record, by name."""
    items: dict[str, str] = {}
    lines = iter(record)
    for line in lines:
        if found := SDF_NAME.match(line):
            items[found[1]] = "\n".join(itertools.takewhile(str.strip, lines))
    return items


def sdf_row(record: list[str], names: list[str]) -> Row:
    """A record as a row, with an error if its structure cannot be read."""
    items = sdf_items(record)
    smiles, error = "", ""
    try:
        smiles = smiles_of_block("\n".join(itertools.takewhile(lambda line: not line.startswith(">"), record)))
    except InputError as problem:
        error = str(problem)
    title = record[0].strip() if record else ""
    return Row([smiles, title, *(items.get(name, "") for name in names)], smiles, error)


def smiles_of_block(block: str) -> str:
    """The SMILES of a molfile, unsanitized if need be; raises InputError if there is none.

    Characters beyond ASCII, which it can have in its title and its comment alone, do not reach RDKit.
    """
    block = block.encode("ascii", "replace").decode()
    with one_molecule():
        mol = Chem.MolFromMolBlock(block)
        if mol is None:
            mol = Chem.MolFromMolBlock(block, sanitize=False)
        smiles = "" if mol is None else Chem.MolToSmiles(mol)
    if mol is None:
        raise InputError("the record has no readable structure")
    return smiles
