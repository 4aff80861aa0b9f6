"""Structure-data files: molfiles with data items. Source: "CTfile formats", Dassault Systemes, 2020."""

import itertools
import re
from collections.abc import Iterator

from graphormer_sepnorm.chem.smiles import END_OF_STRUCTURE, smiles_of_block
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats import text
from graphormer_sepnorm.tables.formats.table import Row, Table, find_column, free_name

NAME = re.compile(r">[^<]*<(.*)>[^>]*")  # of a data item; it may have < and > in it
OF_MOLFILE = "_of_molfile"  # ends the name of a column, if a data item has that name


def read_sdf(lines: Iterator[str], again: Iterator[str], source: str, smiles_column: str | None = None) -> Table:
    """Records of an SDF: the structure as SMILES, the title and every data item that any record has."""
    names = list(dict.fromkeys(name for record in sdf_records(again, source) for name in data_items(record)))
    columns = columns_of_items(names)
    place = 0 if smiles_column is None else find_column(columns, smiles_column, source)
    rows = (sdf_row(record, names) for record in sdf_records(lines, source))
    if place:
        rows = (Row(row.fields, row.fields[place], structure=row.structure) for row in rows)
    return Table(columns, rows, smiles_place=place, num_of_structure=2, header=0)


def columns_of_items(names: list[str]) -> list[str]:
    return [*(free_name(name, names, OF_MOLFILE) for name in ("smiles", "name")), *names]


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
        if size > text.MAX_RECORD:
            raise InputError(f"line {number} of {source}: a record has more than {text.MAX_RECORD:,} characters")
    if any(line.strip() for line in record):
        yield record


def split_record(record: list[str]) -> tuple[list[str], list[str]]:
    """The structure and the data items of a record; without an end of the structure, items begin with the first ">"."""
    ends = (number + 1 for number, line in enumerate(record) if line.startswith(END_OF_STRUCTURE))
    items = (number for number, line in enumerate(record) if line.startswith(">"))
    place = next(itertools.chain(ends, items, [len(record)]))
    return record[:place], record[place:]


def data_items(record: list[str]) -> dict[str, str]:
    items: dict[str, str] = {}
    lines = iter(split_record(record)[1])
    for line in lines:
        if found := NAME.fullmatch(line):
            items[found[1]] = "\n".join(itertools.takewhile(str.strip, lines))
    return items


def sdf_row(record: list[str], names: list[str]) -> Row:
    structure, items = split_record(record)[0], data_items(record)
    try:
        smiles, error = smiles_of_block(structure), ""
    except InputError as problem:
        smiles, error = "", str(problem)
    title = record[0].strip() if record else ""
    return Row([smiles, title, *(items.get(name, "") for name in names)], smiles, error, "\n".join(structure))
