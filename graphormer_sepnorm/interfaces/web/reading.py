"""Reading of uploaded tables, in the worker process."""

from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.schemas import TableRow, TableRows
from graphormer_sepnorm.tables.formats import Row, kind_of, named_column, open_table
from graphormer_sepnorm.tables.formats.excel import SPREADSHEET_KINDS, refuse_large
from graphormer_sepnorm.tables.formats.table import NoColumn, printable
from graphormer_sepnorm.tables.rows import condition_text, condition_texts, places_of, separators

MOST_CHARACTERS = 100_000_000  # of a table


def read_rows(path: Path, shown: str, smiles_column: str, most_rows: int) -> TableRows:
    """The table in a file.

    Args:
        path: as ``open_table``.
        shown: what messages call it.
        smiles_column: that has the molecules; "": found by its name.
        most_rows: that it may have.

    Raises:
        NoColumn: the column of the molecules is not known.
        InputError: as ``open_table``, no or more than ``most_rows`` rows, or more than ``MOST_CHARACTERS``, to which a
            small workbook can unpack, and of which its cells can share one long text.
    """
    try:
        if kind_of(path) in SPREADSHEET_KINDS:
            refuse_large(path, str(path), MOST_CHARACTERS)
        with open_table(path, named_column(path, smiles_column or None)) as table:
            rows, characters = [], 0
            for row in islice(table.rows, most_rows + 1):
                characters += len(row.fields) + sum(map(len, row.fields))
                if characters > MOST_CHARACTERS:
                    raise InputError(f"{shown} has more than {MOST_CHARACTERS:,} characters: leave out columns or rows")
                rows.append(TableRow(row.fields, row.smiles, row.error))
    except NoColumn as error:
        raise NoColumn(str(error).replace(str(path), shown), error.columns) from None
    except InputError as error:
        raise InputError(str(error).replace(str(path), shown)) from None
    if len(rows) > most_rows:
        raise InputError(
            f"{shown} has more than {most_rows:,} molecules, which is the most for this page: use the command "
            "graphormer-sepnorm for it, or a part of the table"
        )
    if not rows:
        raise InputError(f"{shown} has no molecules")
    return TableRows(table.columns, rows, table.columns[table.smiles_place], [], delimiter=table.delimiter)


def read_table(path: Path, shown: str, smiles_column: str, most_rows: int) -> TableRows:
    """As ``read_rows``; with a problem and without molecules if the column that has them is not known."""
    try:
        return read_rows(path, shown, smiles_column, most_rows)
    except NoColumn as error:
        counts = Counter(error.columns)
    once = next((name for name, count in counts.items() if count == 1), None)
    if once is None:
        raise InputError(f"the first line of {shown} should name the columns, each with another name")
    found = read_rows(path, shown, once, most_rows)
    count = f"{counts[smiles_column]} columns" if counts[smiles_column] else "no column"
    problem = f"{shown} has {count} {printable(smiles_column)!r}: choose the one that has the SMILES"
    if not smiles_column:
        problem = f"choose the column of {shown} that has the SMILES"
    rows = [replace(row, smiles="") for row in found.rows]
    return replace(found, rows=rows, smiles_column="", problem=problem)


def under_conditions(table: TableRows, names: tuple[str, ...], given: dict[str, str], shown: str) -> list[TableRow]:
    """The rows with the conditions of their measurement.

    Args:
        table: has them as columns.
        names: of the conditions that the models need.
        given: those of all rows, for columns that the table does not have.
        shown: what messages call the table.

    Raises:
        InputError: a condition is neither a column nor given.
    """
    if not names:
        return table.rows
    places = places_of(shown, table.columns, [name for name in names if name in table.columns])
    if missing := [name for name in names if name not in places and not given.get(name, "").strip()]:
        raise InputError(f"the predictions depend on {', '.join(missing)}: fill in the field, or add such a column")
    rows, columns = [Row(row.fields, row.smiles, row.error) for row in table.rows], list(places.values())
    texts = condition_texts(rows, columns, separators(rows, columns, table.delimiter))
    found = [dict(zip(places, of_row, strict=True)) for of_row in texts]
    same = {name: condition_text(given[name]) for name in names if name not in places}
    return [
        replace(row, conditions=tuple((same | of_row)[name] for name in names))
        for row, of_row in zip(table.rows, found, strict=True)
    ]
