"""Lines of text: CSV and TSV, whose first line has the names of the columns, and .smi, a SMILES and a name each."""

import csv
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats import text
from graphormer_sepnorm.tables.formats.table import (
    ROWS_LOOKED_AT,
    BrokenLine,
    Row,
    Table,
    is_molecule,
    molecule_among,
    places_of_column,
    table_of_records,
    with_names,
    without_last_blanks,
)

# Of a CXSMILES: coordinates, labels, radicals, items such as "&1:3", the letter r, or nothing.
EXTENSION = r"\|(?:(?:[($^]|(?:ctu|[acCfHmstuZ]|w[UD]?|[o&]\d+|rb|lp|LN|LO|RG|Sg[DH]?|atomProp|THB):|r,)[^|]*|r)?\|"
WITH_EXTENSION = re.compile(rf"\s*(\S+\s+{EXTENSION})(.*)", re.DOTALL)  # CXSMILES and a name
COLUMNS = ["smiles", "name"]
DELIMITERS = ",\t;|"
EXCELS_LINE = re.compile(r'"?sep=(.)"?[\r\n]*', re.IGNORECASE)


def read_csv(
    lines: Iterator[str], source: str, smiles_column: str | None, delimiter: str | None, usual: str | None = None
) -> Table:
    """A CSV with a header, before it maybe Excel's line ``sep=;``; one column without a header as ``read_smi``."""
    header = next(lines, "")
    said = EXCELS_LINE.fullmatch(header)
    if said:
        header = next(lines, "")
    if not header:
        raise InputError(f"{source} is empty: it should begin with a line of column names")
    delimiter = delimiter or (said[1] if said else usual) or likely_delimiter(header, smiles_column)
    begins_with_molecule = is_molecule(header)
    if begins_with_molecule and delimiter not in header:
        rows = list(itertools.islice(lines, ROWS_LOOKED_AT))
        lines = itertools.chain(rows, lines)
        if molecule_among([header.strip()], [[line] for line in rows], smiles_column):
            return read_smi(itertools.chain([header], lines))
    records = csv_records(itertools.chain([header], lines), source, delimiter, lines_before=1 if said else 0)
    advice = ", or rename the file to end in .smi if each line is a SMILES and a name"
    records = with_names(records, source, smiles_column, advice if begins_with_molecule else "")
    return replace(table_of_records(records, source, smiles_column, delimiter), header=2 if said else 1)


def likely_delimiter(header: str, smiles_column: str | None = None) -> str:
    """The delimiter that splits a header into most columns, the one with the SMILES among them if any does that."""
    columns = {delimiter: split(header, delimiter) for delimiter in DELIMITERS}
    fitting = [delimiter for delimiter in DELIMITERS if places_of_column(columns[delimiter], smiles_column)]
    return max(fitting or DELIMITERS, key=lambda delimiter: len(columns[delimiter]))


def split(line: str, delimiter: str, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL) -> list[str]:
    """The fields of a line; none where one is too long."""
    try:
        return next(csv.reader([line], delimiter=delimiter, quoting=quoting))
    except csv.Error:
        return []


def csv_records(lines: Iterator[str], source: str, delimiter: str, lines_before: int = 0) -> Iterator[list[str]]:
    """The fields of each record, a ``BrokenLine`` for one line with stray quotes."""
    record: list[str] = []

    def remembered() -> Iterator[str]:
        size = 0
        for line in lines:
            size = size + len(line) if record else len(line)
            if size > text.MAX_RECORD:
                record_at = f"the record that goes on in line {lines_before + reader.line_num + 1} of {source}"
                raise InputError(f"{record_at} has more than {text.MAX_RECORD:,} characters: close its quotes")
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
                found = f"line {lines_before + reader.line_num} of {source} cannot be split into columns ({error})"
                raise InputError(f"{found}: close its quotes, or double those inside a quoted field") from None
            without_quotes = split(record[0], delimiter, csv.QUOTE_NONE) or [""]
            fields = BrokenLine(without_quotes, f"the line cannot be split into columns ({error})")
        yield fields


def read_smi(lines: Iterator[str]) -> Table:
    """A SMILES, with a CXSMILES extension, and a name per line; a first line that begins with "smiles" is skipped."""
    records = without_last_blanks(map(split_line, lines))
    first = list(itertools.islice(records, 1))
    has_header = bool(first and first[0] and first[0][0].lower() == "smiles")
    records = records if has_header else itertools.chain(first, records)
    padded = ([*record, "", ""][:2] for record in records)
    return Table([*COLUMNS], (Row([smiles, name.strip()], smiles) for smiles, name in padded), header=int(has_header))


def split_line(line: str) -> list[str]:
    found = WITH_EXTENSION.fullmatch(line)
    return list(found.groups()) if found else line.split(None, 1)
