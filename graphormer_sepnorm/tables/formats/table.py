"""Rows of molecules, and the columns that they come in."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from graphormer_sepnorm.errors import InputError, as_text, did_you_mean
from graphormer_sepnorm.tables.label_text import is_number

if TYPE_CHECKING:
    import pyarrow as pa

MOST_SHOWN = 20
# Names of the column of molecules, the surest first. Capitals, spaces and signs between words do not matter.
STRUCTURE_COLUMNS = (
    "smiles", "canonicalsmiles", "isomericsmiles", "smilesparent", "parentsmiles", "structure", "smi", "inchi",
    "standardinchi", "molblock", "molfile",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One record.

    Attributes:
        fields: one text per column of the table.
        smiles: the molecule; "" where there is none.
        error: why the record cannot be used; "" if nothing is known against it.
        structure: its molfile in an SDF, without the data items; "" in other files.
    """

    fields: list[str]
    smiles: str
    error: str = ""
    structure: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Table:
    """An open table.

    Attributes:
        columns: their names as the file has them.
        rows: the records, read as they are asked for.
        delimiter: between the columns of a CSV; "" in other files.
        types: of the columns in Parquet; empty in other files.
        smiles_place: the place of the column of molecules.
        decimal: separator of the decimals of its numbers.
        num_of_structure: how many of the first columns stand in the structures of an SDF; 0 in other files.
    """

    columns: list[str]
    rows: Iterator[Row]
    delimiter: str = ""
    types: "Sequence[pa.DataType]" = ()
    smiles_place: int = 0
    decimal: str = "."
    num_of_structure: int = 0


@dataclass(frozen=True)
class WholeTable:
    """A table in memory, read once for everything that looks at it; attributes as ``Table``."""

    columns: list[str]
    rows: list[Row]
    delimiter: str = ""
    smiles_place: int = 0


class BrokenLine(list):
    """The fields of a line as far as they could be read, and the reason why they may be wrong."""

    def __init__(self, fields: list[str], reason: str):
        super().__init__(fields)
        self.reason = reason


def smiles_of_rows(rows: list[Row]) -> list[str]:
    return [row.smiles for row in rows]


def table_of_smiles(smiles: Sequence[str]) -> Table:
    """A table of one column, ``smiles``."""
    return Table(["smiles"], (Row([text], text) for text in smiles))


def table_of_records(
    records: Iterator[list[str]], source: str, smiles_column: str | None, delimiter: str = ""
) -> Table:
    """A table of records of which the first has the names; without a delimiter, empty fields at their ends are missing.

    Arguments and errors as ``open_table``.
    """
    columns = next(records, [])
    if isinstance(columns, BrokenLine):
        raise InputError(f"the header of {source}: {columns.reason}")
    place = find_column(columns, smiles_column, source, or_delimiter=bool(delimiter))
    rest = without_last_blanks(records)
    if not delimiter:
        rest = (record and record + [""] * (len(columns) - len(record)) for record in rest)
    return Table(columns, (as_row(record, len(columns), place) for record in rest), delimiter, (), place)


def as_row(record: list[str], num_columns: int, smiles_place: int) -> Row:
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


def cell_text(cell: object) -> str:
    """A cell as it would stand in a CSV: "" for none and for NaN; a day without hours as 2024-05-31."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, datetime):
        return cell.isoformat(" ").removesuffix(" 00:00:00")
    return str(cell)


def without_last_blanks(records: Iterable[list[str]]) -> Iterator[list[str]]:
    """The records without blank lines at the end; a blank line before others is a record without fields."""
    blanks = 0
    for record in records:
        if not record:
            blanks += 1
            continue
        yield from itertools.repeat([], blanks)
        blanks = 0
        yield record


def places_of_column(columns: list[str], name: str | None) -> list[int]:
    """The places of the columns ``name``, by default of those of the first name in ``STRUCTURE_COLUMNS`` that is there.

    If none of these names is there, those that have the word smiles in their name.
    """
    if name is not None:
        return [place for place, column in enumerate(columns) if column == name]
    plain = [re.sub("[ _.-]", "", column.strip().lower()) for column in columns]
    known = next((known for known in STRUCTURE_COLUMNS if known in plain), None)
    if known is not None:
        return [place for place, column in enumerate(plain) if column == known]
    return [place for place, column in enumerate(plain) if "smiles" in column and column.isalnum()]


class NoColumn(InputError):
    """A table has no column that is known to have the molecules, or several.

    Attributes:
        columns: those that it has.
    """

    def __init__(self, sentence: str, columns: list[str], *options: str):
        super().__init__(sentence, *options)
        self.columns = columns


def find_column(
    columns: list[str],
    name: str | None,
    source: str,
    or_delimiter: bool = False,
    advice: str = "",
) -> int:
    """The place of the one column that ``places_of_column`` finds.

    Args:
        columns, name: as ``places_of_column``.
        source: the table, for the message.
        or_delimiter: whether the columns may have been split at a wrong character.
        advice: how to name the column, for the message, in place of the options for it.

    Raises:
        NoColumn: there is no such column, or several.
    """
    places = places_of_column(columns, name)
    if len(places) != 1:
        if len({columns[place] for place in places}) == 1:
            raise NoColumn(not_one_column(source, columns, columns[places[0]], len(places), "rename one"), columns)
        other = ", or the character between columns" if or_delimiter else ""
        sentence = not_one_column(source, columns, name or "smiles", len(places), (advice or "name one") + other)
        raise NoColumn(sentence, columns, *([] if advice else ["smiles_column", "delimiter"][: 1 + or_delimiter]))
    return places[0]


def not_one_column(source: str, columns: list[str], name: str, count: int, advice: str = "") -> str:
    """Says how many columns of a name a table has, what to do, and which columns it has at all."""
    found = "no column" if count == 0 else f"{count} columns"
    if count == 0 and any(as_text(column) != column for column in columns):
        advice = "the names of its columns have bytes that are not UTF-8, so save the table as UTF-8"
    near = did_you_mean(name, columns) if count == 0 else ""
    what_to_do = f": {advice}" if advice else ""
    data = " (the first line must have the names of the columns)" if any(map(is_number, columns)) else ""
    return f"{source} has {found} {name!r}{what_to_do}{near or '.'} Its columns: {names_shown(columns)}{data}"


def names_shown(columns: list[str]) -> str:
    """The names of columns for people, the first of many."""
    return ", ".join(map(printable, columns[:MOST_SHOWN])) + (", ..." if len(columns) > MOST_SHOWN else "")


def printable(text: str) -> str:
    """A text for the terminal: its beginning, with escapes for what is no character to show."""
    text = as_text(text)
    text = text if len(text) <= 100 else f"{text[:97]}..."
    return text if text.isprintable() else ascii(text)[1:-1]


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
