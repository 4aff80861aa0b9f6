"""Reading of uploaded tables, in the worker process."""

from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.schemas import TableRow, TableRows
from graphormer_sepnorm.tables.formats import kind_of, named_column, open_table
from graphormer_sepnorm.tables.formats.excel import SPREADSHEET_KINDS, refuse_large
from graphormer_sepnorm.tables.formats.table import NoColumn, printable
from graphormer_sepnorm.tables.rows import condition_text, condition_texts, places_of, separators

MOST_CHARACTERS = 100_000_000  # of a table


def read_rows(path: Path, shown: str, smiles_column: str, most_rows: int) -> TableRows:
    """The table in a file that messages call ``shown``, with the molecules of a column; "": found by its name.

    Raises NoColumn, and InputError as ``open_table``, for no or too many rows, and for too many characters: a small
    workbook can unpack to them, and its cells can share one long text.
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
        raise NoColumn(error.sentence.replace(str(path), shown), error.columns) from None
    except InputError as error:
        raise InputError(error.sentence.replace(str(path), shown)) from None
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
        problem, columns = asked_column(shown, smiles_column, error.columns), error.columns
    once = next((name for name, count in Counter(columns).items() if count == 1), None)
    if once is None:
        raise InputError(f"the first line of {shown} should name the columns, each with another name")
    found = read_rows(path, shown, once, most_rows)
    rows = [replace(row, smiles="") for row in found.rows]
    return replace(found, rows=rows, smiles_column="", problem=problem)


def asked_column(shown: str, smiles_column: str, columns: list[str]) -> str:
    """Asks for the column of the molecules in a table where there is none, or several, of this name."""
    if not smiles_column:
        return f"choose the column of {shown} that has the SMILES"
    count = columns.count(smiles_column)
    found = f"{count} columns" if count else "no column"
    return f"{shown} has {found} {printable(smiles_column)!r}: choose the one that has the SMILES"


def under_conditions(table: TableRows, names: tuple[str, ...], given: dict[str, str], shown: str) -> list[TableRow]:
    """The rows with the named conditions of their measurement: those of the table, else those given for all rows.

    Raises InputError for a condition that is neither.
    """
    if not names:
        return table.rows
    places = places_of(shown, table.columns, [name for name in names if name in table.columns])
    if missing := [name for name in names if name not in places and not given.get(name, "").strip()]:
        raise InputError(f"the predictions depend on {', '.join(missing)}: fill in the field, or add such a column")
    columns = list(places.values())
    texts = condition_texts(table.rows, columns, separators(table.rows, columns, table.delimiter))
    same = {name: condition_text(given[name]) for name in names if name not in places}
    found = [same | dict(zip(places, of_row, strict=True)) for of_row in texts]
    return [
        replace(row, conditions=tuple(map(conditions.__getitem__, names)))
        for row, conditions in zip(table.rows, found, strict=True)
    ]
