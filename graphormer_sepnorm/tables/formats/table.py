"""Rows of molecules, and the columns that they come in."""

import importlib
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError, as_text, did_you_mean
from graphormer_sepnorm.tables.label_text import is_number

if TYPE_CHECKING:
    import pyarrow as pa

MOST_SHOWN = 20
MOST_TITLES = 10  # lines above a header
ROWS_LOOKED_AT = 10
COLUMNS_LOOKED_AT = 1000
FEWEST_ATOMS = 3  # C, N, ID, CN and CO are names of columns
# Names of the column of molecules, the surest first. Capitals, spaces and signs between words do not matter.
STRUCTURE_COLUMNS = (
    "smiles", "canonicalsmiles", "isomericsmiles", "smilesparent", "parentsmiles", "structure", "smi", "inchi",
    "standardinchi", "molblock", "molfile",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    fields: list[str]
    smiles: str
    error: str = ""  # why the record cannot be used
    structure: str = field(default="", compare=False, repr=False)  # its molfile in an SDF, without data items


@dataclass(frozen=True)
class Table:
    columns: list[str]
    rows: Iterable[Row]
    delimiter: str = ""  # between the columns of a CSV
    types: "Sequence[pa.DataType]" = ()  # of the columns in Parquet
    smiles_place: int = 0  # of the column of molecules
    decimal: str = "."  # separator of the decimals of its numbers
    num_of_structure: int = 0  # first columns, which are in the structures of an SDF
    header: int = 1  # lines above the first row


@dataclass(frozen=True)
class WholeTable(Table):
    """A table in memory."""

    rows: list[Row]

    def texts(self, column: str) -> list[str]:
        """The cells of a column, without those of rows that cannot be used."""
        place = self.columns.index(column)
        return [row.fields[place] for row in self.rows if not row.error]


class BrokenLine(list):
    """The fields of a line as far as they could be read, and the reason why they may be wrong."""

    def __init__(self, fields: list[str], reason: str):
        super().__init__(fields)
        self.reason = reason


def table_of_smiles(smiles: Sequence[str]) -> Table:
    return Table(["smiles"], (Row([text], text) for text in smiles), header=0)


def table_of_records(records: Iterator[list[str]], source: str, column: str | None, delimiter: str = "") -> Table:
    columns = next(records, [])
    if isinstance(columns, BrokenLine):
        raise InputError(f"the header of {source}: {columns.reason}")
    try:
        place = find_column(columns, column, source, or_delimiter=bool(delimiter))
    except NoColumn:
        for number, record in enumerate(itertools.islice(records, MOST_TITLES), 2):
            if len(places_of_column(re.split(r"[,;\t]", ",".join(record)), column)) == 1:
                problem = f"line {number} of {source} looks like its header: delete the lines above it"
                raise InputError(problem) from None
        raise
    rest = without_last_blanks(records)
    if not delimiter:
        rest = (record and record + [""] * (len(columns) - len(record)) for record in rest)
    return Table(columns, (as_row(record, len(columns), place) for record in rest), delimiter, (), place)


def as_row(record: list[str], num_columns: int, smiles_place: int) -> Row:
    if len(record) == num_columns and not isinstance(record, BrokenLine):
        return Row(record, record[smiles_place])
    error = f"the row has {len(record)} fields, the header has {num_columns}" if record else "the line is empty"
    error = record.reason if isinstance(record, BrokenLine) else error
    return Row((record + [""] * num_columns)[:num_columns], "", error)


def cell_text(cell: object) -> str:
    """A cell as it would stand in a CSV: "" for none and for NaN; a day without hours as 2024-05-31."""
    if isinstance(cell, datetime):
        return cell.isoformat(" ").removesuffix(" 00:00:00")
    return "" if cell is None or cell != cell else str(cell)


def without_last_blanks(records: Iterable[list[str]]) -> Iterator[list[str]]:
    """The records without blank lines at the end; a blank line before others is a record without fields."""
    blanks: list[list[str]] = []
    for record in records:
        blanks.append(record)
        if record:
            yield from blanks
            blanks = []


def places_of_column(columns: list[str], name: str | None) -> list[int]:
    """The places of the columns ``name``, by default of the surest usual name, or with the word smiles in theirs."""
    if name is None:
        columns = [re.sub(r"[ _./()\[\]-]", "", column.strip().lower()) for column in columns]
        name = next((usual for usual in STRUCTURE_COLUMNS if usual in columns), None)
    if name is None:
        return [place for place, column in enumerate(columns) if "smiles" in column and column.isalnum()]
    return [place for place, column in enumerate(columns) if column == name]


class NoColumn(InputError):
    def __init__(self, sentence: str, columns: list[str], *options: str, sheets: str = ""):
        super().__init__(f"{sentence}. Its sheets: {sheets}" if sheets else sentence, *options)
        self.columns, self.sheets = columns, sheets


def find_column(columns: list[str], name: str | None, source: str, or_delimiter: bool = False, advice: str = "") -> int:
    """The place of the one column that ``places_of_column`` finds; raises NoColumn if there is none, or several."""
    places = places_of_column(columns, name)
    if len(places) != 1:
        if len({columns[place] for place in places}) == 1:
            raise NoColumn(not_one_column(source, columns, columns[places[0]], len(places), "rename one"), columns)
        other = ", or the character between columns" if or_delimiter else ""
        sentence = not_one_column(source, columns, name or "smiles", len(places), (advice or "name one") + other)
        raise NoColumn(sentence, columns, *([] if advice else ["smiles_column", "delimiter"][: 1 + or_delimiter]))
    return places[0]


def not_one_column(source: str, columns: list[str], name: str, count: int, advice: str = "") -> str:
    count_words = "no column" if count == 0 else f"{count} columns"
    near = did_you_mean(name, columns) if count == 0 else ""
    what_to_do = f": {advice}" if advice else ""
    data = " (the first line must have the names of the columns)" if any(map(is_number, columns)) else ""
    return f"{source} has {count_words} {name!r}{what_to_do}{near or '.'} Its columns: {names_shown(columns)}{data}"


def names_shown(columns: list[str]) -> str:
    shown = ", ".join(map(printable, columns[:MOST_SHOWN])) + ", ..." * (len(columns) > MOST_SHOWN)
    return shown if any(columns) else "none, as the first line is empty"


def printable(text: str) -> str:
    """A text for the terminal: its beginning, with escapes for what is no character to show."""
    text = as_text(text)
    text = text if len(text) <= 100 else f"{text[:97]}..."
    return text if text.isprintable() else ascii(text)[1:-1]


def free_name(name: str, taken: Collection[str], ending: str) -> str:
    while name in taken:
        name += ending
    return name


def with_free_names(names: Iterable[str], taken: list[str]) -> list[str]:
    """Names of columns to add to those that are ``taken``; one that is among them, or twice, is made another."""
    free = list(taken)
    for name in names:
        free.append(free_name(name, free, "_predicted"))
    return free[len(taken) :]


def extra(module: str, without: str) -> Any:
    """A module that is no requirement of this package; raises InputError with this sentence if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InputError(without) from None


def with_names(records: Iterator[list[str]], source: str, column: str | None, advice: str = "") -> Iterator[list[str]]:
    """The records of a table; raises InputError, which ends with ``advice``, if the first one has a molecule."""
    names = next(records, [])
    rows = list(itertools.islice(records, ROWS_LOOKED_AT if molecule_among(names, [], column) else 0))
    if molecule := molecule_among(names, rows, column):
        problem = f"its first line contains the molecule {printable(molecule)!r}"
        what_to_do = f"write the names of the columns, such as smiles, in a line above it{advice}"
        raise InputError(f"{source} seems to have no header: {problem}; {what_to_do}")
    return itertools.chain([names], rows, records)


def molecule_among(names: list[str], rows: Sequence[list[str]], smiles_column: str | None = None) -> str:
    """The molecule in a first line of no names; NSC is a name if ``rows`` below have no molecule in its place."""
    if places_of_column(names, smiles_column) and not (smiles_column and is_molecule(smiles_column)):
        return ""
    for place, name in enumerate(names[:COLUMNS_LOOKED_AT]):
        below = [row[place] for row in rows if place < len(row) and row[place].strip()]
        if is_molecule(name) and (not below or any(map(is_molecule, below))):
            return name.split()[0]
    return ""


def is_molecule(text: str) -> bool:
    """Whether the first word of a text is a molecule of at least ``FEWEST_ATOMS`` atoms."""
    try:
        return read_smiles(text.split()[0]).GetNumAtoms() >= FEWEST_ATOMS
    except (IndexError, InputError):
        return False
