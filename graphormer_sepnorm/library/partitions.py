"""Reads the partitions of a library: Parquet, or any table that ``open_table`` reads, ``CHUNK`` rows at a time."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.workers import CHUNK, Smiles, in_chunks
from graphormer_sepnorm.tables.formats import (
    PARQUET,
    Row,
    find_column,
    kind_of,
    named_column,
    not_one_column,
    open_table,
    rows_of,
)
from graphormer_sepnorm.tables.formats.parquet import batches_of, open_parquet
from graphormer_sepnorm.tables.formats.table import cell_text
from graphormer_sepnorm.tables.rows import NO_CONDITIONS, AskedConditions, samples_of
from graphormer_sepnorm.tables.writers import as_utf8


class Batch(NamedTuple):
    """Some rows of a partition: the columns to keep, their molecules, and why each cannot be used, or ""."""

    columns: pa.Table
    molecules: Smiles
    errors: list[str]


# An open partition: the schema of the columns to keep, and its rows, read lazily.
Partition = tuple[pa.Schema, Iterator[Batch]]


@contextlib.contextmanager
def open_partition(
    path: str,
    columns: tuple[str, ...] | None = None,
    smiles_column: str | None = None,
    delimiter: str | None = None,
    asked: AskedConditions = NO_CONDITIONS,
) -> Iterator[Partition]:
    """Opens a partition: Parquet, whose columns keep their types, or another table, whose columns are text."""
    if kind_of(path) == PARQUET:
        with open_parquet(path) as file:
            types = file.schema_arrow.remove_metadata()
            smiles = types.names[find_column(types.names, smiles_column, path)]
            if not is_text(types.field(smiles).type):
                raise InputError(f"the column {smiles!r} of {path} is {types.field(smiles).type}, not text")
            kept = kept_columns(types.names, columns, path)
            asked.places(types.names, path)
            used = [smiles, *asked.columns]
            read = samples_of(used, asked, path)

            def batch_of(batch: pa.RecordBatch) -> Batch:
                fields = zip(*(map(cell_text, batch.column(name).to_pylist()) for name in used), strict=True)
                rows = [Row(list(texts), texts[0]) for texts in fields]
                own = pa.Table.from_batches([batch]).select(kept).replace_schema_metadata(None)
                return Batch(own, read(rows), [""] * len(rows))

            found = batches_of(file, path, CHUNK, list(dict.fromkeys([*used, *kept])))
            yield pa.schema([types.field(name) for name in kept]), map(batch_of, found)
    else:
        named = named_column(path, smiles_column)
        with open_table(path, named, delimiter) as table:
            kept = kept_columns(table.columns, columns, path)
            schema = pa.schema([(as_utf8(name), pa.string()) for name in kept])
            places = [table.columns.index(name) for name in kept]
            read = samples_of(table.columns, asked, path, table.delimiter, partial(rows_of, path, named, delimiter))

            def batch_of_text(rows: list[Row]) -> Batch:
                texts = [pa.array([as_utf8(row.fields[place]) for row in rows], pa.string()) for place in places]
                return Batch(pa.Table.from_arrays(texts, schema=schema), read(rows), [row.error for row in rows])

            yield schema, map(batch_of_text, in_chunks(table.rows))


def is_text(kind: pa.DataType) -> bool:
    """-"""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def kept_columns(names: list[str], wanted: tuple[str, ...] | None, path: str) -> list[str]:
    """The columns to keep, by default all; raises InputError unless each name exists exactly once."""
    kept = list(names if wanted is None else dict.fromkeys(wanted))
    counts = Counter(names)
    for name in kept:
        if counts[name] != 1:
            raise InputError(not_one_column(path, names, name, counts[name], "name those to keep with --columns"))
    return kept
